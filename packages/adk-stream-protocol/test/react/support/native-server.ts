import type { UIMessage } from 'ai'
import { convertToModelMessages, DefaultChatTransport, stepCountIs, streamText, tool } from 'ai'
import { z } from 'zod'

import type { AdkUIMessage } from '../../../src/client/index.ts'

/** One step of the model: its text and its calls. */
type Step = readonly (
  | { readonly say: string }
  | { readonly call: string; readonly input: object }
)[]

type Model = Exclude<Parameters<typeof streamText>[0]['model'], string>

/** A server of the AI SDK without ADK, with a payment that needs approval and a browser tool for the location. */
export class NativeServer {
  readonly payments: unknown[] = []
  /** The messages of each request. */
  readonly requests: UIMessage[][] = []
  /** The messages that the model received last. */
  prompt = ''
  readonly #steps: Step[]

  constructor(...steps: Step[]) {
    this.#steps = steps
  }

  transport(): DefaultChatTransport<AdkUIMessage> {
    return new DefaultChatTransport({
      api: 'http://native.test/chat',
      fetch: (_address, init) => this.#answer(String(init?.body)),
    })
  }

  async #answer(body: string): Promise<Response> {
    // What the transport of the AI SDK sends.
    const { messages } = JSON.parse(body) as { messages: UIMessage[] }
    this.requests.push(messages)
    const result = streamText({
      model: this.#model(),
      messages: await convertToModelMessages(messages),
      stopWhen: stepCountIs(3),
      tools: {
        pay: tool({
          inputSchema: z.object({ amount: z.number() }),
          needsApproval: true,
          execute: (payment) => {
            this.payments.push(payment)
            return { paid: true }
          },
        }),
        get_location: tool({ inputSchema: z.object({}) }),
      },
    })
    return result.toUIMessageStreamResponse({ originalMessages: messages })
  }

  #model(): Model {
    const doStream = ({ prompt }: { prompt: unknown }) => {
      this.prompt = JSON.stringify(prompt)
      return Promise.resolve({ stream: toStream(this.#steps.shift() ?? []) })
    }
    // A language model by the specification that both versions read.
    return {
      specificationVersion: 'v3',
      provider: 'test',
      modelId: 'scripted',
      supportedUrls: {},
      doStream,
      doGenerate: () => Promise.reject(new Error('Only streams are asked for.')),
    } as unknown as Model
  }
}

function toStream(step: Step): ReadableStream<object> {
  const calls = step.some((part) => 'call' in part)
  const chunks: object[] = [
    { type: 'stream-start', warnings: [] },
    ...step.flatMap(toChunks),
    {
      type: 'finish',
      finishReason: { unified: calls ? 'tool-calls' : 'stop', raw: undefined },
      usage: { inputTokens: { total: 1 }, outputTokens: { total: 1 } },
    },
  ]
  return new ReadableStream({
    start: (controller) => {
      for (const chunk of chunks) controller.enqueue(chunk)
      controller.close()
    },
  })
}

function toChunks(part: Step[number], index: number): object[] {
  const id = `${index}`
  if ('say' in part)
    return [
      { type: 'text-start', id },
      { type: 'text-delta', id, delta: part.say },
      { type: 'text-end', id },
    ]
  const { call, input } = part
  const toolCallId = `call-${call}-${index}`
  return [{ type: 'tool-call', toolCallId, toolName: call, input: JSON.stringify(input) }]
}
