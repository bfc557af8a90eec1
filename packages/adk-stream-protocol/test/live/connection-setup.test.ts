import { once } from 'node:events'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'

import { startEmulator } from 'gemini-emulator'
import { expect, test } from 'vitest'

import { LiveConnectionError } from '../../src/modules/live/gemini/gemini-socket.ts'
import {
  allClosed,
  isTurnComplete,
  openSockets,
  runReconnecting,
  textOf,
} from './support/reconnecting-run.ts'

async function failureOf(
  run: Awaited<ReturnType<typeof runReconnecting>>,
): Promise<LiveConnectionError> {
  const error: unknown = await run.ended
  expect(error).toBeInstanceOf(LiveConnectionError)
  return error as LiveConnectionError
}

test('[LC1] a wrong key ends the run with Gemini’s reason', async () => {
  await using emulator = await startEmulator({ apiKey: 'the right one' })
  await using run = await runReconnecting(emulator, { apiKey: 'a wrong one' })
  const error = await failureOf(run)
  expect(error).toMatchObject({ code: 1007, phase: 'setup', retryable: false })
  expect(error.reason).toContain('API key not valid')
  expect(run.reported.statuses).toEqual(['connecting', 'closed'])
})

test('[LC1] a model that does not exist ends the run with Gemini’s reason', async () => {
  await using emulator = await startEmulator({ models: ['gemini-other'] })
  await using run = await runReconnecting(emulator)
  expect(await failureOf(run)).toMatchObject({ code: 1008, phase: 'setup', retryable: false })
})

test('[LC1] a port without a listener is reported at once', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  await using run = await runReconnecting({ baseUrl: `http://127.0.0.1:${port}` })
  const error = await failureOf(run)
  expect(error).toMatchObject({ code: 1006, phase: 'setup', retryable: true })
  expect(error.reason).toContain('ECONNREFUSED')
})

test('[LC1] a server without WebSocket support is reported as refused', async () => {
  await using emulator = await startEmulator()
  await using run = await runReconnecting({ baseUrl: `${emulator.baseUrl}/elsewhere` })
  expect(await failureOf(run)).toMatchObject({ code: 'refused', retryable: false })
})

test('[LC1] an incomplete setup times out, and its socket is closed', async () => {
  await using emulator = await startEmulator({ live: { completeSetup: false } })
  await using run = await runReconnecting(emulator, { connectTimeoutMs: 50 })
  expect(await failureOf(run)).toMatchObject({ code: 'timeout', phase: 'setup', retryable: true })
  await allClosed(emulator)
  expect(openSockets(emulator)).toBe(0)
})

test('[LC1] a connection can be aborted during its setup', async () => {
  await using emulator = await startEmulator({ live: { completeSetup: false } })
  const life = new AbortController()
  await using run = await runReconnecting(emulator, { signal: life.signal })
  const failed = failureOf(run)
  while (emulator.live.sessions[0]?.setup === undefined) await new Promise(setImmediate)
  life.abort()
  expect(await failed).toMatchObject({ code: 'aborted' })
  await allClosed(emulator)
})

test('[LC1] errors do not contain the key', () => {
  const cause = new SyntaxError('Invalid URL: ws://x/?key=secret-key&alt=1')
  const error = new LiveConnectionError({
    code: 1006,
    reason: cause.message,
    phase: 'setup',
    cause,
  })
  expect(`${error.message} ${error.reason} ${String(error.cause)}`).not.toContain('secret-key')
})

test('[LC2] the first connection requests handles, and no event contains one', async () => {
  await using emulator = await startEmulator()
  await using run = await runReconnecting(emulator)
  run.say('[[say Hello.]]')
  const events = await run.until(isTurnComplete)
  expect(textOf(events)).toBe('Hello.')
  const session = await emulator.live.nextSession()
  expect(session.setup?.sessionResumption).toEqual({})
  await session.waitForSent((frame) => 'sessionResumptionUpdate' in frame)
  run.say('[[say Again.]]')
  events.push(...(await run.until(isTurnComplete)))
  expect(JSON.stringify([events, await run.stored()])).not.toMatch(/resumption|newHandle/i)
})
