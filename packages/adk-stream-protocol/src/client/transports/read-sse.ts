import { createParser } from 'eventsource-parser'

import type { Chunk } from '../../protocol/chunk.ts'
import { disconnected } from '../adk-error.ts'

/** Reads the chunks of a response. Throws if the body ends before `[DONE]`. */
export async function* readSse(
  body: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<Chunk, void> {
  for await (const events of readEvents(body, { signal }))
    for (const data of events) {
      if (data === '[DONE]') return
      // The chunks are not validated: the client trusts the server that it sends requests to.
      yield JSON.parse(data) as Chunk
    }
  throw disconnected('the response broke off')
}

interface EventOptions {
  readonly signal?: AbortSignal | undefined
  /** Called with each comment, such as a keep-alive. */
  readonly onComment?: (comment: string) => void
}

/** Reads the data of a body's events, as many at a time as arrived together. */
export async function* readEvents(
  body: ReadableStream<Uint8Array>,
  { signal, onComment }: EventOptions = {},
): AsyncGenerator<string[], void> {
  const reader = body.getReader()
  const cancel = (): void => void reader.cancel().catch(() => undefined)
  signal?.addEventListener('abort', cancel, { once: true })
  const decoder = new TextDecoder()
  let events: string[] = []
  const parser = createParser({
    onEvent: ({ data }) => events.push(data),
    ...(onComment && { onComment }),
  })
  try {
    for (;;) {
      const { done, value } = await read(reader)
      if (done) return
      parser.feed(decoder.decode(value, { stream: true }))
      if (events.length === 0) continue
      const arrived = events
      events = []
      yield arrived
    }
  } finally {
    signal?.removeEventListener('abort', cancel)
    // Closes the connection if the body was not read to its end. An error of that is of no use.
    await reader.cancel().catch(() => undefined)
  }
}

async function read(reader: ReadableStreamDefaultReader<Uint8Array>) {
  try {
    return await reader.read()
  } catch (cause) {
    if (cause instanceof Error && cause.name === 'AbortError') throw cause
    throw disconnected('the connection was lost during the response', cause)
  }
}
