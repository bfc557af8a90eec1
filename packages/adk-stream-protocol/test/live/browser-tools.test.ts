import { describe, expect, test } from 'vitest'

import { FREE_MODEL, type TestBridge } from '../approvals/support/test-bridge.ts'
import { ASK, locate, TOKYO } from '../support/locating.ts'
import type { SocketClient } from '../sockets/support/socket-client.ts'
import {
  asked,
  chunkOf,
  faultsOf,
  finishOf,
  framesOf,
  joinLive,
  lastSession,
  openLiveTestBridge,
  unasked,
  untilAsked,
  whole,
} from './support/live-test-bridge.ts'

async function locationPart(testBridge: TestBridge): Promise<Record<string, unknown>> {
  const messages = await testBridge.page().messages()
  const found = messages
    .flatMap(({ parts }) => parts)
    .find(({ type }) => type === 'tool-get_location')
  return { ...found }
}

function give(client: SocketClient, toolCallId: unknown, result: object): void {
  client.send({ type: 'tool-output', outputId: 'o1', id: 'chat-1', toolCallId, ...result })
}

function openTestBridge(options: Parameters<typeof locate>[0] & { liveModel: string }) {
  const { liveModel, ...rest } = options
  const { agent } = locate(rest)
  return openLiveTestBridge({ liveModel, ...(agent && { agent }) })
}

describe.each([FREE_MODEL, 'gemini-3.1-flash-live-preview'])('%s', (liveModel) => {
  test('[LV13] the output of a browser tool arrives by frame, counts once, and the message continues', async () => {
    await using testBridge = await openTestBridge({ liveModel })
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1' })
    client.say(ASK)
    await whole(client)
    expect(finishOf(client)).toMatchObject({ finishReason: 'tool-calls' })
    const { toolCallId } = await chunkOf(client, 'tool-input-available')
    give(client, toolCallId, { output: TOKYO })
    give(client, toolCallId, { outputId: 'o2', output: { latitude: 0, longitude: 0 } })
    expect(await client.nextOf('tool-output-taken')).toMatchObject({ outputId: 'o1', ok: true })
    expect(await client.next(({ outputId }) => outputId === 'o2')).toMatchObject({
      ok: false,
      code: 'nothing-new',
    })
    await client.next(() => unasked(client).some((id) => client.text(id) === 'There you are.'))
    expect(await locationPart(testBridge)).toMatchObject({
      state: 'output-available',
      output: TOKYO,
    })
    expect(await testBridge.page().messages()).toHaveLength(2)
    const results = lastSession(testBridge).received.filter((frame) => 'toolResponse' in frame)
    expect(results).toHaveLength(1)
    expect(JSON.stringify(results)).toContain('139.7')
  })

  test('[LV13] the output can arrive with `send`, as the AI SDK sends it', async () => {
    await using testBridge = await openTestBridge({ liveModel })
    await using client = await joinLive(testBridge)
    client.say(ASK)
    await whole(client)
    const [user, assistant] = await testBridge.page().messages()
    const parts = assistant?.parts.map((part) =>
      part.toolCallId === undefined ? part : { ...part, state: 'output-available', output: TOKYO },
    )
    const messages = [user, { ...assistant, parts }]
    client.send({ type: 'send', requestId: 'r2', id: 'chat-1', messages, messageId: assistant?.id })
    expect(await whole(client, 'r2')).toBe('There you are.')
    expect(await faultsOf(client, 'r2')).toEqual([])
    expect(await locationPart(testBridge)).toMatchObject({
      state: 'output-available',
      output: TOKYO,
    })
  })

  test('[LV13] when the client sends no output in time, the model and the client receive an error', async () => {
    await using testBridge = await openTestBridge({ liveModel, timeoutMs: 60 })
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1' })
    client.say(ASK)
    await client.next(() =>
      ['r1', ...unasked(client)].some((id) => client.text(id) === 'There you are.'),
    )
    expect(await locationPart(testBridge)).toMatchObject({ state: 'output-error' })
    expect(JSON.stringify(lastSession(testBridge).received)).toContain('did not respond in time')
  })

  test('[LV13] an output with the wrong shape is an error of the call', async () => {
    await using testBridge = await openTestBridge({ liveModel })
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1' })
    client.say(ASK)
    const { toolCallId } = await chunkOf(client, 'tool-input-available')
    await whole(client)
    give(client, toolCallId, { output: { latitude: 'north' } })
    await client.next(() => unasked(client).some((id) => client.text(id) === 'There you are.'))
    expect(await locationPart(testBridge)).toMatchObject({ state: 'output-error' })
  })

  test('[LV13] a browser tool that needs approval is handed to the client after the approval', async () => {
    await using testBridge = await openTestBridge({ liveModel, gated: true })
    await using client = await joinLive(testBridge)
    client.send({ type: 'watch', id: 'chat-1' })
    client.say(ASK)
    const [approvalId = ''] = await untilAsked(client)
    const { toolCallId } = await chunkOf(client, 'tool-input-available')
    give(client, toolCallId, { outputId: 'early', output: TOKYO })
    expect(await client.nextOf('tool-output-taken')).toMatchObject({ ok: false })
    client.send({ type: 'decide', decisionId: 'd1', id: 'chat-1', approvalId, approved: true })
    await client.nextOf('decided')
    await testBridge.page().untilState(approvalId, 'succeeded')
    await testBridge.page().untilMessages(() => true)
    give(client, toolCallId, { output: TOKYO })
    await client.next(() => unasked(client).some((id) => client.text(id) === 'There you are.'))
    expect(await locationPart(testBridge)).toMatchObject({
      state: 'output-available',
      output: TOKYO,
    })
    expect(framesOf(client, 'refused')).toEqual([])
    expect(asked(client)).toHaveLength(1)
  })
})

test('[LV14] a call that waits for the client outlives the conversation: it accepts an output, and times out', async () => {
  await using testBridge = await openTestBridge({ liveModel: FREE_MODEL, timeoutMs: 400 })
  const client = await joinLive(testBridge)
  client.say(ASK)
  await whole(client)
  await client[Symbol.asyncDispose]()
  await testBridge.restart()
  await testBridge
    .page()
    .untilMessages((messages) => JSON.stringify(messages[1]).includes('There you are.'))
  expect(await locationPart(testBridge)).toMatchObject({ state: 'output-error' })
})
