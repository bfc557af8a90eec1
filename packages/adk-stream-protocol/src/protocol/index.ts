export type { ChatSummary, ListEvent } from './server-views.ts'
export type { Chunk, DataChunk, FinishReason } from './chunk.ts'
export { serialiseChunk } from './chunk.ts'
export type { ClientFrame, ClientFrameOf, FrameFault } from './client-frame.ts'
export type { CloseReason, Retry } from './close-codes.ts'
export { CLOSE_CODES, mayRetry } from './close-codes.ts'
export type { ErrorCode } from './errors.ts'
export { ProtocolError } from './errors.ts'
export { foldChunks } from './fold-chunks.ts'
export type {
  Citation,
  DataParts,
  Message,
  MessageMetadata,
  MessagePart,
  ToolPart,
  TurnError,
  Usage,
} from './message.ts'
export type { MessageLimits, StreamRequest, UserMessage, UserPart } from './stream-request.ts'
export type { StreamFrame, ExtensionFrame, ServerFrame, AnnouncedLimits } from './server-frame.ts'
export { NO_REQUEST, SUBPROTOCOL } from './server-frame.ts'
