import type { Chunk } from '../../protocol/chunk.ts'
import { disconnected } from '../adk-error.ts'

/** The chunks of an answer over HTTP. Throws when it breaks off before its end. */
export async function* readSse(
  body: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<Chunk, void> {
  for await (const data of readEvents(body, signal)) {
    if (data === '[DONE]') return
    // The server is trusted with its chunks: the client asked it for them.
    yield JSON.parse(data) as Chunk
  }
  throw disconnected('the answer broke off')
}

/** The data of each event of a body. All else are comments that keep the connection alive. */
async function* readEvents(
  body: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<string, void> {
  for await (const block of readBlocks(body, signal)) {
    const data = dataOf(block)
    if (data !== undefined) yield data
  }
}

/** The blocks of a body, between its empty lines. */
export async function* readBlocks(
  body: ReadableStream<Uint8Array>,
  signal?: AbortSignal,
): AsyncGenerator<string, void> {
  const reader = body.getReader()
  const leave = (): void => void reader.cancel().catch(() => undefined)
  signal?.addEventListener('abort', leave, { once: true })
  const decoder = new TextDecoder()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await read(reader)
      if (done) return
      const blocks = (rest + decoder.decode(value, { stream: true })).split('\n\n')
      rest = blocks.pop() ?? ''
      yield* blocks
    }
  } finally {
    signal?.removeEventListener('abort', leave)
    // Who reads no further lets the connection go; what it says to that is of no use.
    await reader.cancel().catch(() => undefined)
  }
}

/** What a block tells, unless it is a comment. */
export function dataOf(block: string): string | undefined {
  return block.startsWith(DATA) ? block.slice(DATA.length) : undefined
}

const DATA = 'data: '

async function read(reader: ReadableStreamDefaultReader<Uint8Array>) {
  try {
    return await reader.read()
  } catch (cause) {
    if (cause instanceof Error && cause.name === 'AbortError') throw cause
    throw disconnected('the connection was lost in mid-answer', cause)
  }
}
