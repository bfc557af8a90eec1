import type { LiveServerMessage } from '@google/genai'
import { expect, test } from 'vitest'

import {
  call,
  connect,
  connectRaw,
  kinds,
  replies,
  rejection,
  say,
  startLive,
  TEXT_SETUP,
  textOf,
  toolCall,
  turnComplete,
  wait,
  type Client,
} from './support/live-server.ts'

const RESUMABLE = { sessionResumption: {} }

async function waitForHandle(client: Client): Promise<string> {
  const messages = await client.until((message) => message.sessionResumptionUpdate)
  expect(messages.at(-1)?.sessionResumptionUpdate?.resumable).toBe(true)
  return messages.at(-1)?.sessionResumptionUpdate?.newHandle ?? ''
}

const isUpdate = (message: LiveServerMessage) => message.sessionResumptionUpdate

test('[EL41] handles are sent on request, after the setup and after each turn', async () => {
  await using server = await startLive()
  await using client = await connect(server, { config: RESUMABLE })
  const first = await waitForHandle(client)
  client.say('hi')
  await client.until(turnComplete)
  const second = await waitForHandle(client)
  expect(second).not.toBe(first)
  await using other = await connect(server)
  other.say('one')
  await other.until(turnComplete)
  other.say('two')
  expect((await other.until(turnComplete)).some(isUpdate)).toBe(false)
})

test('[EL41] a handle restores the conversation on a new connection', async () => {
  await using server = await startLive()
  let handle = ''
  {
    await using client = await connect(server, { config: RESUMABLE })
    client.say('My name is Hanako.')
    await client.until(turnComplete)
    handle = await waitForHandle(client)
  }
  await using again = await connect(server, { config: { sessionResumption: { handle } } })
  again.say('Who am I?')
  await again.until(turnComplete)
  expect(server.prompts[1]?.contents.map(({ parts }) => parts?.[0]?.text)).toEqual([
    'My name is Hanako.',
    'You said: My name is Hanako.',
    'Who am I?',
  ])
})

test('[EL42] a handle restores pending calls, responses and queued input', async () => {
  const respond = replies({ both: [call('a'), call('b')], '(a, b answered)': [say('Done.')] })
  await using server = await startLive({ respond })
  let handle = ''
  {
    await using client = await connect(server, { config: RESUMABLE })
    client.say('both')
    await client.until(turnComplete)
    client.say('quick')
    client.session.sendToolResponse({ functionResponses: { id: 'b', name: 'b', response: {} } })
    await waitForHandle(client)
    handle = await waitForHandle(client)
  }
  await using again = await connect(server, { config: { sessionResumption: { handle } } })
  const session = server.live.sessions[1]
  expect(session?.pendingCalls.map(({ id }) => id)).toEqual(['a'])
  again.session.sendToolResponse({ functionResponses: { id: 'a', name: 'a', response: {} } })
  expect(textOf(await again.until(turnComplete))).toBe('Done.')
  expect(textOf(await again.until(turnComplete))).toBe('You said: quick')
})

test('[EL42] no handle is sent while the model speaks', async () => {
  await using server = await startLive({ respond: replies({ story: [say('Once'), wait('on')] }) })
  await using client = await connect(server, { config: RESUMABLE })
  await waitForHandle(client)
  client.say('story')
  await client.until((message) => textOf([message]) === 'Once')
  server.core.gates.release('on')
  const messages = await client.until(isUpdate)
  expect(kinds(messages)).toEqual([
    'generationComplete',
    'turnComplete',
    'usageMetadata',
    'sessionResumptionUpdate',
  ])
})

test('[EL42] no handle is sent before the last call of a turn', async () => {
  await using server = await startLive({
    respond: replies({ all: [call('a'), wait('more'), call('b')] }),
  })
  await using client = await connect(server, { config: RESUMABLE })
  await waitForHandle(client)
  client.say('all')
  await client.until(toolCall)
  client.session.sendToolResponse({ functionResponses: { id: 'a', name: 'a', response: {} } })
  await server.live.sessions[0]?.waitFor((frame) => 'toolResponse' in frame)
  server.core.gates.release('more')
  expect(kinds(await client.until(isUpdate))[0]).toBe('toolCall')
})

test.each([1008, 1007])(
  '[EL43] an unknown handle is rejected with %i',
  async (refusedHandleCode) => {
    await using server = await startLive({ refusedHandleCode })
    const config = { sessionResumption: { handle: 'no-such-handle' } }
    expect(await rejection(server, { config })).toEqual({
      code: refusedHandleCode,
      reason: 'BidiGenerateContent session not found',
    })
  },
)

test('[EL320] a handle is rejected while a connection of the same session is open', async () => {
  await using server = await startLive()
  const client = await connect(server, { config: RESUMABLE })
  const config = { sessionResumption: { handle: await waitForHandle(client) } }
  expect(await rejection(server, { config })).toMatchObject({ code: 1011 })
  await client[Symbol.asyncDispose]()
  await using again = await connect(server, { config })
  // An older handle belongs to the same session.
  await waitForHandle(again)
  expect(await rejection(server, { config })).toMatchObject({ code: 1011 })
})

test('[EL43] an expired handle is rejected', async () => {
  await using server = await startLive({ handleLifetimeMs: 0 })
  await using client = await connect(server, { config: RESUMABLE })
  const handle = await waitForHandle(client)
  const config = { sessionResumption: { handle } }
  expect(await rejection(server, { config })).toMatchObject({ code: 1008 })
})

test('[EL43] a transparent session receives the index of its last processed message', async () => {
  await using server = await startLive()
  const { send, socket } = await connectRaw(server)
  send({ setup: { ...TEXT_SETUP.setup, sessionResumption: { transparent: true } } })
  send({ clientContent: { turns: [], turnComplete: false } })
  const session = await server.live.nextSession()
  await session.waitFor((frame) => 'clientContent' in frame)
  expect(session.sent.at(-1)).toMatchObject({
    sessionResumptionUpdate: { lastConsumedClientMessageIndex: '1' },
  })
  socket.close()
})
