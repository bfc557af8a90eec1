import type { Context, Event } from '@google/adk'
import {
  BasePlugin,
  FunctionTool,
  InMemoryArtifactService,
  InMemorySessionService,
  LlmAgent,
} from '@google/adk'
import { describe, expect } from 'vitest'
import { z } from 'zod'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { approvingClients } from './support/approving-chat.ts'
import { LateStart } from './support/late-start.ts'
import { TestBridge, type TestBridgeOptions } from './support/test-bridge.ts'

type Act = (context: Context, note: string) => unknown

const succeed: Act = () => ({ done: true })

const fail: Act = () => {
  throw new Error('no money')
}

const ACTS: readonly (readonly [string, Act])[] = [
  ['returns an object', succeed],
  ['returns a word', () => 'done'],
  ['returns a list', () => [1, 2]],
  [
    'changes the state',
    (context) => {
      const spent = context.state.get<number>('spent') ?? 0
      context.state.set('spent', spent + 50)
      context.state.set('temp:scratch', 1)
      return { spent }
    },
  ],
  [
    'saves an artifact',
    async (context) => ({ version: await context.saveArtifact('bill.txt', { text: 'Bill' }) }),
  ],
  [
    'transfers to another agent',
    (context) => {
      context.actions.transferToAgent = 'helper'
      return { transferred: true }
    },
  ],
  [
    'wants no summary',
    (context) => {
      context.actions.skipSummarization = true
      return { quiet: true }
    },
  ],
  ['throws', fail],
  [
    'reads what its context says',
    (context) => ({ confirmed: context.toolConfirmation?.confirmed, agent: context.agentName }),
  ],
]

const DECISIONS = [
  { how: 'as it is', decision: { approved: true } },
  { how: 'edited', decision: { approved: true, args: { note: 'changed' } } },
]

describe.each(DECISIONS)('approved $how', ({ how, decision }) => {
  const group = DECISIONS.findIndex((other) => other.how === how)
  const it = takeTurns({ group, groups: DECISIONS.length })

  it.each(ACTS)(
    '[AP62] a tool that %s leaves the session and the messages as ADK would',
    async (_what, act) => {
      const early = await live(act, decision)
      const late = await live(act, decision, { plugins: [new LateStart('late')] })
      expect(early.events).toEqual(late.events)
      expect(early.messages).toEqual(late.messages)
      expect(early.state).toEqual(late.state)
      expect(early.told).toEqual(late.told)
      expect(early.isEarly).toBe(true)
      expect(late.isEarly).toBe(false)
    },
  )

  it('[AP62] callbacks of plugins and of the agent are called once each, in the order of ADK', async () => {
    const early = await live(succeed, decision, { heard: true })
    expect(early.isEarly).toBe(true)
    expect(early.heard).toEqual([
      'plugin before',
      'agent before',
      'tool',
      'plugin after',
      'agent after',
    ])
    const late = await live(succeed, decision, { heard: true, plugins: [new LateStart('late')] })
    expect(late.heard).toEqual(early.heard)
  })

  it('[AP62] a plugin receives an error once, and may replace it by a result', async () => {
    const early = await live(fail, decision, { heard: true })
    expect(early.heard).toEqual([
      'plugin before',
      'agent before',
      'tool',
      'plugin error',
      'plugin after',
      'agent after',
    ])
    expect(JSON.stringify(early.told)).toContain('rescued')
    const late = await live(fail, decision, { heard: true, plugins: [new LateStart('late')] })
    expect(late.heard).toEqual(early.heard)
    expect(late.events).toEqual(early.events)
  })

  it('[AP62] a callback before the tool may replace its run', async () => {
    const early = await live(succeed, decision, { heard: true, veto: true })
    expect(early.heard).toEqual(['plugin before', 'plugin after', 'agent after'])
    expect(JSON.stringify(early.told)).toContain('vetoed')
    const late = await live(succeed, decision, {
      heard: true,
      veto: true,
      plugins: [new LateStart('late')],
    })
    expect(late.heard).toEqual(early.heard)
    expect(late.events).toEqual(early.events)
  })
})

/** Records every tool call. */
class Listener extends BasePlugin {
  readonly #heard: string[]
  readonly #veto: boolean

