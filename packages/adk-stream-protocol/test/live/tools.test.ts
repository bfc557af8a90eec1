import type { Context } from '@google/adk'
import { BasePlugin, InMemoryArtifactService, LlmAgent, SequentialAgent } from '@google/adk'
import { expect, test } from 'vitest'

import { FREE_MODEL } from '../approvals/support/test-bridge.ts'
import { assistant, defer, tool } from '../support/agents.ts'
import { textParts } from './support/conversation.ts'
import { speak } from './support/voice.ts'
import {
  chunkOf,
  faultsOf,
  finishOf,
  joinLive,
  lastSession,
  nextUnasked,
  openLiveTestBridge,
  whole,
} from './support/live-test-bridge.ts'

const MODELS = [FREE_MODEL, 'gemini-3.1-flash-live-preview']
const CALL = '[[call look {}]] [[then]] [[say Done.]]'

test.each(MODELS)(
  '[LV26] plugins and callbacks are called when the tool runs (%s)',
  async (liveModel) => {
    const calls: string[] = []
    class Recorder extends BasePlugin {
      override async beforeToolCallback(): Promise<undefined> {
        calls.push('plugin before')
      }
      override async afterToolCallback(): Promise<undefined> {
        calls.push('plugin after')
      }
    }
    await using testBridge = await openLiveTestBridge({
      liveModel,
      plugins: [new Recorder('recorder')],
      tools: () => [
        tool('look', () => {
          calls.push('tool')
          return { seen: 'a whale' }
        }),
      ],
      agent: (model, tools) =>
        assistant(model, {
          tools,
          beforeToolCallback: () => {
            calls.push('agent before')
            return undefined
          },
          afterToolCallback: ({ response }) => {
            calls.push('agent after')
            return { ...response, size: 'large' }
          },
        }),
    })
    await using client = await joinLive(testBridge)
    client.say(CALL)
    expect(await whole(client)).toBe('Done.')
    expect(calls).toEqual(['plugin before', 'agent before', 'tool', 'plugin after', 'agent after'])
    expect(await chunkOf(client, 'tool-output-available')).toMatchObject({
      output: { seen: 'a whale', size: 'large' },
    })
    expect(await faultsOf(client)).toEqual([])
  },
)

test.each(MODELS)(
  '[LV27] a tool that throws is an error of its call, without the error text (%s)',
  async (liveModel) => {
    await using testBridge = await openLiveTestBridge({
      liveModel,
      tools: () => [
        tool('look', () => {
          throw new Error('password is 1234')
        }),
      ],
    })
    await using client = await joinLive(testBridge)
    client.say(CALL)
    expect(await whole(client)).toBe('Done.')
    expect(await chunkOf(client, 'tool-output-error')).toMatchObject({
      errorText: 'The tool look failed.',
    })
    expect(JSON.stringify(client.frames)).not.toContain('1234')
  },
)

test.each([
  ['undefined', undefined, { result: null }],
  ['null', null, { result: null }],
  ['an empty text', '', { result: '' }],
  ['an empty list', [], { results: [] }],
  ['an empty object', {}, {}],
  ['an object with empty values', { found: null, next: '' }, { found: null, next: '' }],
])('[LV1066] a tool that returns %s runs once', async (_name, result, output) => {
  let runs = 0
  await using testBridge = await openLiveTestBridge({
    liveModel: 'gemini-3.8-live',
    tools: () => [
      tool('look', () => {
        runs += 1
        return result
      }),
    ],
  })
  await using client = await joinLive(testBridge)
  client.say(CALL)
  expect(await whole(client)).toBe('Done.')
  expect(runs).toBe(1)
  expect(await chunkOf(client, 'tool-output-available')).toMatchObject({ output })
  const [sent] = lastSession(testBridge).history.flatMap(({ parts = [] }) =>
    parts.flatMap(({ functionResponse }) => (functionResponse ? [functionResponse] : [])),
  )
  expect(sent?.response).toEqual({ ...output, status: 'succeeded' })
})

