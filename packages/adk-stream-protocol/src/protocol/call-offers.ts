import type { Chunk, DataChunk } from './chunk.ts'

type OfferChunk = Extract<DataChunk, { type: 'data-browser-call' }>

/** The type of the chunk that offers a call to the client (BT10). */
export const CALL_OFFER = 'data-browser-call' satisfies OfferChunk['type']

/** Returns the chunk that offers a call to the client. */
export function createOffer(toolCallId: string): OfferChunk {
  return { type: CALL_OFFER, id: toolCallId, data: { toolCallId } }
}

/** Returns the call that a chunk offers to the client. */
export function readOffer(chunk: Chunk): string | undefined {
  return chunk.type === CALL_OFFER ? chunk.data.toolCallId : undefined
}