  constructor(heard: string[], veto: boolean) {
    super('listener')
    this.#heard = heard
    this.#veto = veto
  }

  override async beforeToolCallback({
    toolContext,
  }: {
    toolContext: Context
  }): Promise<Record<string, unknown> | undefined> {
    if (!toolContext.toolConfirmation) return undefined
    this.#heard.push('plugin before')
    return this.#veto ? { vetoed: true } : undefined
  }

  override async afterToolCallback({ toolContext }: { toolContext: Context }): Promise<undefined> {
    if (toolContext.toolConfirmation) this.#heard.push('plugin after')
  }

  override async onToolErrorCallback(): Promise<Record<string, unknown>> {
    this.#heard.push('plugin error')
    return { rescued: true }
  }
}

/** Approves one call, and returns everything that it stored, without ids and times. */
async function live(
  act: Act,
  decision: object,
  options: Pick<TestBridgeOptions, 'plugins'> & { heard?: boolean; veto?: boolean } = {},
) {
  const heard: string[] = []
  const { plugins = [], veto = false } = options
  const sessionService = new InMemorySessionService()
  let isEarly = false
  const tool = new FunctionTool({
    name: 'act',
    description: 'Acts.',
    parameters: z.object({ note: z.string() }),
    requireConfirmation: true,
    execute: async ({ note }, context) => {
      if (!context) throw new Error('A tool has a context.')
      heard.push('tool')
      // ADK stores the confirmation before it calls a tool. A call that starts at the decision has none in the session yet.
      isEarly = context.invocationContext.session.events.at(-1)?.author !== 'user'
      return act(context, note)
    },
  })
  await using testBridge = await TestBridge.open({
    sessionService,
    artifactService: new InMemoryArtifactService(),
    plugins: [...plugins, ...(options.heard === true ? [new Listener(heard, veto)] : [])],
    tools: () => [tool],
    agent: (model, tools) =>
      new LlmAgent({
        name: 'assistant',
        model,
        tools,
        subAgents: [new LlmAgent({ name: 'helper', model, description: 'Helps.' })],
        beforeToolCallback: ({ context }) => {
          if (options.heard === true && context.toolConfirmation) heard.push('agent before')
          return undefined
        },
        afterToolCallback: ({ context }) => {
          if (options.heard === true && context.toolConfirmation) heard.push('agent after')
          return undefined
        },
      }),
  })
  const [client] = approvingClients
  if (!client) throw new Error('There is no client.')
  const page = testBridge.page()
  const chat = await page.open(client)
  await chat.send('[[call act {"note":"first"}]][[then]][[say Done.]]')
  const [id = ''] = chat.asked
  await page.decide(id, decision)
  await page.untilMessages((messages) => /output-(available|error)/.test(JSON.stringify(messages)))
  const session = await sessionService.getSession({
    appName: 'adk-stream-protocol',
    userId: 'hanako',
    sessionId: 'chat-1',
  })
  return {
    heard,
    isEarly,
    events: withoutIds((session?.events ?? []).map(withoutTime)),
    state: session?.state,
    messages: withoutIds(await page.messages()),
    told: withoutIds(testBridge.results),
  }
}

function withoutTime({ timestamp: _timestamp, ...event }: Event): object {
  return event
}

/** Returns the value with every id named by its position, so that two runs can be compared. */
function withoutIds(value: unknown): unknown {
  const ids = new Map<string, string>()
  const text = JSON.stringify(value)
    .replaceAll(
      /"(?:id|invocationId|userMessageId)":"[^"]{6,}"|[\w-]*[0-9a-f]{8}-[0-9a-f-]{27}/g,
      (id) => {
        const name = ids.get(id) ?? `id-${ids.size}`
        ids.set(id, name)
        return id.startsWith('"') ? `"id":"${name}"` : name
      },
    )
    .replaceAll(/"deadline":\d+/g, '"deadline":0')
    .replaceAll(/"(at|startedAt|firstAt|endedAt)":\d+/g, '"$1":0')
    .replaceAll(/"deadline":"[^"]+"/g, '"deadline":""')
  return JSON.parse(text)
}
