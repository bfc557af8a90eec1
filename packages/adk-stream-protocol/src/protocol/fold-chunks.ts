import { isPriorDecision } from './decision-evidence.ts'
import type { Chunk, DataChunk } from './chunk.ts'
import type {
  Message,
  MessageMetadata,
  MessagePart,
  DataParts,
  ToolApproval,
  ToolPart,
} from './message.ts'

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

type ToolChunk = Extract<Chunk, { toolCallId: string }>

/** Applies a chunk to the part of its tool call, in place. */
function foldToolChunk(parts: MessagePart[], chunk: ToolChunk): void {
  const index = parts.findIndex((part) => isToolPart(part) && part.toolCallId === chunk.toolCallId)
  if (chunk.type === 'tool-input-start' || chunk.type === 'tool-input-available') {
    parts.splice(index < 0 ? parts.length : index, index < 0 ? 0 : 1, beginPart(chunk))
    return
  }
  const known = parts[index]
  if (known && isToolPart(known))
    parts[index] = advancePart(known, chunk, findDecision(parts, chunk))
}

function beginPart(
  chunk: Extract<ToolChunk, { type: 'tool-input-start' | 'tool-input-available' }>,
): ToolPart {
  const { toolCallId, toolName } = chunk
  const type = `tool-${toolName}` as const
  return chunk.type === 'tool-input-start'
    ? { type, toolCallId, state: 'input-streaming' }
    : { type, toolCallId, state: 'input-available', input: chunk.input }
}

function advancePart(
  known: ToolPart,
  chunk: Exclude<ToolChunk, { type: 'tool-input-start' | 'tool-input-available' }>,
  decision: ToolApproval | undefined,
): ToolPart {
  const { type, toolCallId } = known
  const input = 'input' in known ? known.input : undefined
  const approval = decision?.approved === true ? { approval: decision } : {}
  switch (chunk.type) {
    case 'tool-approval-request':
      return {
        type,
        toolCallId,
        state: 'approval-requested',
        input,
        approval: { id: chunk.approvalId },
      }
    case 'tool-output-available':
      return {
        type,
        toolCallId,
        state: 'output-available',
        input,
        output: chunk.output,
        ...approval,
      }
    case 'tool-output-error':
      return {
        type,
        toolCallId,
        state: 'output-error',
        input,
        errorText: chunk.errorText,
        ...approval,
      }
    case 'tool-output-denied':
      return {
        type,
        toolCallId,
        state: 'output-denied',
        input,
        approval: decision ?? { id: '', approved: false },
      }
  }
}

/**
 * Applies an approval to the part of its tool call. An approved call is no longer a request: it runs on the server or
 * in the client.
 */
function foldApproval(parts: MessagePart[], { toolCallId, state }: DataParts['approval']): void {
  const index = parts.findIndex((part) => isToolPart(part) && part.toolCallId === toolCallId)
  const known = parts[index]
  if (!known || !isToolPart(known) || known.state !== 'approval-requested') return
  const { type, input } = known
  if (state === 'approved') parts[index] = { type, toolCallId, state: 'input-available', input }
}

// The AI SDK stores a decision in the client that made it. On the server, the data part of the approval contains it.
function findDecision(
  parts: readonly MessagePart[],
  { toolCallId }: ToolChunk,
): ToolApproval | undefined {
  for (const part of parts) {
    if (!isApprovalPart(part) || part.data.toolCallId !== toolCallId) continue
    const { approvalId: id, state, reason, kind } = part.data
    // The answer to a question is the output of its call. Nobody was asked about a call that a grant decided.
    if (state === 'requested' || kind || isPriorDecision(part.data)) return undefined
    const approved = state === 'approved' || state === 'unknown'
    return { id, approved, ...(reason !== undefined && { reason }) }
  }
  return undefined
}

type ApprovalPart = MessagePart & { type: 'data-approval'; data: DataParts['approval'] }

// Only the bridge creates parts of this type.
function isApprovalPart(part: MessagePart): part is ApprovalPart {
  return part.type === 'data-approval'
}

function isToolPart(part: MessagePart): part is ToolPart {
  return 'toolCallId' in part
}
