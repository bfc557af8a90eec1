import type { Chunk } from '../../protocol/chunk.ts'

/**
 * What was told of a turn, for a client that reads it anew. A question that has been decided is left out, and a denied call ends
 * as an error: a client that did not decide it itself would otherwise keep a question without an answer, which AI SDK 6 counts as
 * an invalid message.
 */
export function toReplay(
  chunks: readonly Chunk[],
  isDecided: (toolCallId: string) => boolean,
): Chunk[] {
  return chunks.flatMap((chunk): Chunk[] => {
    if (chunk.type === 'tool-approval-request') return isDecided(chunk.toolCallId) ? [] : [chunk]
    if (chunk.type !== 'tool-output-denied') return [chunk]
    return [
      {
        type: 'tool-output-error',
        toolCallId: chunk.toolCallId,
        errorText: 'Denied. It did not run.',
      },
    ]
  })
}
