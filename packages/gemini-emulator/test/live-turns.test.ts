import { expect, test } from 'vitest'

import { planTurn, type TurnSettings } from '../src/live/plan-turn.ts'
import type { Action } from '../src/responders/responder.ts'
import {
  connect,
  connectRaw,
  TURN_SETTINGS,
  interrupted,
  kinds,
  replies,
  say,
  startLive,
  TEXT_SETUP,
  textOf,
  turnComplete,
  wait,
} from './support/live-server.ts'

test('[EL12] a TEXT turn is sent in pieces and ends with generationComplete and turnComplete', async () => {
  await using server = await startLive({ respond: replies({ hi: [say('Good morning, Hanako.')] }) })
  await using client = await connect(server)
  client.say('hi')
  const messages = await client.until(turnComplete)
  expect(messages.map((message) => message.serverContent?.modelTurn?.parts?.[0]?.text)).toEqual([
    undefined,
    'Good ',
    'morning, ',
    'Hanako.',
    undefined,
    undefined,
  ])
  expect(kinds(messages)).toEqual([
    'setupComplete',
    'modelTurn',
    'modelTurn',
    'modelTurn',
    'generationComplete',
    'turnComplete',
    'usageMetadata',
  ])
})

test('[EL12] Japanese is sent character by character', async () => {
  await using server = await startLive({ respond: replies({ やあ: [say('元気です。')] }) })
  await using client = await connect(server)
  client.say('やあ')
  const messages = await client.until(turnComplete)
  expect(textOf(messages)).toBe('元気です。')
  expect(kinds(messages).filter((kind) => kind === 'modelTurn')).toHaveLength(5)
})

test('[EL12] the history has all turns', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  client.say('one')
  await client.until(turnComplete)
  client.say('two')
  await client.until(turnComplete)
  expect(server.prompts[1]?.contents).toEqual([
    { role: 'user', parts: [{ text: 'one' }] },
    { role: 'model', parts: [{ text: 'You said: one' }] },
    { role: 'user', parts: [{ text: 'two' }] },
  ])
})

test('[EL13] content accumulates until one message completes the turn', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  client.session.sendClientContent({ turns: 'first', turnComplete: false })
  client.session.sendClientContent({ turns: 'second', turnComplete: false })
  const session = await server.live.nextSession()
  await session.waitFor((frame) => JSON.stringify(frame).includes('second'))
  expect(server.prompts).toEqual([])
  client.session.sendClientContent({ turnComplete: true })
  await client.until(turnComplete)
  expect(server.prompts[0]?.contents.map((content) => content.parts?.[0]?.text)).toEqual([
    'first',
    'second',
  ])
})

test('[EL13] client content can contain turns of both sides', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  client.session.sendClientContent({
    turns: [
      { role: 'user', parts: [{ text: 'My name is Hanako.' }] },
      { role: 'model', parts: [{ text: 'Hello Hanako.' }] },
    ],
    turnComplete: false,
  })
  client.say('Who am I?')
  await client.until(turnComplete)
  expect(server.prompts).toHaveLength(1)
  expect(server.prompts[0]?.contents.map((content) => content.role)).toEqual([
    'user',
    'model',
    'user',
  ])
})

test('[EL13] an initial history gets no reply', async () => {
  await using server = await startLive()
  // The SDK (2.32.0) does not send historyConfig.
  const { send, socket } = await connectRaw(server)
  send({
    setup: { ...TEXT_SETUP.setup, historyConfig: { initialHistoryInClientContent: true } },
  })
  const turns = [{ role: 'user', parts: [{ text: 'before' }] }]
  send({ clientContent: { turns, turnComplete: false } })
  send({ clientContent: { turns, turnComplete: true } })
  send({ realtimeInput: { text: 'now' } })
  const session = await server.live.nextSession()
  await session.waitForSent((frame) => JSON.stringify(frame).includes('turnComplete'))
  expect(server.prompts).toHaveLength(1)
  expect(server.prompts[0]?.contents).toHaveLength(3)
  socket.close()
})

test('[EL14] realtime text gets a reply', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  client.session.sendRealtimeInput({ text: 'hi' })
  expect(textOf(await client.until(turnComplete))).toBe('You said: hi')
})

test('[EL14] the latest video frame is added to the next input only', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  client.session.sendRealtimeInput({ video: { mimeType: 'image/jpeg', data: 'b2xk' } })
  client.session.sendRealtimeInput({ video: { mimeType: 'image/jpeg', data: 'bmV3' } })
  client.session.sendRealtimeInput({ text: 'What is this?' })
  await client.until(turnComplete)
  client.session.sendRealtimeInput({ text: 'Thanks' })
  await client.until(turnComplete)
  expect(server.prompts[0]?.contents.at(-1)?.parts).toEqual([
    { inlineData: { mimeType: 'image/jpeg', data: 'bmV3' } },
    { text: 'What is this?' },
  ])
  expect(server.prompts[1]?.contents.at(-1)?.parts).toEqual([{ text: 'Thanks' }])
})

test('[EL15] new content interrupts the model, and the history keeps the text sent so far', async () => {
  const respond = replies({ story: [say('Once upon '), wait('never'), say('a time')] })
  await using server = await startLive({ respond })
  await using client = await connect(server)
  client.say('story')
  await client.until((message) => textOf([message]) === 'upon ')
  client.say('stop')
  expect(kinds(await client.until(turnComplete))).toEqual([
    'interrupted',
    'turnComplete',
    'usageMetadata',
  ])
  expect(textOf(await client.until(turnComplete))).toBe('You said: stop')
  expect(server.prompts[1]?.contents.slice(1)).toEqual([
    { role: 'model', parts: [{ text: 'Once upon ' }] },
    { role: 'user', parts: [{ text: 'stop' }] },
  ])
})

