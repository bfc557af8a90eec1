import type { LiveServerMessage } from '@google/genai'
import { expect, test } from 'vitest'

import {
  call,
  connect,
  connectRaw,
  kinds,
  mindOf,
  refusal,
  say,
  startLab,
  TEXT_SETUP,
  textOf,
  toolCall,
  turnComplete,
  wait,
  type Client,
} from './live-lab.ts'

const RESUMABLE = { sessionResumption: {} }

async function untilHandle(client: Client): Promise<string> {
  const messages = await client.until((message) => message.sessionResumptionUpdate)
  expect(messages.at(-1)?.sessionResumptionUpdate?.resumable).toBe(true)
  return messages.at(-1)?.sessionResumptionUpdate?.newHandle ?? ''
}

const isUpdate = (message: LiveServerMessage) => message.sessionResumptionUpdate

test('[EL41] handles come only to those who ask, after the setup and after each turn', async () => {
  await using lab = await startLab()
  await using client = await connect(lab, { config: RESUMABLE })
  const first = await untilHandle(client)
  client.say('hi')
  await client.until(turnComplete)
  const second = await untilHandle(client)
  expect(second).not.toBe(first)
  await using other = await connect(lab)
  other.say('one')
  await other.until(turnComplete)
  other.say('two')
  expect((await other.until(turnComplete)).some(isUpdate)).toBe(false)
})

test('[EL41] a handle brings the conversation back on a new connection', async () => {
  await using lab = await startLab()
  let handle = ''
  {
    await using client = await connect(lab, { config: RESUMABLE })
    client.say('My name is Hanako.')
    await client.until(turnComplete)
    handle = await untilHandle(client)
  }
  await using again = await connect(lab, { config: { sessionResumption: { handle } } })
  again.say('Who am I?')
  await again.until(turnComplete)
  expect(lab.prompts[1]?.contents.map(({ parts }) => parts?.[0]?.text)).toEqual([
    'My name is Hanako.',
    'You said: My name is Hanako.',
    'Who am I?',
  ])
})

test('[EL42] unanswered calls, given answers and waiting words survive with the handle', async () => {
  const mind = mindOf({ both: [call('a'), call('b')], '(a, b answered)': [say('Done.')] })
  await using lab = await startLab({ mind })
  let handle = ''
  {
    await using client = await connect(lab, { config: RESUMABLE })
    client.say('both')
    await client.until(turnComplete)
    client.say('quick')
    client.session.sendToolResponse({ functionResponses: { id: 'b', name: 'b', response: {} } })
    await untilHandle(client)
    handle = await untilHandle(client)
  }
  await using again = await connect(lab, { config: { sessionResumption: { handle } } })
  const session = lab.desk.sessions[1]
  expect(session?.pendingCalls.map(({ id }) => id)).toEqual(['a'])
  again.session.sendToolResponse({ functionResponses: { id: 'a', name: 'a', response: {} } })
  expect(textOf(await again.until(turnComplete))).toBe('Done.')
  expect(textOf(await again.until(turnComplete))).toBe('You said: quick')
})

test('[EL42] no handle is given in mid-speech', async () => {
  await using lab = await startLab({ mind: mindOf({ story: [say('Once'), wait('on')] }) })
  await using client = await connect(lab, { config: RESUMABLE })
  await untilHandle(client)
  client.say('story')
  await client.until((message) => textOf([message]) === 'Once')
  lab.world.gates.release('on')
  const messages = await client.until(isUpdate)
  expect(kinds(messages)).toEqual([
    'generationComplete',
    'turnComplete',
    'usageMetadata',
    'sessionResumptionUpdate',
  ])
})

test('[EL42] nor while calls of the turn are still to come', async () => {
  await using lab = await startLab({ mind: mindOf({ all: [call('a'), wait('more'), call('b')] }) })
  await using client = await connect(lab, { config: RESUMABLE })
  await untilHandle(client)
  client.say('all')
  await client.until(toolCall)
  client.session.sendToolResponse({ functionResponses: { id: 'a', name: 'a', response: {} } })
  await lab.desk.sessions[0]?.waitFor((frame) => 'toolResponse' in frame)
  lab.world.gates.release('more')
  expect(kinds(await client.until(isUpdate))[0]).toBe('toolCall')
})

test('[EL43] an unknown handle is refused', async () => {
  await using lab = await startLab()
  const config = { sessionResumption: { handle: 'no-such-handle' } }
  expect(await refusal(lab, { config })).toEqual({
    code: 1008,
    reason: 'BidiGenerateContent session not found',
  })
})

test('[EL43] a handle past its time is refused', async () => {
  await using lab = await startLab({ handleLifetimeMs: 0 })
  await using client = await connect(lab, { config: RESUMABLE })
  const handle = await untilHandle(client)
  const config = { sessionResumption: { handle } }
  expect(await refusal(lab, { config })).toMatchObject({ code: 1008 })
})

test('[EL43] a transparent session learns which of its messages was taken last', async () => {
  await using lab = await startLab()
  const { send, socket } = await connectRaw(lab)
  send({ setup: { ...TEXT_SETUP.setup, sessionResumption: { transparent: true } } })
  send({ clientContent: { turns: [], turnComplete: false } })
  const session = await lab.desk.nextSession()
  await session.waitFor((frame) => 'clientContent' in frame)
  expect(session.sent.at(-1)).toMatchObject({
    sessionResumptionUpdate: { lastConsumedClientMessageIndex: '1' },
  })
  socket.close()
})
