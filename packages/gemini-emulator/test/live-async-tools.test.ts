import {
  Behavior,
  FunctionResponseScheduling,
  type LiveConnectConfig,
  ThinkingLevel,
} from '@google/genai'
import { expect, test } from 'vitest'

import { scriptResponder } from '../src/index.ts'
import {
  audio,
  call,
  connect,
  interrupted,
  kinds,
  rejection,
  replies,
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

const { INTERRUPT, SILENT, WHEN_IDLE } = FunctionResponseScheduling

const NON_BLOCKING: LiveConnectConfig = {
  tools: [{ functionDeclarations: [{ name: 'book', behavior: Behavior.NON_BLOCKING }] }],
}

const booking = {
  book: [call('book'), say('I am on it.')],
  '(book answered)': [say('It is booked.')],
}
const sendResponse = (
  client: Client,
  scheduling: FunctionResponseScheduling,
  willContinue?: boolean,
) =>
  client.session.sendToolResponse({
    functionResponses: {
      id: 'book',
      name: 'book',
      response: { ok: true },
      scheduling,
      ...(willContinue !== undefined && { willContinue }),
    },
  })

test('[EL38] the model continues to speak and replies to the user while a call is pending', async () => {
  await using server = await startLive({ respond: replies(booking) })
  await using client = await connect(server, { config: NON_BLOCKING })
  client.say('book')
  const messages = await client.until(turnComplete)
  expect(kinds(messages).indexOf('toolCall')).toBeLessThan(kinds(messages).indexOf('modelTurn'))
  expect(textOf(messages)).toBe('I am on it.')
  client.say('What time is it?')
  expect(textOf(await client.until(turnComplete))).toBe('You said: What time is it?')
  const session = await server.live.nextSession()
  expect(session.pendingCalls.map(({ name }) => name)).toEqual(['book'])
})

test('[EL38] a barge-in does not cancel a non-blocking call', async () => {
  await using server = await startLive({ respond: replies(booking) })
  await using client = await connect(server, { config: NON_BLOCKING })
  client.say('book')
  await client.until(turnComplete)
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  expect(kinds(await client.until(turnComplete))).not.toContain('toolCallCancellation')
  sendResponse(client, WHEN_IDLE)
  expect(textOf(await client.until(turnComplete))).toBe('It is booked.')
})

test('[EL39] an INTERRUPT response starts a reply immediately', async () => {
  const respond = replies({ ...booking, story: [say('Once upon '), wait('never')] })
  await using server = await startLive({ respond })
  await using client = await connect(server, { config: NON_BLOCKING })
  client.say('book')
  await client.until(turnComplete)
  client.say('story')
  await client.until((message) => textOf([message]) === 'upon ')
  sendResponse(client, INTERRUPT)
  await client.until(interrupted)
  await client.until(turnComplete)
  expect(textOf(await client.until(turnComplete))).toBe('It is booked.')
})

test('[EL39] a WHEN_IDLE response waits for the end of the turn', async () => {
  const respond = replies({ ...booking, story: [say('Once upon '), wait('on'), say('a time')] })
  await using server = await startLive({ respond })
  await using client = await connect(server, { config: NON_BLOCKING })
  const session = await server.live.nextSession()
  client.say('book')
  await client.until(turnComplete)
  client.say('story')
  await client.until((message) => textOf([message]) === 'upon ')
  sendResponse(client, WHEN_IDLE)
  await session.waitFor((frame) => 'toolResponse' in frame)
  server.core.gates.release('on')
  const story = await client.until(turnComplete)
  expect(textOf(story)).toBe('a time')
  expect(kinds(story)).not.toContain('interrupted')
  expect(textOf(await client.until(turnComplete))).toBe('It is booked.')
})

test('[EL39] a SILENT response is added to the history without a reply', async () => {
  await using server = await startLive({ respond: replies(booking) })
  await using client = await connect(server, { config: NON_BLOCKING })
  client.say('book')
  await client.until(turnComplete)
  sendResponse(client, SILENT)
  client.say('And?')
  expect(textOf(await client.until(turnComplete))).toBe('You said: And?')
  expect(server.prompts).toHaveLength(2)
  expect(server.prompts[1]?.contents.at(-2)?.parts?.[0]?.functionResponse?.id).toBe('book')
})

test('[EL39] scheduling inside the response is read as well', async () => {
  await using server = await startLive({ respond: replies(booking) })
  await using client = await connect(server, { config: NON_BLOCKING })
  client.say('book')
  await client.until(turnComplete)
  client.session.sendToolResponse({
    functionResponses: { id: 'book', name: 'book', response: { ok: true, scheduling: SILENT } },
  })
  client.say('And?')
  await client.until(turnComplete)
  expect(server.prompts).toHaveLength(2)
})

test('[EL40] willContinue keeps the call open for further responses', async () => {
  await using server = await startLive({ respond: replies(booking) })
  await using client = await connect(server, { config: NON_BLOCKING })
  const session = await server.live.nextSession()
  client.say('book')
  await client.until(turnComplete)
  sendResponse(client, WHEN_IDLE, true)
  await client.until(turnComplete)
  expect(session.pendingCalls).toHaveLength(1)
  sendResponse(client, WHEN_IDLE, false)
  await client.until(turnComplete)
  expect(session.pendingCalls).toEqual([])
  sendResponse(client, WHEN_IDLE)
  await session.waitFor(() => session.ignoredResponses.length === 1)
  expect(server.prompts).toHaveLength(3)
})

test('[EL40] a blocking call ignores willContinue and scheduling', async () => {
  const respond = replies({ pay: [call('pay')], '(pay answered)': [say('Paid.')] })
  await using server = await startLive({ respond })
  await using client = await connect(server)
  client.say('pay')
  await client.until(turnComplete)
  client.session.sendToolResponse({
    functionResponses: {
      id: 'pay',
      name: 'pay',
      response: {},
      willContinue: true,
      scheduling: SILENT,
    },
  })
  expect(textOf(await client.until(turnComplete))).toBe('Paid.')
  expect(server.live.sessions[0]?.pendingCalls).toEqual([])
})

test('[EM490] a partial response does not count as a result for the next step of a script', async () => {
  await using server = await startLive({ respond: scriptResponder })
  await using client = await connect(server, { config: NON_BLOCKING })
  client.say('[[call book]][[then]][[say Booked.]]')
  const [called] = (await client.until(toolCall)).flatMap(
    (message) => message.toolCall?.functionCalls ?? [],
  )
  await client.until(turnComplete)
  const respond = (scheduling: FunctionResponseScheduling, willContinue: boolean): void =>
    client.session.sendToolResponse({
      functionResponses: {
        id: called?.id ?? '',
        name: 'book',
        response: { willContinue },
        scheduling,
        willContinue,
      },
    })
  respond(SILENT, true)
  respond(WHEN_IDLE, false)
  expect(textOf(await client.until(turnComplete))).toBe('Booked.')
  expect(server.prompts).toHaveLength(2)
})

test('[EL490] calls of gemini-3.8-live are non-blocking unless they are declared as blocking', async () => {
  await using server = await startLive({ respond: replies(booking) })
  const model = 'gemini-3.8-live'
  const tools = [{ functionDeclarations: [{ name: 'book' }] }]
  await using nonBlocking = await connect(server, { model, config: { tools } })
  nonBlocking.say('book')
  await nonBlocking.until(turnComplete)
  nonBlocking.say('And?')
  expect(textOf(await nonBlocking.until(turnComplete))).toBe('You said: And?')
  const declared = [{ functionDeclarations: [{ name: 'book', behavior: Behavior.BLOCKING }] }]
  await using blocking = await connect(server, { model, config: { tools: declared } })
  blocking.say('book')
  await blocking.until(turnComplete)
  blocking.say('And?')
  sendResponse(blocking, WHEN_IDLE)
  expect(textOf(await blocking.until(turnComplete))).toBe('It is booked.')
})

test.each([
  ['thinking_level', { thinkingConfig: { thinkingLevel: ThinkingLevel.LOW } }],
  ['enable_affective_dialog', { enableAffectiveDialog: true }],
  ['proactive_audio', { proactivity: { proactiveAudio: false } }],
])('[EL490] gemini-3.8-live rejects a setup with %s', async (field, config) => {
  await using server = await startLive()
  const refused = await rejection(server, { model: 'gemini-3.8-live', config })
  expect(refused.code).toBe(1007)
  expect(refused.reason).toContain(field)
})

const LIVE_38 = 'gemini-3.8-live'

test('[EL1080] an INTERRUPT response waits while the person speaks', async () => {
  const respond = replies(booking)
  await using server = await startLive({ respond, defaultTranscript: 'Hm.' })
  await using client = await connect(server, { model: LIVE_38, config: NON_BLOCKING })
  client.say('book')
  await client.until(turnComplete)
  client.session.sendRealtimeInput({ audio: audio(voice(300)) })
  sendResponse(client, INTERRUPT)
  const session = await server.live.nextSession()
  await session.waitFor((frame) => 'toolResponse' in frame)
  expect(session.speaking).toBe(false)
  client.session.sendRealtimeInput({ audio: audio(silence(600)) })
  expect(textOf(await client.until(turnComplete))).toBe('It is booked.')
  expect(textOf(await client.until(turnComplete))).toBe('You said: Hm.')
})

test.each([
  ['by its model', LIVE_38, undefined, 3],
  ['by an option', 'gemini-2.5-flash-live', 1, 2],
  ['not by another model', 'gemini-2.5-flash-live', undefined, 1],
])('[EL1081] a call with an empty result is repeated %s', async (_how, model, repeats, times) => {
  await using server = await startLive({
    respond: scriptResponder,
    ...(repeats !== undefined && { repeatsEmptyCalls: repeats }),
  })
  await using client = await connect(server, { model, config: NON_BLOCKING })
  client.say('[[call book {"seat":1}]][[then]][[say Well.]]')
  for (let count = 1; count <= times; count += 1) {
    const [message] = (await client.until(toolCall)).slice(-1)
    const { id = '', args } = message?.toolCall?.functionCalls?.[0] ?? {}
    expect(args).toEqual({ seat: 1 })
    client.session.sendToolResponse({ functionResponses: { id, name: 'book', response: {} } })
  }
  const session = await server.live.nextSession()
  await session.waitForSent((frame) => JSON.stringify(frame).includes('turnComplete'))
  await expect
    .poll(() => JSON.stringify(session.history.at(-1)?.parts))
    .not.toContain('functionCall')
  const calls = session.history.flatMap(({ parts = [] }) => parts.filter((p) => p.functionCall))
  expect(calls).toHaveLength(times)
})
