// Row A, the peer: the AI SDK's server as its documentation shows it, with a mock model.
import { once } from 'node:events'
import { convertToModelMessages, streamText } from 'ai'
import { MockLanguageModelV3 } from 'ai/test'

import { produced, readScript, speak, type Script } from '../script.ts'
import { type Handler, newestText, readChatBody, serve } from './serve.ts'

type StreamResult = Awaited<ReturnType<MockLanguageModelV3['doStream']>>
type ModelPart = StreamResult['stream'] extends ReadableStream<infer Part> ? Part : never

const handle: Handler = async (request, response) => {
  const body = await readChatBody(request)
  const leaving = new AbortController()
  response.on('close', () => leaving.abort())
  const script = readScript(newestText(body))
  // A mock keeps all its calls, so each request has its own mock.
  const model = new MockLanguageModelV3({
    doStream: async () => ({ stream: toStream(modelParts(script, leaving.signal)) }),
  })
  const result = streamText({
    model,
    messages: await convertToModelMessages(body.messages),
    abortSignal: leaving.signal,
  })
  const { status, headers, body: stream } = result.toUIMessageStreamResponse()
  response.writeHead(status, Object.fromEntries(headers))
  for await (const bytes of stream ?? []) {
    if (!response.write(bytes)) await once(response, 'drain', { signal: leaving.signal })
  }
  response.end()
}

function toStream(parts: AsyncGenerator<ModelPart>): ReadableStream<ModelPart> {
  return new ReadableStream({
    async pull(controller) {
      const next: IteratorResult<ModelPart, void> = await parts.next()
      if (next.done) controller.close()
      else controller.enqueue(next.value)
    },
  })
}

async function* modelParts(script: Script, signal: AbortSignal): AsyncGenerator<ModelPart> {
  const id = 'text-1'
  yield { type: 'stream-start', warnings: [] }
  yield { type: 'text-start', id }
  for await (const delta of speak(script, signal)) yield { type: 'text-delta', id, delta }
  yield { type: 'text-end', id }
  yield {
    type: 'finish',
    finishReason: { unified: 'stop', raw: 'stop' },
    usage: {
      inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: produced.tokens, text: produced.tokens, reasoning: 0 },
    },
  }
}

await serve(handle)
