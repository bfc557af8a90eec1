import * as ai6 from 'ai'
import * as ai7 from 'ai-7'
import { describe, expect, test } from 'vitest'

import type { Chunk } from '../../src/protocol/chunk.ts'
import { foldChunks } from '../../src/protocol/fold-chunks.ts'
import {
  call,
  event,
  partial,
  response,
  translateTurn,
  whole,
} from '../agent/support/translate-events.ts'

/** The common part of both versions of `readUIMessageStream`. It also checks that our chunks match their types. */
type ReadMessages = (options: {
  stream: ReadableStream<Chunk>
  terminateOnError: boolean
  onError: () => void
}) => AsyncIterable<unknown>

/** Returns the message that the AI SDK's own reader produces from the chunks. */
async function readByClient(read: ReadMessages, chunks: readonly Chunk[]): Promise<unknown> {
  const stream = new ReadableStream<Chunk>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk)
      controller.close()
    },
  })
  let message: unknown
  for await (const state of read({
    stream,
    terminateOnError: false,
    onError: () => undefined,
  })) {
    message = state
  }
  // A round trip through JSON, which drops keys without a value.
  return JSON.parse(JSON.stringify(message))
}

const TURNS: Record<string, Chunk[]> = {
  prose: translateTurn([
    partial({ text: 'Hm', thought: true }),
    partial({ text: 'Hel' }),
    partial({ text: 'lo' }),
  ]),
  'tools and steps': translateTurn([
    whole({ text: 'Look:' }),
    whole(call('c1'), call('c2', 'ask', { q: '何?' })),
    whole(response('c1', { ok: 1 }), response('c2', { error: 'No' })),
    whole({ text: 'Done' }),
  ]),
  'media, data and sources': translateTurn([
    whole(
      { inlineData: { mimeType: 'image/png', data: 'AAAA' } },
      { executableCode: { code: '1' } },
    ),
    whole({ inlineData: { mimeType: 'audio/pcm', data: 'AAAA' } }),
    event({
      groundingMetadata: {
        groundingChunks: [{ web: { uri: 'https://a.test/' } }],
        webSearchQueries: ['q'],
      },
    }),
    event({
      groundingMetadata: {
        groundingChunks: [{ web: { uri: 'https://b.test/' } }],
        webSearchQueries: ['r'],
      },
    }),
    event({ actions: { stateDelta: { a: 1 } }, usageMetadata: { promptTokenCount: 1 } }),
  ]),
  stopped: translateTurn([partial({ text: 'Hel' })], 'stopped'),
}

describe.each([
  ['ai 6', (options) => ai6.readUIMessageStream(options)],
  ['ai 7', (options) => ai7.readUIMessageStream(options)],
] satisfies [string, ReadMessages][])('%s', (_name, read) => {
  test.each(Object.entries(TURNS))('[CH6] reads %s as foldChunks does', async (_turn, chunks) => {
    const all: Chunk[] = [{ type: 'start', messageId: 'm1' }, ...chunks]
    expect(foldChunks('m1', all)).toEqual(await readByClient(read, all))
  })
})
