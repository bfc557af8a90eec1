import { z } from 'zod'

import { ProtocolError } from './errors.ts'
import { isRecord } from './guards.ts'
import { CONFIRMATION_TOOL } from './message.ts'
import type { RawMessage, RawPart } from './client-input.ts'
import { isRawPart, partsOf } from './client-input.ts'

/** A person's decision about a call. */
export interface DecisionResponse {
  readonly approvalId: string
  readonly approved: boolean
  readonly reason?: string
  readonly editedArgs?: Readonly<Record<string, unknown>>
  /** The response to the payload of the tool. */
  readonly payload?: unknown
  /** The digest of the preview that the person saw. */
  readonly preview?: string
  /** The id of the offer of the approval that the person chose. */
  readonly offer?: string
}

/** The result of a tool that ran in the client. */
export interface OutputResponse {
  readonly toolCallId: string
  readonly result: { readonly output: unknown } | { readonly errorText: string }
}

/** A response of a client under an id: a decision about a call, or its result. */
export interface ToolResult {
  readonly toolCallId: string
  readonly toolName?: string | undefined
  readonly result?: unknown
  /** Edited arguments, if the client sent them separately. */
  readonly editedArgs?: Readonly<Record<string, unknown>> | undefined
  /** The response to the payload of the tool, if the client sent it separately. */
  readonly payload?: unknown
  /** The digest of the preview that the person saw. */
  readonly preview?: string | undefined
  /** The id of the offer of the approval that the person chose. */
  readonly offer?: string | undefined
}

/** The responses to a turn that waits. Only responses to calls that are waiting take effect. Others are history. */
export interface Responses {
  /** The assistant message that contains the responses, if there is one. */
  readonly messageId: string | undefined
  readonly decisions: readonly DecisionResponse[]
  readonly outputs: readonly OutputResponse[]
  /** Results with an id that may belong to an approval or to a call. Only the server knows which. */
  readonly results: readonly ToolResult[]
}

/** Edited arguments by approval id. They are separate from the messages, because messages of the AI SDK have no field for them. */
export const Edits = z.custom<Readonly<Record<string, Readonly<Record<string, unknown>>>>>(
  isRecord,
  { message: 'Invalid input: expected an object of edited arguments by approval id' },
)
export type Edits = z.infer<typeof Edits>

/** Responses to payloads of tools by approval id, separate from the messages for the same reason. */
export const Payloads = z.custom<Readonly<Record<string, unknown>>>(isRecord, {
  message: 'Invalid input: expected an object of payloads by approval id',
})
export type Payloads = z.infer<typeof Payloads>

/** The digest of a preview. */
export const Digest = z.string().min(1).max(256)

/** Digests of the previews that the person saw, by approval id. */
export const Previews = z.custom<Readonly<Record<string, unknown>>>(isRecord, {
  message: 'Invalid input: expected an object of preview digests by approval id',
})
export type Previews = z.infer<typeof Previews>

/** Ids of the offers that the person chose, by approval id. */
export const Offers = z.custom<Readonly<Record<string, unknown>>>(isRecord, {
  message: 'Invalid input: expected an object of offer ids by approval id',
})
export type Offers = z.infer<typeof Offers>

/** Additions to decisions that are separate from the messages. */
export interface Supplements {
  readonly edits?: Edits | undefined
  readonly payloads?: Payloads | undefined
  readonly previews?: Previews | undefined
  readonly offers?: Offers | undefined
}

interface ReadResponsesOptions extends Supplements {
  /** The maximum number of responses in a request (RQ131). */
  readonly maxResponses: number
}

const Id = z.string().min(1).max(256)
const Reason = z.string().max(2_000)

/** A call with the decision of a person, as the AI SDK sends it. A call that ran in the client also has its output. */
const RespondedPart = z.object({
  state: z.enum(['approval-responded', 'output-available', 'output-error']),
  approval: z.object({ id: Id, approved: z.boolean(), reason: Reason.optional() }),
})