test('[LV28] a slow tool delays neither audio nor text of the conversation', async () => {
  const gate = defer()
  await using testBridge = await openLiveTestBridge({
    spoken: true,
    liveModel: FREE_MODEL,
    tools: () => [
      tool('look', async () => {
        await gate.promise
        return { seen: 'a whale' }
      }),
    ],
  })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1', audio: 'binary' })
  client.say('[[call look {}]]', 'r1')
  await chunkOf(client, 'tool-input-available')
  testBridge.emulator.live.queueTranscript('[[say Meanwhile.]]')
  speak(client)
  const turn = await nextUnasked(client)
  expect(await whole(client, turn)).toBe('Meanwhile.')
  expect(client.binary.length).toBeGreaterThan(0)
  expect(await whole(client, 'r1')).toBe('')
  expect(finishOf(client, 'r1')).toMatchObject({ finishReason: 'tool-calls' })
  const [, waiting] = await testBridge.page().messages()
  expect(waiting?.parts.at(-1)).toMatchObject({ type: 'tool-look', state: 'input-available' })
  gate.resolve()
  const later = await nextUnasked(client, 1)
  expect(await whole(client, later)).toContain('a whale')
  const [, answer] = await testBridge.page().messages()
  expect(answer?.parts).toMatchObject([
    { type: 'step-start' },
    { type: 'tool-look', state: 'output-available', output: { seen: 'a whale' } },
    { type: 'step-start' },
    { type: 'text' },
  ])
  expect(answer?.id).toBe(client.chunks(later)[0]?.['messageId'])
})

test.each(MODELS)(
  '[LV29] state and artifacts of a tool are stored in the session and streamed (%s)',
  async (liveModel) => {
    const artifactService = new InMemoryArtifactService()
    await using testBridge = await openLiveTestBridge({
      liveModel,
      artifactService,
      exposeState: (key) => key === 'seen',
      tools: () => [
        tool('look', async (_args: unknown, context?: Context) => {
          context?.state.set('seen', 'a whale')
          await context?.saveArtifact('whale.txt', { text: 'a whale' })
          return { ok: true }
        }),
      ],
    })
    await using client = await joinLive(testBridge)
    client.say(CALL)
    await whole(client)
    expect(await chunkOf(client, 'data-state-delta')).toMatchObject({
      data: { delta: { seen: 'a whale' } },
    })
    expect(await chunkOf(client, 'data-artifact-delta')).toMatchObject({
      data: { artifacts: { 'whale.txt': 0 } },
    })
    const [, answer] = await testBridge.page().messages()
    expect(answer?.parts.map(({ type }) => type)).toContain('data-artifact-delta')
  },
)

test.each(MODELS)(
  '[LV30] a conversation is transferred to another agent and continues there (%s)',
  async (liveModel) => {
    await using testBridge = await openLiveTestBridge({
      liveModel,
      agent: (model) => {
        const billing = new LlmAgent({ name: 'billing', model, description: 'Bills.' })
        return new LlmAgent({ name: 'assistant', model, subAgents: [billing] })
      },
    })
    await using client = await joinLive(testBridge)
    client.say(
      '[[call transfer_to_agent {"agentName": "billing"}]] [[then]] [[say Billing here.]]',
      'r1',
    )
    expect(await whole(client, 'r1')).toContain('Billing here.')
    expect(await chunkOf(client, 'data-agent-transfer')).toMatchObject({ data: { to: 'billing' } })
    client.say('[[say Still billing.]]', 'r2')
    expect(await whole(client, 'r2')).toBe('Still billing.')
    expect((await textParts(testBridge)).map(([role]) => role)).toEqual([
      'user',
      'assistant',
      'user',
      'assistant',
    ])
  },
)

test.each(MODELS)(
  '[LV30] the next step of a SequentialAgent starts when a step calls task_completed (%s)',
  async (liveModel) => {
    await using testBridge = await openLiveTestBridge({
      liveModel,
      agent: (model) =>
        // oxlint-disable-next-line typescript/no-deprecated -- Deprecated in favour of Workflow, and in use.
        new SequentialAgent({
          name: 'steps',
          subAgents: ['draft', 'review'].map((name) => new LlmAgent({ name, model })),
        }),
    })
    await using client = await joinLive(testBridge)
    client.say('[[say Drafted.]] [[call task_completed {}]] [[then]] [[say Reviewed.]]', 'r1')
    expect(await whole(client, 'r1')).toBe('Drafted.Reviewed.')
    expect(await chunkOf(client, 'data-agent')).toMatchObject({ data: { name: 'review' } })
    client.say('[[say Still here.]]', 'r2')
    expect(await whole(client, 'r2')).toBe('Still here.')
  },
)
