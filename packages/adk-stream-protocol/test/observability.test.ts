import { trace } from '@opentelemetry/api'
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base'
import { FunctionTool } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { assistant } from './support/agents.ts'
import { serve } from './support/serve.ts'

const echo = new FunctionTool({
  name: 'echo',
  description: 'Says the same.',
  parameters: z.object({ words: z.string() }),
  execute: ({ words }) => ({ words: `${words} from the tool-canary` }),
})

test('[OB2] spans tell of the turn and hold nothing that was said', async () => {
  const exporter = new InMemorySpanExporter()
  const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
  trace.setGlobalTracerProvider(provider)
  try {
    await using server = await serve({ agent: (model) => assistant(model, { tools: [echo] }) })
    const body = {
      id: 'chat-1',
      messages: [
        {
          role: 'user',
          content: '[[call echo {"words":"argument-canary"}]][[then]][[say answer-canary]]',
        },
      ],
    }
    const answer = await server.browser().post('/stream', body)
    expect(await answer.text()).toContain('answer-canary')
    await server.bridge.close()
    const spans = exporter.getFinishedSpans()
    expect(spans.map(({ name }) => name)).toEqual(
      expect.arrayContaining(['turn', 'call_llm', 'execute_tool echo']),
    )
    const turn = spans.find(({ name }) => name === 'turn')
    expect(turn?.attributes).toMatchObject({
      'gen_ai.conversation.id': 'chat-1',
      'adk_stream_protocol.end': 'completed',
    })
    const recorded = JSON.stringify(
      spans.map(({ name, attributes, events, status }) => ({ name, attributes, events, status })),
    )
    expect(recorded).not.toContain('canary')
  } finally {
    trace.disable()
  }
})
