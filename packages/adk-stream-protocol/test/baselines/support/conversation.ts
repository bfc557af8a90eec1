import type { WireChunk } from '../../support/wire-rules.ts'

export const CHAT = 'chat-1'
const CONFIRMATION = 'adk_request_confirmation'

/** Everything that was sent and received, in order. */
export interface Line {
  readonly from: 'client' | 'server'
  readonly sent: unknown
}

export interface Asked {
  readonly approvalId: string
  readonly toolCallId: string
}

/** One conversation in one mode, of a client that records everything that it sends and receives. */
export interface Conversation extends AsyncDisposable {
  readonly lines: readonly Line[]
  say(text: string): Promise<void>
  decide(approved: readonly boolean[]): Promise<void>
  give(output: unknown): Promise<void>
  /** Decides after the deadline, and reads the outcome. */
  expire(untilExpired: () => Promise<void>): Promise<void>
  /** Resolves when the reply is complete. */
  end(): Promise<void>
}

/** The approvals that the chunks so far request, in either dialect. */
export function findAsked(chunks: readonly WireChunk[]): Asked[] {
  return chunks.flatMap((chunk) => {
    const { type, approvalId, toolCallId, toolName, input } = chunk
    if (type === 'tool-approval-request')
      return [{ approvalId: String(approvalId), toolCallId: String(toolCallId) }]
    if (type !== 'tool-input-available' || toolName !== CONFIRMATION) return []
    const { originalFunctionCall } = input as { originalFunctionCall: { id: string } }
    return [{ approvalId: String(toolCallId), toolCallId: originalFunctionCall.id }]
  })
}

/** The name of a call that was shown. */
export function nameOf(chunks: readonly WireChunk[], toolCallId: string): string {
  const shown = chunks.find(
    (chunk) => chunk.type === 'tool-input-available' && chunk['toolCallId'] === toolCallId,
  )
  return String(shown?.['toolName'])
}

/** The first call that was shown. */
export function firstCall(chunks: readonly WireChunk[]): string {
  return String(chunks.find(({ type }) => type === 'tool-input-available')?.['toolCallId'])
}

/** The message with which an AI SDK client responds: the parts of the calls, in their new state. */
function toAnswer(
  chunks: readonly WireChunk[],
  answers: readonly { readonly toolCallId: string; readonly [key: string]: unknown }[],
): object {
  const id = chunks.find(({ type }) => type === 'start')?.['messageId']
  const parts = answers.map((answer) => ({
    type: `tool-${nameOf(chunks, answer.toolCallId)}`,
    ...answer,
  }))
  return { id, role: 'assistant', parts }
}

export function toUserMessage(text: string): object {
  return { id: 'user-1', role: 'user', parts: [{ type: 'text', text }] }
}

interface DecisionsOptions {
  readonly dialect: 'ui' | 'confirmation'
  /** The index of the only call to decide. Default: all. */
  readonly only?: number
}

/** Decisions as the AI SDK's parts, or as outputs of the confirmation. */
export function toDecisions(
  chunks: readonly WireChunk[],
  approved: readonly boolean[],
  { dialect, only }: DecisionsOptions,
): object {
  const decided = findAsked(chunks)
    .slice(0, approved.length)
    .map((asked, index) => ({ ...asked, approved: approved[index] }))
    .filter((_asked, index) => only === undefined || index === only)
  if (dialect === 'ui') {
    return toAnswer(
      chunks,
      decided.map(({ approvalId: id, toolCallId, approved: answer }) => ({
        toolCallId,
        state: 'approval-responded',
        approval: { id, approved: answer },
      })),
    )
  }
  const content = decided.map(({ approvalId: toolCallId, approved: confirmed }) => ({
    type: 'tool-result',
    toolCallId,
    toolName: CONFIRMATION,
    result: { confirmed },
  }))
  return { role: 'user', content }
}

export function toOutput(chunks: readonly WireChunk[], output: unknown): object {
  return toAnswer(chunks, [{ toolCallId: firstCall(chunks), state: 'output-available', output }])
}