test('[EL18] thoughts are sent on request, counted separately, and not part of the history', async () => {
  const respond = replies({ hi: [{ type: 'think', text: 'They greet me.' }, say('Hello.')] })
  await using server = await startLive({ respond })
  await using client = await connect(server, {
    config: { thinkingConfig: { includeThoughts: true } },
  })
  client.say('hi')
  const messages = await client.until(turnComplete)
  const parts = messages.flatMap((message) => message.serverContent?.modelTurn?.parts ?? [])
  expect(parts.filter((part) => part.thought).map((part) => part.text)).toEqual([
    'They ',
    'greet ',
    'me.',
  ])
  expect(messages.at(-1)?.usageMetadata?.thoughtsTokenCount).toBeGreaterThan(0)
  expect(server.live.sessions[0]?.history.at(-1)?.parts).toEqual([{ text: 'Hello.' }])
  await using withoutThoughts = await connect(server)
  withoutThoughts.say('hi')
  expect(
    kinds(await withoutThoughts.until(turnComplete)).filter((kind) => kind === 'modelTurn'),
  ).toHaveLength(1)
})

test('[EL19] images, code, sources and other finish reasons are sent', async () => {
  const respond = replies({
    draw: [
      { type: 'image', mimeType: 'image/png', data: 'aW1n' },
      { type: 'code', language: 'PYTHON', code: '1+1', outcome: 'OUTCOME_OK', output: '2' },
      { type: 'ground', sources: [{ uri: 'https://example.com', title: 'Example' }] },
      { type: 'finish', reason: 'RESPONSE_REJECTED' },
    ],
  })
  await using server = await startLive({ respond })
  await using client = await connect(server)
  client.say('draw')
  const messages = await client.until(turnComplete)
  expect(messages.flatMap((message) => message.serverContent?.modelTurn?.parts ?? [])).toEqual([
    { inlineData: { mimeType: 'image/png', data: 'aW1n' } },
    { executableCode: { language: 'PYTHON', code: '1+1' } },
    { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '2' } },
  ])
  expect(messages.find((message) => message.serverContent?.groundingMetadata)).toMatchObject({
    serverContent: { groundingMetadata: { groundingChunks: [{ web: { title: 'Example' } }] } },
  })
  expect(messages.at(-1)?.serverContent?.turnCompleteReason).toBe('RESPONSE_REJECTED')
})

test('[EL19] raw messages are sent unchanged', async () => {
  const message = { serverContent: { waitingForInput: true } }
  await using server = await startLive({ respond: replies({ hi: [{ type: 'raw', message }] }) })
  await using client = await connect(server)
  client.say('hi')
  expect(kinds(await client.until(turnComplete))).toContain('waitingForInput')
})

test('[EL20] the pace applies after each piece until the script changes it', () => {
  const actions: Action[] = [say('one two '), { type: 'pace', ms: 0 }, say('three four')]
  const steps = [...planTurn(actions, { ...TURN_SETTINGS, paceMs: 7 })]
  expect(steps.map((step) => (step.type === 'pause' ? step.ms : step.type))).toEqual([
    'content',
    7,
    'content',
    7,
    'content',
    'content',
    'content',
    'complete',
  ])
})

test('[EL20] the pace applies to words after the audio has ended, and not to a word and its audio', () => {
  const spoken: TurnSettings = {
    ...TURN_SETTINGS,
    modality: 'AUDIO',
    transcribe: true,
    paceMs: 7,
    synthesize: (pieces) => pieces.map((_piece, index) => new Int16Array(index === 0 ? 100 : 0)),
  }
  const steps = [...planTurn([say('one two three')], spoken)]
  const shown = steps.map((step) => {
    if (step.type === 'pause') return step.ms
    return step.type === 'content' ? kindOf(step.content) : step.type
  })
  expect(shown).toEqual(['audio', 7, 'one ', 'two ', 7, 'three', 7, 'end', 'complete'])
})

function kindOf(content: {
  readonly modelTurn?: unknown
  readonly outputTranscription?: { readonly text?: string }
}): string | undefined {
  return content.modelTurn ? 'audio' : (content.outputTranscription?.text ?? 'end')
}

test('[EL15] the remaining actions of an interrupted turn are skipped', async () => {
  const close: Action = { type: 'close', code: 1011, reason: 'should not happen' }
  await using server = await startLive({
    respond: replies({ story: [say('Once'), wait('on'), close] }),
  })
  await using client = await connect(server)
  client.say('story')
  await client.until((message) => textOf([message]) === 'Once')
  server.live.sessions[0]?.interrupt()
  server.core.gates.release('on')
  await client.until(turnComplete)
  client.say('still there?')
  expect(textOf(await client.until(turnComplete))).toBe('You said: still there?')
})

test('[EL21] session.interrupt() has the effect of a barge-in', async () => {
  await using server = await startLive({
    respond: replies({ story: [say('Once'), wait('never')] }),
  })
  await using client = await connect(server)
  client.say('story')
  await client.until((message) => textOf([message]) === 'Once')
  server.live.sessions[0]?.interrupt()
  await client.until(interrupted)
  await client.until(turnComplete)
  expect(server.live.sessions[0]?.speaking).toBe(false)
})
