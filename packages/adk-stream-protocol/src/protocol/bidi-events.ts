import { z } from 'zod'

import type { FrameFault } from './client-frame.ts'
import { RawMessage, UncheckedArray, describeIssue, parseJson } from './client-input.ts'
import { ProtocolError } from './errors.ts'
import { isRecord } from './guards.ts'
import { CONFIRMATION_TOOL } from './message.ts'
import type { DecisionResponse, OutputResponse, ToolResult } from './read-responses.ts'
import { readResults } from './read-responses.ts'
import { ChatId } from './stream-request.ts'

/** The WebSocket subprotocol of text frames. */
export const BIDI_SUBPROTOCOL = 'bidi'

const Id = z.string().min(1).max(256)
/** How many calls a user message may respond to. No chat can have more pending approvals. */
const MAX_RESULTS = 256

/** Fields that every event may have. Versions and timestamps are ignored. */
const common = { id: ChatId.optional(), chatId: ChatId.optional() }

const Events = {
  message: z.object({
    ...common,
    messages: UncheckedArray.refine(({ length }) => length > 0, 'messages is empty.'),
    trigger: z.enum(['submit-message', 'regenerate-message']).optional(),
    messageId: z.string().max(128).nullish(),
  }),
  tool_result: z
    .object({
      ...common,
      toolCallId: Id,
      toolName: z.string().max(256).optional(),
      result: z.unknown().optional(),
    })
    .refine(({ result }) => result !== undefined, { message: 'Required.', path: ['result'] }),
  interrupt: z.object({ ...common, reason: z.string().max(256).optional() }),
  ping: z.object({ ...common, timestamp: z.union([z.number(), z.string().max(128)]).optional() }),
  audio_control: z.object({ ...common, action: z.enum(['start', 'stop']) }),
  audio_chunk: z.object({
    ...common,
    chunk: z.base64().min(1),
    sampleRate: z.number().int().min(8_000).max(48_000).default(16_000),
    // The model only accepts mono audio with 16 bits.
    channels: z.literal(1).optional(),
    bitDepth: z.literal(16).optional(),
  }),
}

type EventName = keyof typeof Events

type EventOf<Name extends EventName> = {
  readonly type: 'bidi'
  readonly event: Name
  /** The chat of the event. */
  readonly chatId: string | undefined
} & Omit<z.infer<(typeof Events)[Name]>, 'id' | 'chatId'>

/** An event from a client that uses text frames. */
export type BidiEvent =
  | (EventOf<'message'> & {
      /** The responses in the newest message, if it is a user message. */
      readonly results: readonly ToolResult[]
    })
  | { [Name in Exclude<EventName, 'message'>]: EventOf<Name> }[Exclude<EventName, 'message'>]

/**
 * Whether the first frame comes from a client that uses text frames. `ping` and `interrupt` exist in both protocols
 * and are recognised by their fields.
 */
export function isBidiShaped(bytes: Uint8Array): boolean {
  try {
    const { type, content } = readNamed(parseJson(bytes))
    if (!isEventName(type)) return false
    return !['interrupt', 'ping'].includes(type) || 'version' in content || 'timestamp' in content
  } catch {
    // The reader of the frame rejects it.
    return false
  }
}

/** Reads an event, either flat or with its content under `data`. Returns the fault of an invalid event (BD2). */
export function readBidiEvent(bytes: Uint8Array): BidiEvent | { readonly fault: FrameFault } {
  let name = 'unknown'
  try {
    const { type, content } = readNamed(parseJson(bytes))
    name = type ?? name
    if (!isEventName(name)) throw badEvent(`Unknown event. ${KNOWN}`)
    return toEvent(name, content)
  } catch (thrown) {
    if (!(thrown instanceof ProtocolError)) throw thrown
    const { code, message } = thrown
    return { fault: { frame: name, requestId: undefined, code, message } }
  }
}

/** Returns the type of an event and its fields, whatever its shape. */
function readNamed(value: unknown): {
  readonly type: string | undefined
  readonly content: Readonly<Record<string, unknown>>
} {
  const content = isRecord(value) ? value : {}
  const { type, data } = content
  return {
    type: typeof type === 'string' && type.length <= 64 ? type : undefined,
    content: isRecord(data) ? { ...content, ...data } : content,
  }
}

const KNOWN = `The events are ${Object.keys(Events).join(', ')}.`

function isEventName(name: string | undefined): name is EventName {
  return name !== undefined && Object.hasOwn(Events, name)
}

