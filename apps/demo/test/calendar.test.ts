import { StudioInfo } from 'adk-stream-protocol-studio'
import { beforeAll, expect, test } from 'vitest'

import { builtPage } from '../../../test/support/built-page.ts'
import { findLocalUrl } from '../src/server/calendar/calendar-service.ts'
import { startDemo } from '../src/server/start-demo.ts'
import { temporaryDirectory } from '../../../test/support/temporary-directory.ts'

beforeAll(builtPage)

test.each([
  ['127.0.0.1', undefined, 'http://127.0.0.1:8000'],
  ['::1', undefined, 'http://[::1]:8000'],
  ['0.0.0.0', undefined, 'http://127.0.0.1:8000'],
  ['::', undefined, 'http://127.0.0.1:8000'],
  ['192.168.1.5', undefined, undefined],
  ['demo.example', undefined, undefined],
  ['127.0.0.1', 'postgres://localhost/demo', undefined],
])('[DM521] with HOST %s and the database %s, people sign in at %s', (host, databaseUrl, local) => {
  const url = `http://${host.includes(':') ? `[${host}]` : host}:8000`
  expect(findLocalUrl({ host, databaseUrl }, url)).toBe(local)
})

test('[DM521] a page at another address has no calendar, and says at which address to sign in', async () => {
  await using data = await temporaryDirectory()
  await using demo = await startDemo({ PORT: '0', DATA_DIR: data.path })
  const other = demo.url.replace('127.0.0.1', 'localhost')
  expect(await isCalendarOffered(demo.url)).toBe(true)
  expect(await isCalendarOffered(other)).toBe(false)
  const headers = { 'content-type': 'application/json' }
  const refused = await fetch(`${other}/sign-ins/any`, { method: 'POST', headers, body: '{}' })
  expect(await refused.json()).toMatchObject({
    error: { code: 'sign-in-failed', message: `Open the demo at ${demo.url} to sign in.` },
  })
  // The calendar accepts no token that it did not issue.
  const events = await fetch(`${demo.url}/calendar/events`, {
    headers: { authorization: 'Bearer x' },
  })
  expect(events.status).toBe(401)
})

async function isCalendarOffered(url: string): Promise<boolean> {
  return StudioInfo.parse(await (await fetch(`${url}/studio`)).json()).signIn
}
