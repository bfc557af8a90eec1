import type { DataParts, FinishReason, MessageMetadata } from './message.ts'

/** Text of the model, or its reasoning. */
export type TextKind = 'text' | 'reasoning'

/** Streamed text. The only type of chunk that is frequent. */
export interface DeltaChunk {
  readonly type: `${TextKind}-delta`
  readonly id: string
  readonly delta: string
}

/** A data part of a message, see {@link DataParts}. A transient one is not stored in the message. */
export type DataChunk = {
  [Name in keyof DataParts]: {
    readonly type: `data-${Name}`
    readonly id?: string
    readonly data: DataParts[Name]
    readonly transient?: true
  }
}[keyof DataParts]

/**
 * A chunk of the AI SDK's UI message stream, in the profile that all AI SDK 6 and 7 clients accept (CH1). Clients
 * before 6.0.231 and 7.0.32 throw on an unknown key, so a chunk never has other keys than these.
 */
export type Chunk =
  | {
      readonly type: 'start'
      readonly messageId: string
      readonly messageMetadata?: MessageMetadata
    }
  | { readonly type: 'start-step' }
  | { readonly type: 'finish-step' }
  | { readonly type: `${TextKind}-start`; readonly id: string }
  | DeltaChunk
  | { readonly type: `${TextKind}-end`; readonly id: string }
  | { readonly type: 'tool-input-start'; readonly toolCallId: string; readonly toolName: string }
  | {
      readonly type: 'tool-input-available'
      readonly toolCallId: string
      readonly toolName: string
      readonly input: unknown
    }
  | {
      readonly type: 'tool-approval-request'
      readonly approvalId: string
      readonly toolCallId: string
    }
  | {
      readonly type: 'tool-output-available'
      readonly toolCallId: string
      readonly output: unknown
    }
  | { readonly type: 'tool-output-error'; readonly toolCallId: string; readonly errorText: string }
  | { readonly type: 'tool-output-denied'; readonly toolCallId: string }
  | { readonly type: 'file'; readonly url: string; readonly mediaType: string }
  | {
      readonly type: 'source-url'
      readonly sourceId: string
      readonly url: string
      readonly title?: string
    }
  | {
      readonly type: 'source-document'
      readonly sourceId: string
      readonly mediaType: string
      readonly title: string
    }
  | DataChunk
  | { readonly type: 'message-metadata'; readonly messageMetadata: MessageMetadata }
  | {
      readonly type: 'finish'
      readonly finishReason: FinishReason
      readonly messageMetadata: MessageMetadata
    }
  | { readonly type: 'abort' }
  | { readonly type: 'error'; readonly errorText: string }

/** Raw audio. */
export type AudioChunk = Extract<DataChunk, { type: 'data-pcm' }>

export function isAudio(chunk: Chunk): chunk is AudioChunk {
  return chunk.type === 'data-pcm'
}

/** Whether a chunk is streamed text. */
export function isDelta(chunk: Chunk): chunk is DeltaChunk {
  return chunk.type === 'text-delta' || chunk.type === 'reasoning-delta'
}

/**
 * Returns the constant beginning of a delta's JSON. Only the text is escaped per token, which makes a delta about
 * three times cheaper than `JSON.stringify` of the whole chunk. Ids are plain ASCII.
 */
export function deltaHead(type: DeltaChunk['type'], id: string): string {
  return `{"type":"${type}","id":"${id}","delta":`
}

/** Returns a chunk as JSON, for SSE and for sockets. */
export function serialiseChunk(chunk: Chunk): string {
  if (isDelta(chunk)) return `${deltaHead(chunk.type, chunk.id)}${JSON.stringify(chunk.delta)}}`
  return JSON.stringify(chunk)
}

/** Whether a chunk is the result of a call. */
export function isResult(chunk: Chunk): chunk is ResultChunk {
  return chunk.type.startsWith('tool-output-')
}

type ResultChunk = Extract<Chunk, { type: `tool-output-${string}` }>

/** Returns the question that a chunk asks. A question has no `tool-approval-request`. */
export function readQuestion(chunk: Chunk): DataParts['approval'] | undefined {
  if (chunk.type !== 'data-approval') return undefined
  const { kind, state } = chunk.data
  return kind !== undefined && state === 'requested' ? chunk.data : undefined
}
