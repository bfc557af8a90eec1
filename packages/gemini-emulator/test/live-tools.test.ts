import { expect, test } from 'vitest'

import {
  audio,
  call,
  connect,
  FLASH_LIVE,
  kinds,
  replies,
  NATIVE_AUDIO,
  say,
  silence,
  startLive,
  textOf,
  toolCall,
  turnComplete,
  voice,
  wait,
  type Client,
} from './support/live-server.ts'

const sendResponses = (client: Client, ...ids: string[]) =>
  client.session.sendToolResponse({
    functionResponses: ids.map((id) => ({ id, name: id, response: { result: `${id} done` } })),
  })

test('[EL31] adjacent calls are sent in one message', async () => {
  const pay = call('pay', { args: { amount: 5 } })
  await using server = await startLive({
    respond: replies({ both: [say('Let me see. '), pay, call('look')] }),
  })
  await using client = await connect(server)
  client.say('both')
  const messages = await client.until(toolCall)
  expect(textOf(messages)).toBe('Let me see. ')
  expect(messages.at(-1)?.toolCall?.functionCalls).toEqual([
    { id: 'pay', name: 'pay', args: { amount: 5 } },
    { id: 'look', name: 'look', args: {} },
  ])
})

test('[EL31] separate calls are sent in separate messages', async () => {
  const respond = replies({ all: [call('a'), call('b', { separate: true }), call('c'), call('d')] })
  await using server = await startLive({ respond })
  await using client = await connect(server)
  client.say('all')
  const messages = await client.until(turnComplete)
  expect(
    messages
      .flatMap((message) => message.toolCall ?? [])
      .map(({ functionCalls = [] }) => functionCalls.map(({ name }) => name)),
  ).toEqual([['a'], ['b'], ['c', 'd']])
})

test('[EL31] a call without an id gets one', async () => {
  const respond = replies({ pay: [{ type: 'call', name: 'pay', args: {} }] })
  await using server = await startLive({ respond })
  await using client = await connect(server)
  const ids = new Set<string | undefined>()
  for (let round = 0; round < 2; round++) {
    client.say('pay')
    const id = (await client.until(toolCall)).at(-1)?.toolCall?.functionCalls?.[0]?.id ?? ''
    ids.add(id)
    client.session.sendToolResponse({ functionResponses: { id, name: 'pay', response: {} } })
    await client.until((message) => message.serverContent?.generationComplete)
  }
  expect(ids.size).toBe(2)
})

test('[EL31] text in the same reply is sent before a blocking call', async () => {
  await using server = await startLive({
    respond: replies({ pay: [call('pay'), say('One moment.')] }),
  })
  await using client = await connect(server)
  client.say('pay')
  expect(textOf(await client.until(toolCall))).toBe('One moment.')
})

test('[EL32] the model is silent until every call has its response, in any order', async () => {
  const respond = replies({
    all: [call('a'), call('b'), call('c')],
    '(a, b, c answered)': [say('All done.')],
  })
  await using server = await startLive({ respond })
  await using client = await connect(server)
  const session = await server.live.nextSession()
  client.say('all')
  await client.until(turnComplete)
  sendResponses(client, 'c')
  sendResponses(client, 'a')
  await session.waitFor((frame) => JSON.stringify(frame).includes('a done'))
  expect(session.pendingCalls.map(({ name }) => name)).toEqual(['b'])
  expect(session.speaking).toBe(false)
  expect(server.prompts).toHaveLength(1)
  sendResponses(client, 'b')
  expect(textOf(await client.until(turnComplete))).toBe('All done.')
  expect(
    server.prompts[1]?.contents.at(-1)?.parts?.map((part) => part.functionResponse?.id),
  ).toEqual(['a', 'b', 'c'])
})

test('[EL32] the model waits for later calls of the same turn', async () => {
  const respond = replies({
    all: [call('a'), wait('more'), call('b')],
    '(a, b answered)': [say('Both done.')],
  })
  await using server = await startLive({ respond })
  await using client = await connect(server)
  const session = await server.live.nextSession()
  client.say('all')
  await client.until(toolCall)
  sendResponses(client, 'a')
  await session.waitFor((frame) => 'toolResponse' in frame)
  server.core.gates.release('more')
  await client.until(toolCall)
  sendResponses(client, 'b')
  await client.until((message) => message.serverContent?.modelTurn)
  expect(server.prompts).toHaveLength(2)
  expect(server.prompts[1]?.contents.map(({ parts }) => parts?.length)).toEqual([1, 2, 2])
})

test('[EL33] text received meanwhile gets its reply after the responses', async () => {
  const respond = replies({ pay: [call('pay')], '(pay answered)': [say('Paid.')] })
  await using server = await startLive({ respond })
  await using client = await connect(server)
  const session = await server.live.nextSession()
  client.say('pay')
  await client.until(turnComplete)
  client.say('hurry up')
  await session.waitFor((frame) => JSON.stringify(frame).includes('hurry'))
  expect(session.pendingCalls).toHaveLength(1)
  expect(server.prompts).toHaveLength(1)
  sendResponses(client, 'pay')
  expect(textOf(await client.until(turnComplete))).toBe('Paid.')
  expect(textOf(await client.until(turnComplete))).toBe('You said: hurry up')
})

