import { setImmediate } from 'node:timers/promises'

import Database from 'libsql'
import { expect, test } from 'vitest'

import { openSqliteStore } from '../../src/store/index.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { toolParts } from '../support/chat-probe.ts'
import { ASK, answer, ask, lastMessage, locate, TOKYO } from '../support/locating.ts'
import { serve } from '../support/serve.ts'

const APP = { appName: 'adk-stream-protocol' }
const SELDOM = { sweepMs: 3_600_000 }

test('[BT5] a browser call expires after a restart too', async () => {
  await using folder = await temporaryDirectory()
  await using store = await openSqliteStore({ path: folder.file('chat.db') })
  const options = { ...locate({ timeoutMs: 200 }), store, authenticate: () => ({ id: 'hanako' }) }
  const before = await serve({ ...options, limits: { sweepMs: 3_600_000 } })
  await ask(before.browser())
  await before[Symbol.asyncDispose]()
  await using server = await serve({ ...options, limits: { sweepMs: 20 } })
  const request = await server.emulator.nextRequest(({ body }) =>
    JSON.stringify(body).includes('in time'),
  )
  await request.done
  const browser = server.browser()
  while ((await browser.messages()).running) await setImmediate()
  expect(toolParts(await lastMessage(browser))).toMatchObject([{ state: 'output-error' }])
})

test('[BT5] of two servers, one expires a browser call, and a call whose client responds in time does not expire', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('chat.db')
  await using one = await openSqliteStore({ path })
  await using two = await openSqliteStore({ path })
  const options = {
    ...locate({ timeoutMs: 3_600_000 }),
    authenticate: () => ({ id: 'hanako' }),
    limits: { sweepMs: 10 },
  }
  await using first = await serve({ ...options, store: one })
  await using second = await serve({ ...options, store: two })
  const browser = first.browser()
  const answered = await ask(browser)
  await (await answer(browser, answered, { state: 'output-available', output: TOKYO })).text()
  await ask(browser)
  const database = new Database(path, { timeout: 60_000 })
  database.exec('UPDATE browser_calls SET deadline = 0')
  database.close()
  const asked = () => first.emulator.requests.length + second.emulator.requests.length
  await expect.poll(asked).toBe(4)
  const drained = async () =>
    (await one.browserCalls.takeDue({ ...APP, leaseMs: 0, limit: 9 })).length
  await expect.poll(drained).toBe(0)
  expect(asked()).toBe(4)
  while ((await browser.messages()).running) await setImmediate()
  const { messages } = await browser.messages()
  const states = messages.flatMap((message) => toolParts(message).map(({ state }) => state))
  expect(states).toEqual(['output-available', 'output-error'])
  expect([first.errors, second.errors]).toEqual([[], []])
})

test('[BT5] a deleted chat, or one whose message is regenerated, has no pending browser calls', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  await using server = await serve({ ...locate({ timeoutMs: 1 }), store, limits: SELDOM })
  const browser = server.browser()
  await ask(browser)
  await browser.delete()
  expect(await store.browserCalls.takeDue({ ...APP, leaseMs: 0, limit: 9 })).toEqual([])
  await ask(browser, ASK, 'u1')
  const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: '[[say Anew.]]' }] }
  const anew = { id: 'chat-1', messages: [message], trigger: 'regenerate-message' }
  await (await browser.post('/stream', anew)).text()
  await using other = await serve({ ...locate(), store, limits: { sweepMs: 10 } })
  const left = async () =>
    (await store.browserCalls.takeDue({ ...APP, leaseMs: 0, limit: 9 })).length
  await expect.poll(left).toBe(0)
  expect(other.emulator.requests).toHaveLength(0)
  expect(other.errors).toEqual([])
})
