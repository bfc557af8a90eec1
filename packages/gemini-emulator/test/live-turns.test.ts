import { expect, test } from 'vitest'

import { planTurn } from '../src/live/plan-turn.ts'
import type { Act } from '../src/mind.ts'
import {
  connect,
  connectRaw,
  DELIVERY,
  interrupted,
  kinds,
  mindOf,
  say,
  startLab,
  TEXT_SETUP,
  textOf,
  turnComplete,
  wait,
} from './live-lab.ts'

test('[EL12] a written turn comes in pieces and ends in generationComplete and turnComplete', async () => {
  await using lab = await startLab({ mind: mindOf({ hi: [say('Good morning, Hanako.')] }) })
  await using client = await connect(lab)
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

test('[EL12] Japanese comes character by character', async () => {
  await using lab = await startLab({ mind: mindOf({ やあ: [say('元気です。')] }) })
  await using client = await connect(lab)
  client.say('やあ')
  const messages = await client.until(turnComplete)
  expect(textOf(messages)).toBe('元気です。')
  expect(kinds(messages).filter((kind) => kind === 'modelTurn')).toHaveLength(5)
})

test('[EL12] the conversation is remembered from turn to turn', async () => {
  await using lab = await startLab()
  await using client = await connect(lab)
  client.say('one')
  await client.until(turnComplete)
  client.say('two')
  await client.until(turnComplete)
  expect(lab.prompts[1]?.contents).toEqual([
    { role: 'user', parts: [{ text: 'one' }] },
    { role: 'model', parts: [{ text: 'You said: one' }] },
    { role: 'user', parts: [{ text: 'two' }] },
  ])
})

test('[EL13] content without turnComplete gathers until one completes the turn', async () => {
  await using lab = await startLab()
  await using client = await connect(lab)
  client.session.sendClientContent({ turns: 'first', turnComplete: false })
  client.session.sendClientContent({ turns: 'second', turnComplete: false })
  const session = await lab.desk.nextSession()
  await session.waitFor((frame) => JSON.stringify(frame).includes('second'))
  expect(lab.prompts).toEqual([])
  client.session.sendClientContent({ turnComplete: true })
  await client.until(turnComplete)
  expect(lab.prompts[0]?.contents.map((content) => content.parts?.[0]?.text)).toEqual([
    'first',
    'second',
  ])
})

test('[EL13] a history can be seeded with the turns of both sides', async () => {
  await using lab = await startLab()
  await using client = await connect(lab)
  client.session.sendClientContent({
    turns: [
      { role: 'user', parts: [{ text: 'My name is Hanako.' }] },
      { role: 'model', parts: [{ text: 'Hello Hanako.' }] },
    ],
    turnComplete: false,
  })
  client.say('Who am I?')
  await client.until(turnComplete)
  expect(lab.prompts).toHaveLength(1)
  expect(lab.prompts[0]?.contents.map((content) => content.role)).toEqual(['user', 'model', 'user'])
})

test('[EL13] an initial history is not answered', async () => {
  await using lab = await startLab()
  // The SDK (2.32.0) does not send historyConfig.
  const { send, socket } = await connectRaw(lab)
  send({
    setup: { ...TEXT_SETUP.setup, historyConfig: { initialHistoryInClientContent: true } },
  })
  const turns = [{ role: 'user', parts: [{ text: 'before' }] }]
  send({ clientContent: { turns, turnComplete: false } })
  send({ clientContent: { turns, turnComplete: true } })
  send({ realtimeInput: { text: 'now' } })
  const session = await lab.desk.nextSession()
  await session.waitForSent((frame) => JSON.stringify(frame).includes('turnComplete'))
  expect(lab.prompts).toHaveLength(1)
  expect(lab.prompts[0]?.contents).toHaveLength(3)
  socket.close()
})

test('[EL14] realtime text is answered', async () => {
  await using lab = await startLab()
  await using client = await connect(lab)
  client.session.sendRealtimeInput({ text: 'hi' })
  expect(textOf(await client.until(turnComplete))).toBe('You said: hi')
})

test('[EL14] the newest video frame goes with the next input, and only with that', async () => {
  await using lab = await startLab()
  await using client = await connect(lab)
  client.session.sendRealtimeInput({ video: { mimeType: 'image/jpeg', data: 'b2xk' } })
  client.session.sendRealtimeInput({ video: { mimeType: 'image/jpeg', data: 'bmV3' } })
  client.session.sendRealtimeInput({ text: 'What is this?' })
  await client.until(turnComplete)
  client.session.sendRealtimeInput({ text: 'Thanks' })
  await client.until(turnComplete)
  expect(lab.prompts[0]?.contents.at(-1)?.parts).toEqual([
    { inlineData: { mimeType: 'image/jpeg', data: 'bmV3' } },
    { text: 'What is this?' },
  ])
  expect(lab.prompts[1]?.contents.at(-1)?.parts).toEqual([{ text: 'Thanks' }])
})

test('[EL15] new content interrupts the model, which remembers what it got to say', async () => {
  const mind = mindOf({ story: [say('Once upon '), wait('never'), say('a time')] })
  await using lab = await startLab({ mind })
  await using client = await connect(lab)
  client.say('story')
  await client.until((message) => textOf([message]) === 'upon ')
  client.say('stop')
  expect(kinds(await client.until(turnComplete))).toEqual([
    'interrupted',
    'turnComplete',
    'usageMetadata',
  ])
  expect(textOf(await client.until(turnComplete))).toBe('You said: stop')
  expect(lab.prompts[1]?.contents.slice(1)).toEqual([
    { role: 'model', parts: [{ text: 'Once upon ' }] },
    { role: 'user', parts: [{ text: 'stop' }] },
  ])
})

test('[EL18] thoughts are shown if asked for, counted apart, and not remembered', async () => {
  const mind = mindOf({ hi: [{ type: 'think', text: 'They greet me.' }, say('Hello.')] })
  await using lab = await startLab({ mind })
  await using client = await connect(lab, { config: { thinkingConfig: { includeThoughts: true } } })
  client.say('hi')
  const messages = await client.until(turnComplete)
  const parts = messages.flatMap((message) => message.serverContent?.modelTurn?.parts ?? [])
  expect(parts.filter((part) => part.thought).map((part) => part.text)).toEqual([
    'They ',
    'greet ',
    'me.',
  ])
  expect(messages.at(-1)?.usageMetadata?.thoughtsTokenCount).toBeGreaterThan(0)
  expect(lab.desk.sessions[0]?.history.at(-1)?.parts).toEqual([{ text: 'Hello.' }])
  await using quiet = await connect(lab)
  quiet.say('hi')
  expect(
    kinds(await quiet.until(turnComplete)).filter((kind) => kind === 'modelTurn'),
  ).toHaveLength(1)
})

test('[EL19] images, code, sources and other endings have their place on the wire', async () => {
  const mind = mindOf({
    draw: [
      { type: 'image', mimeType: 'image/png', data: 'aW1n' },
      { type: 'code', language: 'PYTHON', code: '1+1', outcome: 'OUTCOME_OK', output: '2' },
      { type: 'ground', sources: [{ uri: 'https://example.com', title: 'Example' }] },
      { type: 'finish', reason: 'RESPONSE_REJECTED' },
    ],
  })
  await using lab = await startLab({ mind })
  await using client = await connect(lab)
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

test('[EL19] raw messages are sent as they stand', async () => {
  const message = { serverContent: { waitingForInput: true } }
  await using lab = await startLab({ mind: mindOf({ hi: [{ type: 'raw', message }] }) })
  await using client = await connect(lab)
  client.say('hi')
  expect(kinds(await client.until(turnComplete))).toContain('waitingForInput')
})

test('[EL20] the pace lies after each piece until the script changes it', () => {
  const acts: Act[] = [say('one two '), { type: 'pace', ms: 0 }, say('three four')]
  const steps = [...planTurn(acts, { ...DELIVERY, paceMs: 7 })]
  expect(steps.map((step) => (step.type === 'pause' ? step.ms : step.type))).toEqual([
    'show',
    7,
    'show',
    7,
    'show',
    'show',
    'show',
    'complete',
  ])
})

test('[EL15] what an interrupted turn still had to do is left undone', async () => {
  const close: Act = { type: 'close', code: 1011, reason: 'should not happen' }
  await using lab = await startLab({ mind: mindOf({ story: [say('Once'), wait('on'), close] }) })
  await using client = await connect(lab)
  client.say('story')
  await client.until((message) => textOf([message]) === 'Once')
  lab.desk.sessions[0]?.interrupt()
  lab.world.gates.release('on')
  await client.until(turnComplete)
  client.say('still there?')
  expect(textOf(await client.until(turnComplete))).toBe('You said: still there?')
})

test('[EL21] an interruption by the test looks like any other', async () => {
  await using lab = await startLab({ mind: mindOf({ story: [say('Once'), wait('never')] }) })
  await using client = await connect(lab)
  client.say('story')
  await client.until((message) => textOf([message]) === 'Once')
  lab.desk.sessions[0]?.interrupt()
  await client.until(interrupted)
  await client.until(turnComplete)
  expect(lab.desk.sessions[0]?.speaking).toBe(false)
})
