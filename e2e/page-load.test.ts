import { expect, test } from 'vitest'

import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

test('[DM141] while it loads, the page requests each list once', async () => {
  const page = await testDemo.openPage()
  await page.getByText('What would you like to do?').waitFor()
  const paths: string[] = []
  page.on('request', (request) => paths.push(new URL(request.url()).pathname))
  await page.reload()
  await page.getByRole('button', { name: 'Approvals: 0 pending' }).waitFor()
  // The feed is open, and the requests that it causes have ended.
  await page.getByText('Your chats appear here.').waitFor()
  await expect
    .poll(() => paths.filter((path) => path.endsWith('/messages')).length)
    .toBeGreaterThan(0)
  const count = (path: string) => paths.filter((each) => each === path).length
  expect({
    approvals: count('/approvals'),
    chats: count('/chats'),
    events: count('/events'),
  }).toEqual({
    approvals: 1,
    chats: 1,
    events: 1,
  })
})
