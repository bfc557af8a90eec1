import { expect, test } from 'vitest'

import { longTest } from '../test/support/long-test.ts'
import { chatPage } from './support/chat-page.ts'
import { chooseMode, sendAndWait } from './support/app-shell.ts'
import { takeScreenshot } from './support/screenshot.ts'
import { useTestDemo } from './support/use-test-demo.ts'

const testDemo = useTestDemo()

longTest('[DM81] in each mode, the model receives the messages of the other mode', async () => {
  const page = await testDemo.openPage()
  const { send, log, waitUntilIdle, replies } = chatPage(page)
  await sendAndWait(page, 'My name is Hanako. [[say Good day, Hanako.]]')

  await chooseMode(page, 'Talk')
  await send('[[say Live, I know you.]]')
  await log.getByText('Live, I know you.', { exact: true }).waitFor()
  await waitUntilIdle()
  const [session, ...others] = testDemo.emulator.live.sessions
  expect(others).toEqual([])
  expect(JSON.stringify(session?.history)).toContain('My name is Hanako.')
  expect(JSON.stringify(session?.history)).toContain('Good day, Hanako.')
  await takeScreenshot(page, 'modes-live')

  await chooseMode(page, 'Chat')
  await send('[[say Back again.]]')
  await log.getByText('Back again.', { exact: true }).waitFor()
  await waitUntilIdle()
  const [request, ...more] = testDemo.findModelRequests('Back again.')
  expect(more).toEqual([])
  const body = JSON.stringify(request?.body)
  for (const text of ['My name is Hanako.', 'Good day, Hanako.', 'Live, I know you.']) {
    expect(body).toContain(text)
  }
  expect(await replies.count()).toBe(3)
  expect(await log.locator('[data-role=user]').count()).toBe(3)
  await takeScreenshot(page, 'modes-sse')

  const before = await log.textContent()
  await page.reload()
  await log.getByText('Back again.', { exact: true }).waitFor()
  expect(await log.textContent()).toBe(before)
})

test('[DM81] a reply that is being streamed continues in the other mode', async () => {
  const page = await testDemo.openPage()
  const { send, reply, replies, waitUntilIdle } = chatPage(page)
  await send('[[say Begun over HTTP,]][[wait switch]][[say ended on the socket.]]')
  await reply().getByText('Begun over HTTP,').waitFor()
  await chooseMode(page, 'Talk')
  await reply().getByText('Begun over HTTP,').waitFor()
  testDemo.emulator.release('switch')
  await reply().getByText('ended on the socket.').waitFor()
  await waitUntilIdle()
  expect(await replies.count()).toBe(1)
  expect(testDemo.countSentToModel('[[wait switch]]')).toBe(1)
})

test('[DM49] [DM63] in direct mode Gemini replies, and calls a tool of the server and one of the page', async () => {
  const page = await testDemo.openPage({ mode: 'direct' })
  const { send, log, tool, waitUntilIdle, replies } = chatPage(page)
  await send('[[say Without]][[wait direct]][[say an agent.]]')
  await log.getByText('Without', { exact: true }).waitFor()
  testDemo.emulator.release('direct')
  await log.getByText(/^Without ?an agent\.$/).waitFor()
  await waitUntilIdle()

  await send('What is the weather in Tokyo?')
  await tool('get_weather').getByText('Done').waitFor()
  await expect.poll(() => replies.nth(1).locator('.markdown').last().textContent()).toMatch(/18/)
  await waitUntilIdle()

  await send('Play track 2')
  await page.getByRole('button', { name: 'Mute track 2' }).waitFor()
  await tool('change_bgm').getByText('Done').waitFor()
  await replies.nth(2).locator('.markdown').last().waitFor()
  await waitUntilIdle()
  expect(await tool('change_bgm').count()).toBe(1)
  await takeScreenshot(page, 'direct')
})

longTest(
  '[DM49] in direct mode a reply can be stopped and repeated, and a message edited',
  async () => {
    let tries = 0
    testDemo.respondTo('a direct number', () => [{ type: 'say', text: `Number ${(tries += 1)}` }])
    const page = await testDemo.openPage({ mode: 'direct' })
    const { send, log, stop, waitUntilIdle, reply, replies } = chatPage(page)
    await send('[[say I could go on]][[wait direct-stop]][[say and on.]]')
    await reply().getByText('I could go on').waitFor()
    await stop.click()
    await waitUntilIdle()
    await expect.poll(() => testDemo.findModelRequests('direct-stop')[0]?.aborted).toBe(true)
    expect(await reply().textContent()).not.toContain('and on.')

    await send('Say a direct number')
    await log.getByText('Number 1').waitFor()
    await waitUntilIdle()
    await log.getByRole('button', { name: 'Try again' }).click()
    await log.getByText('Number 2').waitFor()
    await waitUntilIdle()
    expect(await replies.count()).toBe(2)

    const message = log.locator('[data-role=user]').nth(1)
    await message.getByRole('button', { name: 'Edit and send again' }).click()
    await page.getByLabel('Edit the message').fill('[[say Something else.]]')
    await page.keyboard.press('Enter')
    await log.getByText('Something else.', { exact: true }).waitFor()
    await waitUntilIdle()
    expect(await replies.count()).toBe(2)
    expect(await log.textContent()).not.toContain('Number')
  },
)
