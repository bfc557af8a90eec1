import { expect, test } from 'vitest'

import type { Action } from '../src/responders/responder.ts'
import {
  connect,
  connectRaw,
  replies,
  say,
  startLive,
  TEXT_SETUP,
  textOf,
  formatClose,
  turnComplete,
  wait,
} from './live-server.ts'

test('[EL44] goAway is sent, then the connection closes with 1001', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  server.live.sessions[0]?.goAway(50)
  const messages = await client.until((message) => message.goAway)
  expect(messages.at(-1)?.goAway?.timeLeft).toBe('0.05s')
  expect(await client.closed).toMatchObject({ code: 1001 })
})

test('[EL44] a client that disconnects after goAway clears the timer', async () => {
  await using server = await startLive({
    respond: replies({ bye: [{ type: 'go-away', timeLeftMs: 3_600_000 }, say('Soon.')] }),
  })
  await using client = await connect(server)
  client.say('bye')
  expect(textOf(await client.until(turnComplete))).toBe('Soon.')
  client.session.close()
  expect(await server.live.sessions[0]?.ended).toMatchObject({ code: 1005 })
})

test.each<[string, Action, { code: number; reason: string }]>([
  ['close', { type: 'close', code: 1011, reason: 'down' }, { code: 1011, reason: 'down' }],
  ['close', { type: 'close', code: 4001, reason: '' }, { code: 4001, reason: '' }],
  ['close 1006', { type: 'close', code: 1006, reason: '' }, { code: 1006, reason: '' }],
  ['drop', { type: 'drop' }, { code: 1006, reason: '' }],
  ['fail 400', { type: 'fail', status: 400, message: 'no' }, { code: 1007, reason: 'no' }],
  ['fail 403', { type: 'fail', status: 403, message: 'no' }, { code: 1008, reason: 'no' }],
  ['fail 503', { type: 'fail', status: 503, message: 'busy' }, { code: 1011, reason: 'busy' }],
])('[EL45] a script can end the connection: %s %j', async (_name, action, closing) => {
  await using server = await startLive({
    respond: replies({ go: [say('Well '), action, say('never said')] }),
  })
  await using client = await connect(server)
  client.say('go')
  await client.until((message) => textOf([message]) === 'Well ')
  expect(await client.closed).toEqual(closing)
  const [session] = server.live.sessions
  expect(session?.history.at(-1)?.role).toBe('user')
  expect(JSON.stringify(session?.sent)).not.toContain('never')
})

test('[EL45] a test can end the connection', async () => {
  await using server = await startLive()
  await using first = await connect(server)
  server.live.sessions[0]?.close(1012, 'restart')
  expect(await first.closed).toEqual({ code: 1012, reason: 'restart' })
  expect(await server.live.sessions[0]?.ended).toEqual({ code: 1012, reason: 'restart' })
  expect(server.live.sessions[0]?.closed).toEqual({ code: 1012, reason: 'restart' })
  await using second = await connect(server)
  server.live.sessions[1]?.drop()
  expect(await second.closed).toMatchObject({ code: 1006 })
})

test('[EL45] nothing is read after the server has closed', async () => {
  await using server = await startLive()
  const { send, closed } = await connectRaw(server)
  send(TEXT_SETUP)
  send({ nonsense: 1 })
  send({ realtimeInput: { text: 'too late' } })
  await closed
  expect(server.prompts).toEqual([])
  expect(server.live.sessions[0]?.received).toHaveLength(2)
})

test('[EL46] without a reply the connection closes with 1011', async () => {
  await using server = await startLive({ respond: () => undefined })
  await using client = await connect(server)
  client.say('hi')
  expect(formatClose(await client.closed)).toMatch(/^1011 .*no responder replied to this prompt/)
})

test('[EL47] a turn is aborted when the connection ends', async () => {
  await using server = await startLive({
    respond: replies({ story: [say('Once'), wait('on'), say('x')] }),
  })
  const signals: AbortSignal[] = []
  const { gates } = server.core
  const waitAtGate = gates.wait.bind(gates)
  Object.assign(gates, {
    wait(name: string, signal: AbortSignal) {
      signals.push(signal)
      return waitAtGate(name, signal)
    },
  })
  await using client = await connect(server)
  client.say('story')
  await client.until((message) => textOf([message]) === 'Once')
  const [session] = server.live.sessions
  client.session.close()
  await session?.ended
  expect(signals.map(({ aborted }) => aborted)).toEqual([true])
  expect(session?.speaking).toBe(false)
  const sent = session?.sent.length
  server.core.gates.release('on')
  expect(session?.sent.length).toBe(sent)
})
