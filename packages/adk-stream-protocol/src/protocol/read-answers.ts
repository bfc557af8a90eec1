import { z } from 'zod'

import { CONFIRMATION_TOOL } from './confirmation-tool.ts'
import { ProtocolError } from './errors.ts'

/** A person's decision about one call: all that a client may say about it. */
export interface DecisionAnswer {
  readonly approvalId: string
  readonly approved: boolean
  readonly reason?: string
  readonly editedArgs?: Readonly<Record<string, unknown>>
}

/** What a tool gave that ran on the client. */
export interface OutputAnswer {
  readonly toolCallId: string
  readonly result: { readonly output: unknown } | { readonly errorText: string }
}

/** What a client answers to a turn that waits. Only calls that really wait are answered by it; the rest is history. */
export interface Answers {
  /** The assistant message that carries them, where one does. */
  readonly messageId: string | undefined
  readonly decisions: readonly DecisionAnswer[]
  readonly outputs: readonly OutputAnswer[]
}

/** Changed arguments by approval, beside the messages: the AI SDK has no place for them in a message. */
export const Edits = z.record(z.string().max(256), z.record(z.string(), z.unknown()))
export type Edits = z.infer<typeof Edits>

/** A message of unknown parts. */
interface RawMessage {
  readonly id?: string | undefined
  readonly role: string
  readonly parts?: readonly RawPart[] | undefined
  readonly content?: string | readonly RawPart[] | undefined
}

interface RawPart {
  readonly type: string
}

const Id = z.string().min(1).max(256)
const Reason = z.string().max(2_000)

/**
 * Answer form 1: a call that carries the person's decision, as the AI SDK sends it. A call that ran in the client right away has its
 * output beside the decision.
 */
const RespondedPart = z.object({
  state: z.enum(['approval-responded', 'output-available', 'output-error']),
  approval: z.object({ id: Id, approved: z.boolean(), reason: Reason.optional() }),
})

const OutputPart = z.discriminatedUnion('state', [
  z.object({ state: z.literal('output-available'), toolCallId: Id, output: z.unknown() }),
  z.object({ state: z.literal('output-error'), toolCallId: Id, errorText: z.string().max(10_000) }),
])

/** Answer form 2: the output of the confirmation request as a tool of its own. */
const Confirmation = z.object({ confirmed: z.boolean(), reason: Reason.optional() })

const ToolResultPart = z.object({
  toolCallId: Id,
  toolName: z.string().max(256).optional(),
  result: z.unknown().optional(),
  output: z.unknown().optional(),
})

/** Reads the answers in the newest message; nothing when it is a message of its own. */
export function readAnswers(message: RawMessage, edits: Edits = {}): Answers | undefined {
  const parts = message.parts ?? message.content ?? []
  if (typeof parts === 'string') return undefined
  const results = parts.filter((part) => part.type === 'tool-result')
  if (message.role === 'user' && results.length > 0) {
    const decisions = withEdits(results.map(readToolResult), edits)
    return { messageId: undefined, decisions, outputs: [] }
  }
  if (message.role !== 'assistant') return undefined
  const decisions = withEdits(parts.flatMap(readDecision), edits)
  const outputs = parts.flatMap(readOutput)
  if (decisions.length + outputs.length === 0) return undefined
  return { messageId: message.id, decisions, outputs }
}

function readDecision(part: RawPart): DecisionAnswer[] {
  if (part.type === `tool-${CONFIRMATION_TOOL}`) {
    const answered = OutputPart.safeParse(part).data
    if (answered?.state !== 'output-available') return []
    return [toDecision(answered.toolCallId, readConfirmation(answered.output))]
  }
  const responded = RespondedPart.safeParse(part)
  if (responded.success) return [toDecision(responded.data.approval.id, responded.data.approval)]
  // A decision that says something else than yes or no is neither.
  if ('state' in part && part.state === 'approval-responded') throw badAnswer(BAD_DECISION)
  return []
}

function readOutput(part: RawPart): OutputAnswer[] {
  if (!isToolPart(part) || part.type === `tool-${CONFIRMATION_TOOL}`) return []
  const given = OutputPart.safeParse(part).data
  if (given === undefined) return []
  const { toolCallId } = given
  return given.state === 'output-error'
    ? [{ toolCallId, result: { errorText: given.errorText } }]
    : [{ toolCallId, result: { output: given.output } }]
}

function readToolResult(part: RawPart): DecisionAnswer {
  const parsed = ToolResultPart.safeParse(part)
  if (!parsed.success) throw badAnswer('A tool-result needs the `toolCallId` it answers.')
  const { toolCallId, toolName, result, output } = parsed.data
  if (toolName !== undefined && toolName !== CONFIRMATION_TOOL) {
    throw badAnswer(
      `A tool-result over HTTP answers ${CONFIRMATION_TOOL} under the id of that request, not the tool ${toolName}: the server runs ${toolName} itself.`,
    )
  }
  return toDecision(toolCallId, readConfirmation(result ?? output))
}

function readConfirmation(output: unknown): { approved: boolean; reason?: string | undefined } {
  const parsed = Confirmation.safeParse(output)
  if (!parsed.success) {
    throw badAnswer(
      `The output of ${CONFIRMATION_TOOL} must be { "confirmed": true } or { "confirmed": false }.`,
    )
  }
  const { confirmed: approved, reason } = parsed.data
  return { approved, reason }
}

function toDecision(
  approvalId: string,
  { approved, reason }: { approved: boolean; reason?: string | undefined },
): DecisionAnswer {
  return { approvalId, approved, ...(reason !== undefined && { reason }) }
}

function withEdits(decisions: readonly DecisionAnswer[], edits: Edits): DecisionAnswer[] {
  return decisions.map((decision) => {
    const { approvalId } = decision
    const editedArgs = Object.hasOwn(edits, approvalId) ? edits[approvalId] : undefined
    return editedArgs === undefined ? decision : { ...decision, editedArgs }
  })
}

function isToolPart({ type }: RawPart): boolean {
  return type.startsWith('tool-') || type === 'dynamic-tool'
}

const BAD_DECISION =
  'A part in state approval-responded needs `approval: { id, approved }`, with `approved` true or false.'

function badAnswer(message: string): ProtocolError {
  return new ProtocolError('bad-request', { message })
}
