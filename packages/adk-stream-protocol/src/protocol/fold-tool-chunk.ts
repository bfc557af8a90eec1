import type { Chunk } from './chunk.ts'
import type { DataParts, MessagePart, ToolApproval, ToolPart } from './message.ts'

export type ToolChunk = Extract<Chunk, { toolCallId: string }>

/** Applies a chunk to the part of its tool call, in place. */
export function foldToolChunk(parts: MessagePart[], chunk: ToolChunk): void {
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
export function foldApproval(
  parts: MessagePart[],
  { toolCallId, state }: DataParts['approval'],
): void {
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
    const { approvalId: id, state, reason } = part.data
    if (state === 'requested') return undefined
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