const OutputPart = z.discriminatedUnion('state', [
  z.object({ state: z.literal('output-available'), toolCallId: Id, output: z.unknown() }),
  z.object({ state: z.literal('output-error'), toolCallId: Id, errorText: z.string().max(10_000) }),
])

/** A confirmation with an `approval` instead of an output, as clients of the Python server send it. */
const ConfirmedPart = z.object({
  toolCallId: Id.optional(),
  approval: z.object({ id: Id.optional(), approved: z.boolean(), reason: Reason.optional() }),
})

const ResultPart = z.object({
  toolCallId: Id,
  toolName: z.string().max(256).optional(),
  result: z.unknown().optional(),
  output: z.unknown().optional(),
})

/** Reads the responses in a message. Returns undefined if it contains none. */
export function readResponses(
  message: RawMessage,
  { maxResponses, ...supplements }: ReadResponsesOptions,
): Responses | undefined {
  const results = readResults(message, maxResponses).map((result) =>
    supplement(result, result.toolCallId, supplements),
  )
  if (message.role === 'user' && results.length > 0)
    return { messageId: undefined, decisions: [], outputs: [], results }
  if (message.role !== 'assistant') return undefined
  const parts = selectResponses(partsOf(message), maxResponses)
  const decisions = parts.flatMap((part) => readDecision(part, supplements))
  const outputs = parts.flatMap(readOutput)
  if (decisions.length + outputs.length + results.length === 0) return undefined
  return { messageId: message.id, decisions, outputs, results }
}

/**
 * Reads decisions in other messages than the one that the request is about. The AI SDK shows a decision on an older
 * request as made, but sends it only with the next message. Ignores invalid ones, and all but the newest if there are
 * too many.
 */
export function readEarlierDecisions(
  messages: readonly unknown[],
  { maxResponses, ...supplements }: ReadResponsesOptions,
): DecisionResponse[] {
  const parts: RawPart[] = []
  for (const message of messages.toReversed()) {
    if (parts.length >= maxResponses) break
    if (!isRecord(message) || message['role'] !== 'assistant') continue
    const own = Array.isArray(message['parts']) ? (message['parts'] as readonly unknown[]) : []
    const responded = own.filter(isRawPart).filter(({ state }) => state === 'approval-responded')
    parts.unshift(...responded.slice(parts.length - maxResponses))
  }
  return parts
    .filter((part) => RespondedPart.safeParse(part).success)
    .flatMap((part) => readDecision(part, supplements))
}

/**
 * Reads results that only the server can interpret: all results in a user message, and the confirmations in an
 * assistant message.
 */
export function readResults(message: RawMessage, maxResponses: number): ToolResult[] {
  const isUser = message.role === 'user'
  if (!isUser && message.role !== 'assistant') return []
  const parts = partsOf(message).filter(isRawPart)
  const results = isUser ? parts.filter(isToolPart) : parts.filter(isConfirmationResponse)
  checkCount(results.length, maxResponses)
  return results.map(toResult)
}

/** Throws if a request contains too many responses. Called before any of them is read. */
export function checkCount(count: number, maxResponses: number): void {
  if (count <= maxResponses) return
  throw invalidResponse(
    `The request contains more than ${maxResponses} responses. Send fewer at once.`,
  )
}

/**
 * Returns the parts of an assistant message that may be responses. Clients send all calls of a message, so most calls
 * with an output are history. Only the newest of them are read.
 */
function selectResponses(parts: readonly unknown[], maxResponses: number): RawPart[] {
  const calls = parts.filter(
    (part): part is RawPart =>
      isRawPart(part) && isToolPart(part) && !isConfirmation(part) && hasResponse(part),
  )
  const responded = calls.filter(({ state }) => state === 'approval-responded')
  checkCount(responded.length, maxResponses)
  let ignored = calls.filter(hasEnded).length - maxResponses
  return calls.filter((part) => !hasEnded(part) || (ignored -= 1) < 0)
}

