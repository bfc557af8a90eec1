// Rows A and A7, the peers: the AI SDK's server as the documentation of each version shows it, with a mock model.
import { once } from 'node:events'
import * as ai6 from 'ai'
import * as ai7 from 'ai-7'
import { MockLanguageModelV4 } from 'ai-7/test'
import { MockLanguageModelV3 } from 'ai/test'

import { produced, readScript, speak, type Script } from '../script.ts'
import { type ChatBody, type Handler, newestText, readChatBody, serve } from './serve.ts'

type PartOf<Model extends MockLanguageModelV3 | MockLanguageModelV4> =
  Awaited<ReturnType<Model['doStream']>>['stream'] extends ReadableStream<infer Part> ? Part : never
/** A part that the models of both versions may send. */
type ModelPart = PartOf<MockLanguageModelV3> & PartOf<MockLanguageModelV4>

const handle: Handler = async (request, response) => {
  const body = await readChatBody(request)
  const leaving = new AbortController()
  response.on('close', () => leaving.abort())
  const { status, headers, body: stream } = await respond(body, leaving.signal)
  response.writeHead(status, Object.fromEntries(headers))
  for await (const bytes of stream ?? []) {
    if (!response.write(bytes)) await once(response, 'drain', { signal: leaving.signal })
  }
  response.end()
}

const respond = process.argv[2] === 'A7' ? respondWith7 : respondWith6

async function respondWith6(body: ChatBody, abortSignal: AbortSignal): Promise<Response> {
  const result = ai6.streamText({
    // A mock keeps all its calls, so each request has its own mock.
    model: new MockLanguageModelV3({
      doStream: async () => ({ stream: speakTo(body, abortSignal) }),
    }),
    messages: await ai6.convertToModelMessages(body.messages),
    abortSignal,
  })
  return result.toUIMessageStreamResponse()
}

async function respondWith7(body: ChatBody, abortSignal: AbortSignal): Promise<Response> {
  const result = ai7.streamText({
    model: new MockLanguageModelV4({
      doStream: async () => ({ stream: speakTo(body, abortSignal) }),
    }),
    messages: await ai7.convertToModelMessages(body.messages),
    abortSignal,
  })
  const stream = ai7.toUIMessageStream({ stream: result.stream })
  return ai7.createUIMessageStreamResponse({ stream })
}

function speakTo(body: ChatBody, signal: AbortSignal): ReadableStream<ModelPart> {
  return toStream(modelParts(readScript(newestText(body)), signal))
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