test('[EL34] a barge-in cancels blocking calls; late responses are ignored and recorded', async () => {
  await using server = await startLive({ respond: replies({ both: [call('a'), call('b')] }) })
  await using client = await connect(server)
  const session = await server.live.nextSession()
  client.say('both')
  await client.until(turnComplete)
  sendResponses(client, 'a')
  server.live.queueTranscript('Never mind.')
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  const messages = await client.until(turnComplete)
  expect(messages[0]?.toolCallCancellation?.ids).toEqual(['b'])
  expect(kinds(messages)).not.toContain('interrupted')
  expect(textOf(messages)).toBe('You said: Never mind.')
  sendResponses(client, 'b')
  await session.waitFor((frame) => JSON.stringify(frame).includes('b done'))
  expect(session.ignoredResponses).toEqual([{ id: 'b', name: 'b', response: { result: 'b done' } }])
  expect(server.prompts).toHaveLength(2)
  expect(server.prompts[1]?.contents.map(({ parts }) => Object.keys(parts?.[0] ?? {}))).toEqual([
    ['text'],
    ['functionCall'],
    ['functionResponse'],
    ['text'],
  ])
})

test('[EL34] a turn that is still open is interrupted with its calls', async () => {
  await using server = await startLive({ respond: replies({ pay: [call('pay')] }) })
  await using client = await connect(server, { model: FLASH_LIVE })
  client.say('pay')
  await client.until(toolCall)
  client.session.sendRealtimeInput({ audio: audio(voice(300)) })
  expect(kinds(await client.until(turnComplete))).toEqual([
    'toolCallCancellation',
    'interrupted',
    'turnComplete',
    'usageMetadata',
  ])
})

test('[EL34] without cancelOnBargeIn the calls stay open', async () => {
  const respond = replies({ pay: [call('pay')], '(pay answered)': [say('Paid.')] })
  await using server = await startLive({ respond, cancelOnBargeIn: false })
  await using client = await connect(server)
  const session = await server.live.nextSession()
  client.say('pay')
  await client.until(turnComplete)
  server.live.queueTranscript('How long?')
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  await session.waitFor((frame) => 'realtimeInput' in frame)
  expect(session.pendingCalls).toHaveLength(1)
  sendResponses(client, 'pay')
  expect(textOf(await client.until(turnComplete))).toBe('Paid.')
  expect(textOf(await client.until(turnComplete))).toBe('You said: How long?')
})

test('[EL35] unknown ids and repeated responses have no effect', async () => {
  await using server = await startLive({ respond: replies({ both: [call('a'), call('b')] }) })
  await using client = await connect(server)
  const session = await server.live.nextSession()
  client.say('both')
  await client.until(turnComplete)
  sendResponses(client, 'unknown', 'a')
  sendResponses(client, 'a')
  client.session.sendToolResponse({
    functionResponses: { id: '', name: 'b', response: { last: true } },
  })
  await session.waitFor((frame) => JSON.stringify(frame).includes('last'))
  expect(session.ignoredResponses.map(({ id }) => id)).toEqual(['unknown', 'a', ''])
  expect(session.pendingCalls.map(({ id }) => id)).toEqual(['b'])
})

test.each([
  [NATIVE_AUDIO, undefined, true],
  [FLASH_LIVE, undefined, false],
  [FLASH_LIVE, true, true],
  [NATIVE_AUDIO, false, false],
] as const)(
  '[EL36] %s with toolTurnComplete %s: whether the turn of a call completes immediately is %s',
  async (model, toolTurnComplete, completed) => {
    const respond = replies({ pay: [call('pay')], '(pay answered)': [say('Paid.')] })
    await using server = await startLive(
      toolTurnComplete === undefined ? { respond } : { respond, toolTurnComplete },
    )
    await using client = await connect(server, { model })
    client.say('pay')
    await client.until(toolCall)
    const session = await server.live.nextSession()
    sendResponses(client, 'pay')
    const messages = await client.until((message) => message.serverContent?.generationComplete)
    expect(kinds(messages).includes('turnComplete')).toBe(completed)
    expect(session.sent.filter((frame) => 'toolCall' in frame)).toHaveLength(1)
  },
)

test('[EL37] `cancel` cancels pending calls and ends the turn', async () => {
  const respond = replies({ pay: [call('pay'), wait('cancel'), { type: 'cancel' }] })
  await using server = await startLive({ respond })
  await using client = await connect(server, { model: FLASH_LIVE })
  client.say('pay')
  await client.until(toolCall)
  server.core.gates.release('cancel')
  const messages = await client.until(turnComplete)
  expect(messages[0]?.toolCallCancellation?.ids).toEqual(['pay'])
  expect(kinds(messages)).not.toContain('interrupted')
  client.say('ok')
  expect(textOf(await client.until(turnComplete))).toBe('You said: ok')
})
