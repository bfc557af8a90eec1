import { AsyncLocalStorage } from 'node:async_hooks'

import type { Context, ContextManager } from '@opentelemetry/api'
import { context, ROOT_CONTEXT } from '@opentelemetry/api'
import type { InMemorySpanExporter, ReadableSpan } from '@opentelemetry/sdk-trace-base'
import { FunctionTool } from '@google/adk'
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest'
import { z } from 'zod'

import { assistant } from '../support/agents.ts'
import { serve } from '../support/serve.ts'
import { recordSpans } from '../support/spans.ts'

const echo = new FunctionTool({
  name: 'echo',
  description: 'Says the same.',
  parameters: z.object({ words: z.string() }),
  execute: ({ words }) => ({ words: `${words} from the tool-canary` }),
})

let exporter: InMemorySpanExporter

beforeAll(() => {
  exporter = recordSpans()
  context.setGlobalContextManager(contextManager())
})

afterEach(() => {
  exporter.reset()
  vi.unstubAllEnvs()
})

afterAll(() => context.disable())

test('[OB2] spans describe the turn and contain no prompts, replies or arguments', async () => {
  const spans = await recordTurn()
  expect(spans.map(({ name }) => name)).toEqual(
    expect.arrayContaining(['turn', 'call_llm', 'execute_tool echo']),
  )
  const turn = spans.find(({ name }) => name === 'turn')
  expect(turn?.attributes).toMatchObject({
    'gen_ai.conversation.id': 'chat-1',
    'adk_stream_protocol.end': 'completed',
  })
  expect(serialise(spans)).not.toContain('canary')
})

test('[OB2] spans contain the content if the host enables it', async () => {
  vi.stubEnv('ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS', 'true')
  const content = serialise(await recordTurn())
  for (const canary of ['argument-canary', 'tool-canary', 'answer-canary'])
    expect(content).toContain(canary)
})

/** Runs a turn with a tool call. Returns its spans. */
async function recordTurn(): Promise<ReadableSpan[]> {
  await using server = await serve({ agent: (model) => assistant(model, { tools: [echo] }) })
  const content = '[[call echo {"words":"argument-canary"}]][[then]][[say answer-canary]]'
  const messages = [{ role: 'user', content }]
  const reply = await server.browser().post('/stream', { id: 'chat-1', messages })
  expect(await reply.text()).toContain('answer-canary')
  await server.bridge.close()
  return exporter.getFinishedSpans()
}

function serialise(spans: readonly ReadableSpan[]): string {
  return JSON.stringify(
    spans.map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
  )
}

/** Without a context manager no span is active, and ADK sets no attributes. */
function contextManager(): ContextManager {
  const storage = new AsyncLocalStorage<Context>()
  const manager: ContextManager = {
    active: () => storage.getStore() ?? ROOT_CONTEXT,
    with: (active, run, self, ...args) => storage.run(active, () => run.apply(self, args)),
    bind<Target>(active: Context, target: Target): Target {
      if (typeof target !== 'function') return target
      const bound = (...args: unknown[]): unknown =>
        storage.run(active, () => Reflect.apply(target, undefined, args) as unknown)
      // It has the signature of the function that it calls.
      return bound as Target
    },
    enable: () => manager,
    disable: () => manager,
  }
  return manager
}
