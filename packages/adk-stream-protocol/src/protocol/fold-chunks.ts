import type { Chunk, DataChunk } from './chunk.ts'
import type { ToolChunk } from './fold-tool-chunk.ts'
import { foldApproval, foldToolChunk } from './fold-tool-chunk.ts'
import type { Message, MessageMetadata, MessagePart } from './message.ts'

/** Returns the message that a client has after these chunks. The result equals that of the AI SDK's `readUIMessageStream` (CH6). */
export function foldChunks(id: string, chunks: Iterable<Chunk>): Message {
  const message: Message = { id, role: 'assistant', parts: [] }
  for (const chunk of chunks) foldChunk(message, chunk)
  return message
}

/** Applies a chunk to a message, in place. */
export function foldChunk(message: Message, chunk: Chunk): void {
  if (isData(chunk)) {
    foldData(message, chunk)
    if (chunk.type === 'data-approval') foldApproval(message.parts, chunk.data)
  } else if ('toolCallId' in chunk) foldToolChunk(message.parts, chunk)
  else if ('messageMetadata' in chunk) mergeMetadata(message, chunk.messageMetadata)
  else foldPart(message, chunk)
}

type PartChunk = Exclude<Chunk, DataChunk | ToolChunk | { messageMetadata: MessageMetadata }>

function foldPart(message: Message, chunk: PartChunk): void {
  switch (chunk.type) {
    case 'start-step':
      message.parts.push({ type: 'step-start' })
      return
    case 'text-start':
      message.parts.push({ type: 'text', text: '', state: 'streaming' })
      return
    case 'reasoning-start':
      message.parts.push({ type: 'reasoning', id: chunk.id, text: '', state: 'streaming' })
      return
    case 'text-delta':
    case 'reasoning-delta':
      editProse(message, chunk.type, (part) => (part.text += chunk.delta))
      return
    case 'text-end':
    case 'reasoning-end':
      editProse(message, chunk.type, (part) => (part.state = 'done'))
      return
    case 'file':
    case 'source-url':
    case 'source-document':
      message.parts.push({ ...chunk })
      return
    case 'start':
    case 'finish-step':
    case 'abort':
    case 'error':
  }
}

function isData(chunk: Chunk): chunk is DataChunk {
  return chunk.type.startsWith('data-')
}

type ProsePart = Extract<MessagePart, { type: 'text' | 'reasoning' }>

function proseKind(type: string): ProsePart['type'] {
  return type.startsWith('text') ? 'text' : 'reasoning'
}

// Chunks of a message are properly nested, so the last part of a kind is the open one.
function editProse(message: Message, type: string, edit: (part: ProsePart) => void): void {
  const kind = proseKind(type)
  const part = message.parts.findLast(
    (candidate): candidate is ProsePart => candidate.type === kind,
  )
  if (part) edit(part)
}

function foldData(message: Message, { type, id, data, transient }: DataChunk): void {
  if (transient) return
  const index = message.parts.findIndex(
    (part) => part.type === type && id !== undefined && 'id' in part && part.id === id,
  )
  const part = { type, data, ...(id !== undefined && { id }) }
  if (index < 0) message.parts.push(part)
  else message.parts[index] = part
}

function mergeMetadata(message: Message, metadata: MessageMetadata | undefined): void {
  if (metadata) message.metadata = { ...message.metadata, ...metadata }
}
