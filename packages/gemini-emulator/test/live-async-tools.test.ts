import { Behavior, FunctionResponseScheduling, type LiveConnectConfig } from '@google/genai'
import { expect, test } from 'vitest'

import {
  audio,
  call,
  connect,
  interrupted,
  kinds,
  mindOf,
  say,
  silence,
  startLab,
  textOf,
  turnComplete,
  voice,
  wait,
  type Client,
} from './live-lab.ts'

const { INTERRUPT, SILENT, WHEN_IDLE } = FunctionResponseScheduling

const BESIDE: LiveConnectConfig = {
  tools: [{ functionDeclarations: [{ name: 'book', behavior: Behavior.NON_BLOCKING }] }],
}

const booking = {
  book: [call('book'), say('I am on it.')],
  '(book answered)': [say('It is booked.')],
}
const respond = (client: Client, scheduling: FunctionResponseScheduling, willContinue?: boolean) =>
  client.session.sendToolResponse({
    functionResponses: {
      id: 'book',
      name: 'book',
      response: { ok: true },
      scheduling,
      ...(willContinue !== undefined && { willContinue }),
    },
  })

test('[EL38] the model goes on speaking and answers the person meanwhile', async () => {
  await using lab = await startLab({ mind: mindOf(booking) })
  await using client = await connect(lab, { config: BESIDE })
  client.say('book')
  const messages = await client.until(turnComplete)
  expect(kinds(messages).indexOf('toolCall')).toBeLessThan(kinds(messages).indexOf('modelTurn'))
  expect(textOf(messages)).toBe('I am on it.')
  client.say('What time is it?')
  expect(textOf(await client.until(turnComplete))).toBe('You said: What time is it?')
  const session = await lab.desk.nextSession()
  expect(session.pendingCalls.map(({ name }) => name)).toEqual(['book'])
})

test('[EL38] speech does not take them back', async () => {
  await using lab = await startLab({ mind: mindOf(booking) })
  await using client = await connect(lab, { config: BESIDE })
  client.say('book')
  await client.until(turnComplete)
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  expect(kinds(await client.until(turnComplete))).not.toContain('toolCallCancellation')
  respond(client, WHEN_IDLE)
  expect(textOf(await client.until(turnComplete))).toBe('It is booked.')
})

test('[EL39] INTERRUPT speaks about the answer at once', async () => {
  const mind = mindOf({ ...booking, story: [say('Once upon '), wait('never')] })
  await using lab = await startLab({ mind })
  await using client = await connect(lab, { config: BESIDE })
  client.say('book')
  await client.until(turnComplete)
  client.say('story')
  await client.until((message) => textOf([message]) === 'upon ')
  respond(client, INTERRUPT)
  await client.until(interrupted)
  await client.until(turnComplete)
  expect(textOf(await client.until(turnComplete))).toBe('It is booked.')
})

test('[EL39] WHEN_IDLE waits for the end of the turn', async () => {
  const mind = mindOf({ ...booking, story: [say('Once upon '), wait('on'), say('a time')] })
  await using lab = await startLab({ mind })
  await using client = await connect(lab, { config: BESIDE })
  const session = await lab.desk.nextSession()
  client.say('book')
  await client.until(turnComplete)
  client.say('story')
  await client.until((message) => textOf([message]) === 'upon ')
  respond(client, WHEN_IDLE)
  await session.waitFor((frame) => 'toolResponse' in frame)
  lab.world.gates.release('on')
  const story = await client.until(turnComplete)
  expect(textOf(story)).toBe('a time')
  expect(kinds(story)).not.toContain('interrupted')
  expect(textOf(await client.until(turnComplete))).toBe('It is booked.')
})

test('[EL39] SILENT is remembered without a word', async () => {
  await using lab = await startLab({ mind: mindOf(booking) })
  await using client = await connect(lab, { config: BESIDE })
  client.say('book')
  await client.until(turnComplete)
  respond(client, SILENT)
  client.say('And?')
  expect(textOf(await client.until(turnComplete))).toBe('You said: And?')
  expect(lab.prompts).toHaveLength(2)
  expect(lab.prompts[1]?.contents.at(-2)?.parts?.[0]?.functionResponse?.id).toBe('book')
})

test('[EL39] scheduling inside the response counts as well', async () => {
  await using lab = await startLab({ mind: mindOf(booking) })
  await using client = await connect(lab, { config: BESIDE })
  client.say('book')
  await client.until(turnComplete)
  client.session.sendToolResponse({
    functionResponses: { id: 'book', name: 'book', response: { ok: true, scheduling: SILENT } },
  })
  client.say('And?')
  await client.until(turnComplete)
  expect(lab.prompts).toHaveLength(2)
})

test('[EL40] willContinue keeps the call open for further answers', async () => {
  await using lab = await startLab({ mind: mindOf(booking) })
  await using client = await connect(lab, { config: BESIDE })
  const session = await lab.desk.nextSession()
  client.say('book')
  await client.until(turnComplete)
  respond(client, WHEN_IDLE, true)
  await client.until(turnComplete)
  expect(session.pendingCalls).toHaveLength(1)
  respond(client, WHEN_IDLE, false)
  await client.until(turnComplete)
  expect(session.pendingCalls).toEqual([])
  respond(client, WHEN_IDLE)
  await session.waitFor(() => session.ignoredResponses.length === 1)
  expect(lab.prompts).toHaveLength(3)
})

test('[EL40] a blocking call is answered once, whatever its answer says', async () => {
  const mind = mindOf({ pay: [call('pay')], '(pay answered)': [say('Paid.')] })
  await using lab = await startLab({ mind })
  await using client = await connect(lab)
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
  expect(lab.desk.sessions[0]?.pendingCalls).toEqual([])
})