function toEvent(name: EventName, content: object): BidiEvent {
  const parsed = Events[name].safeParse(content)
  if (!parsed.success) throw badEvent(describeIssue(parsed.error, 'The event'))
  const { id, chatId = id, ...rest } = parsed.data
  const event = { type: 'bidi', event: name, chatId, ...rest }
  if ('messages' in rest) {
    const newest = RawMessage.safeParse(rest.messages.at(-1)).data
    const results = newest?.role === 'user' ? readResults(newest, MAX_RESULTS) : []
    Object.assign(event, { results })
  }
  // The schema of this event type produced the content.
  return event as BidiEvent
}

function badEvent(message: string): ProtocolError {
  return new ProtocolError('bad-request', { message })
}

/** The approval that an id refers to, by its own id or by the id of its call. */
export interface NamedApproval {
  readonly by: 'approval' | 'call'
  readonly approvalId: string
  readonly toolCallId: string
  readonly toolName: string
  readonly messageId: string
  /** Whether the approval is pending. */
  readonly waits: boolean
  /** Whether it is a question, whose answer is the result of its call. */
  readonly isQuestion?: boolean
}

type ReadResult = { readonly decision: DecisionResponse } | { readonly output: OutputResponse }

const Confirmation = z.object({
  confirmed: z.boolean(),
  reason: z.string().max(2_000).optional(),
  payload: z.unknown().optional(),
})
const Consent = z.object({
  approved: z.boolean(),
  payload: z.unknown().optional(),
  user_message: z.string().max(2_000).optional(),
  reason: z.string().max(2_000).optional(),
})

/** Whether a result is a decision about the approval that its id refers to. */
export function decides({ result }: ToolResult, known: NamedApproval | undefined): boolean {
  if (!known || (known.isQuestion && known.by === 'call')) return false
  return (known.by === 'approval' ? Confirmation : Consent).safeParse(result).success
}

/**
 * Interprets a result as a decision or as an output. Throws an error that says what to send if the name, the id or
 * the result does not match (BD7, DI3).
 */
export function readToolResult(response: ToolResult, known: NamedApproval | undefined): ReadResult {
  const { toolCallId, toolName, result } = response
  if (!known) {
    if (toolName === CONFIRMATION_TOOL) throw new ProtocolError('unknown-approval')
    return { output: { toolCallId, result: { output: result } } }
  }
  // The server turns the output of a question into its answer.
  if (known.isQuestion && known.by === 'call' && toolName !== CONFIRMATION_TOOL)
    return { output: { toolCallId, result: { output: result } } }
  const expected = known.by === 'approval' ? CONFIRMATION_TOOL : known.toolName
  if (toolName !== undefined && toolName !== expected) {
    throw createMismatchError(
      `The id ${toolCallId} belongs to ${expected}, not to ${toolName}.`,
      known,
    )
  }
  const decided = known.by === 'approval' ? readConfirmation(result, known) : readConsent(result)
  if (decided) return { decision: toDecision(decided, response, known) }
  if (!known.waits) return { output: { toolCallId, result: { output: result } } }
  throw createAwaitingApprovalError(known)
}

/** Returns the error for the output of a call that waits for approval. It says what to send instead. */
export function createAwaitingApprovalError(known: NamedApproval): ProtocolError {
  return createMismatchError(`${known.toolName} waits for approval and has not run.`, known)
}

interface Decided {
  readonly approved: boolean
  readonly reason: string | undefined
  readonly payload: unknown
}

function readConfirmation(result: unknown, known: NamedApproval): Decided {
  const { data } = Confirmation.safeParse(result)
  if (!data)
    throw createMismatchError(`The result of ${CONFIRMATION_TOOL} has no \`confirmed\`.`, known)
  return { approved: data.confirmed, reason: data.reason, payload: data.payload }
}

function readConsent(result: unknown): Decided | undefined {
  const { data } = Consent.safeParse(result)
  if (!data) return undefined
  const { approved, user_message: userMessage, reason = userMessage, payload } = data
  return { approved, reason: userMessage ?? reason, payload }
}

function toDecision(
  { approved, reason, payload: own }: Decided,
  { editedArgs, payload = own, preview }: ToolResult,
  { approvalId }: NamedApproval,
): DecisionResponse {
  return {
    approvalId,
    approved,
    ...(reason !== undefined && { reason }),
    ...(editedArgs && { editedArgs }),
    ...(payload !== undefined && { payload }),
    ...(preview !== undefined && { preview }),
  }
}

function createMismatchError(
  fault: string,
  { approvalId, toolCallId, toolName }: NamedApproval,
): ProtocolError {
  const question = `{ "confirmed": true or false } for ${CONFIRMATION_TOOL} under the id ${approvalId}`
  const call = `{ "approved": true or false, "user_message": text } for ${toolName} under the id ${toolCallId}`
  return new ProtocolError('bad-request', { message: `${fault} Send ${question}, or ${call}.` })
}