function hasResponse(part: RawPart): boolean {
  return part['state'] === 'approval-responded' || hasEnded(part)
}

function hasEnded({ state }: RawPart): boolean {
  return state === 'output-available' || state === 'output-error'
}

function readDecision(part: RawPart, supplements: Supplements): DecisionResponse[] {
  const responded = RespondedPart.safeParse(part)
  if (responded.success) {
    const { id: approvalId, approved, reason } = responded.data.approval
    const decision = { approvalId, approved, ...(reason !== undefined && { reason }) }
    return [supplement(decision, approvalId, supplements)]
  }
  // A decision must be true or false.
  if (part['state'] === 'approval-responded') throw invalidResponse(BAD_DECISION)
  return []
}

function readOutput(part: RawPart): OutputResponse[] {
  const parsed = OutputPart.safeParse(part).data
  if (parsed === undefined) return []
  const { toolCallId } = parsed
  return parsed.state === 'output-error'
    ? [{ toolCallId, result: { errorText: parsed.errorText } }]
    : [{ toolCallId, result: { output: parsed.output } }]
}

function isConfirmationResponse(part: RawPart): boolean {
  if (!isConfirmation(part)) return false
  if (part['state'] === 'output-available') return true
  const { approval } = part
  return isRecord(approval) && 'approved' in approval
}

function toResult(part: RawPart): ToolResult {
  const confirmed = ConfirmedPart.safeParse(part).data
  const id = confirmed?.approval.id ?? (isConfirmation(part) ? confirmed?.toolCallId : undefined)
  if (confirmed && id !== undefined) {
    const { approved, reason } = confirmed.approval
    const result = { confirmed: approved, ...(reason !== undefined && { reason }) }
    return { toolCallId: id, toolName: CONFIRMATION_TOOL, result }
  }
  const parsed = ResultPart.safeParse(part)
  if (!parsed.success) {
    const type = JSON.stringify(part.type)
    throw invalidResponse(`A part of type ${type} needs the \`toolCallId\` of its call.`)
  }
  const { toolCallId, output, result = output } = parsed.data
  const isNamed = part.type !== 'tool-result' && part.type !== 'dynamic-tool'
  const named = isNamed ? part.type.slice('tool-'.length) : parsed.data.toolName
  return { toolCallId, result, ...(named !== undefined && { toolName: named }) }
}

/** Adds edited arguments and payloads to the response that they belong to. */
function supplement<Response extends object>(
  response: Response,
  id: string,
  { edits = {}, payloads = {}, previews = {}, offers = {} }: Supplements,
): Response & Pick<DecisionResponse, 'editedArgs' | 'payload' | 'preview' | 'offer'> {
  const editedArgs = getEditedArgs(edits, id)
  const preview = Digest.safeParse(Object.hasOwn(previews, id) ? previews[id] : undefined).data
  const offer = Digest.safeParse(Object.hasOwn(offers, id) ? offers[id] : undefined).data
  const payload = Object.hasOwn(payloads, id) ? payloads[id] : undefined
  return {
    ...response,
    ...(editedArgs && { editedArgs }),
    ...(payload !== undefined && { payload }),
    ...(preview !== undefined && { preview }),
    ...(offer !== undefined && { offer }),
  }
}

function getEditedArgs(edits: Edits, approvalId: string): DecisionResponse['editedArgs'] {
  if (!Object.hasOwn(edits, approvalId)) return undefined
  const edit = edits[approvalId]
  if (!isRecord(edit)) throw invalidResponse('Edited arguments must be an object.')
  return edit
}

function isToolPart({ type }: RawPart): boolean {
  return type.startsWith('tool-') || type === 'dynamic-tool'
}

function isConfirmation({ type }: RawPart): boolean {
  return type === `tool-${CONFIRMATION_TOOL}`
}

const BAD_DECISION =
  'A part in state approval-responded needs `approval: { id, approved }`, with `approved` true or false.'

function invalidResponse(message: string): ProtocolError {
  return new ProtocolError('bad-request', { message })
}
