import { expect, test } from 'vitest'

import type { Act } from '../src/mind.ts'
import {
  connect,
  connectRaw,
  mindOf,
  say,
  startLab,
  TEXT_SETUP,
  textOf,
  told,
  turnComplete,
  wait,
} from './live-lab.ts'

test('[EL44] goAway is announced, then the connection closes with 1001', async () => {
  await using lab = await startLab()
  await using client = await connect(lab)
  lab.desk.sessions[0]?.goAway(50)
  const messages = await client.until((message) => message.goAway)
  expect(messages.at(-1)?.goAway?.timeLeft).toBe('0.05s')
  expect(await client.closed).toMatchObject({ code: 1001 })
})

test('[EL44] a client that leaves after goAway leaves no timer behind', async () => {
  await using lab = await startLab({
    mind: mindOf({ bye: [{ type: 'go-away', timeLeftMs: 3_600_000 }, say('Soon.')] }),
  })
  await using client = await connect(lab)
  client.say('bye')
  expect(textOf(await client.until(turnComplete))).toBe('Soon.')
  client.session.close()
  expect(await lab.desk.sessions[0]?.ended).toMatchObject({ code: 1005 })
})

test.each<[string, Act, { code: number; reason: string }]>([
  ['close', { type: 'close', code: 1011, reason: 'down' }, { code: 1011, reason: 'down' }],
  ['close', { type: 'close', code: 4001, reason: '' }, { code: 4001, reason: '' }],
  ['close 1006', { type: 'close', code: 1006, reason: '' }, { code: 1006, reason: '' }],
  ['drop', { type: 'drop' }, { code: 1006, reason: '' }],
  ['fail 400', { type: 'fail', status: 400, message: 'no' }, { code: 1007, reason: 'no' }],
  ['fail 403', { type: 'fail', status: 403, message: 'no' }, { code: 1008, reason: 'no' }],
  ['fail 503', { type: 'fail', status: 503, message: 'busy' }, { code: 1011, reason: 'busy' }],
])('[EL45] the script can end the connection: %s %j', async (_name, act, closing) => {
  await using lab = await startLab({ mind: mindOf({ go: [say('Well '), act, say('never said')] }) })
  await using client = await connect(lab)
  client.say('go')
  await client.until((message) => textOf([message]) === 'Well ')
  expect(await client.closed).toEqual(closing)
  const [session] = lab.desk.sessions
  expect(session?.history.at(-1)?.role).toBe('user')
  expect(JSON.stringify(session?.sent)).not.toContain('never')
})

test('[EL45] the test can end the connection', async () => {
  await using lab = await startLab()
  await using first = await connect(lab)
  lab.desk.sessions[0]?.close(1012, 'restart')
  expect(await first.closed).toEqual({ code: 1012, reason: 'restart' })
  expect(await lab.desk.sessions[0]?.ended).toEqual({ code: 1012, reason: 'restart' })
  expect(lab.desk.sessions[0]?.closed).toEqual({ code: 1012, reason: 'restart' })
  await using second = await connect(lab)
  lab.desk.sessions[1]?.drop()
  expect(await second.closed).toMatchObject({ code: 1006 })
})

test('[EL45] nothing is taken once the server has closed', async () => {
  await using lab = await startLab()
  const { send, closed } = await connectRaw(lab)
  send(TEXT_SETUP)
  send({ nonsense: 1 })
  send({ realtimeInput: { text: 'too late' } })
  await closed
  expect(lab.prompts).toEqual([])
  expect(lab.desk.sessions[0]?.received).toHaveLength(2)
})

test('[EL46] a mind without an answer ends the connection with 1011', async () => {
  await using lab = await startLab({ mind: () => undefined })
  await using client = await connect(lab)
  client.say('hi')
  expect(told(await client.closed)).toMatch(/^1011 .*no mind answers this prompt/)
})

test('[EL47] a turn is abandoned when the connection ends', async () => {
  await using lab = await startLab({ mind: mindOf({ story: [say('Once'), wait('on'), say('x')] }) })
  const signals: AbortSignal[] = []
  const { gates } = lab.world
  const waitAtGate = gates.wait.bind(gates)
  Object.assign(gates, {
    wait(name: string, signal: AbortSignal) {
      signals.push(signal)
      return waitAtGate(name, signal)
    },
  })
  await using client = await connect(lab)
  client.say('story')
  await client.until((message) => textOf([message]) === 'Once')
  const [session] = lab.desk.sessions
  client.session.close()
  await session?.ended
  expect(signals.map(({ aborted }) => aborted)).toEqual([true])
  expect(session?.speaking).toBe(false)
  const sent = session?.sent.length
  lab.world.gates.release('on')
  expect(session?.sent.length).toBe(sent)
})
