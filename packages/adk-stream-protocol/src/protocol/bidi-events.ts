import { z } from 'zod'

import type { FrameFault } from './client-frame.ts'
import { CONFIRMATION_TOOL } from './confirmation-tool.ts'
import { ProtocolError } from './errors.ts'
import { parseJson } from './json.ts'
import type { ToolResult } from './read-tool-result.ts'
import { ChatId } from './stream-request.ts'

/** The subprotocol of text frames. */
export const BIDI_SUBPROTOCOL = 'bidi'

const Id = z.string().min(1).max(256)
const Approved = z.object({
  id: Id.optional(),
  approved: z.boolean(),
  reason: z.string().max(2_000).optional(),
})

/** What every event may say beside its own; versions and times are not for us. */
const common = { id: ChatId.optional(), chatId: ChatId.optional() }

const Events = {
  message: z.object({
    ...common,
    messages: z.array(z.unknown()).min(1, 'messages is empty.'),
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
    // What the model hears; anything else would be noise to it.
    channels: z.literal(1).optional(),
    bitDepth: z.literal(16).optional(),
  }),
}

type EventName = keyof typeof Events

type EventOf<Name extends EventName> = {
  readonly type: 'bidi'
  readonly event: Name
  /** The chat that it names. */
  readonly chatId: string | undefined
} & Omit<z.infer<(typeof Events)[Name]>, 'id' | 'chatId'>

/** An event of a client that speaks text frames. */
export type BidiEvent =
  | (EventOf<'message'> & {
      /** The answers in the newest message, where it is one of the person that holds such. */
      readonly results: readonly ToolResult[]
    })
  | { [Name in Exclude<EventName, 'message'>]: EventOf<Name> }[Exclude<EventName, 'message'>]

/** Whether a first frame is of a client that speaks text frames: `ping` and `interrupt` are so by what they carry. */
export function isBidiShaped(bytes: Uint8Array): boolean {
  try {
    const { type, ...rest } = Named.parse(parseJson(bytes))
    if (!isEventName(type)) return false
    return !['interrupt', 'ping'].includes(type) || 'version' in rest || 'timestamp' in rest
  } catch {
    // Whatever it is, it will be refused by whoever reads it.
    return false
  }
}

/** Reads an event, flat or with its content under `data`. One that cannot be used comes back as what is wrong with it (BD2). */
export function readBidiEvent(bytes: Uint8Array): BidiEvent | { readonly fault: FrameFault } {
  let name = 'unknown'
  try {
    const { data, ...rest } = Named.parse(parseJson(bytes))
    name = rest.type ?? name
    if (!isEventName(name)) throw badEvent(`There is no such event. ${KNOWN}`)
    return toEvent(name, { ...rest, ...Nested.parse(data) })
  } catch (thrown) {
    if (!(thrown instanceof ProtocolError)) throw thrown
    const { code, message } = thrown
    return { fault: { frame: name, requestId: undefined, code, message } }
  }
}

const Named = z
  .looseObject({
    type: z.string().max(64).optional().catch(undefined),
    data: z.unknown().optional(),
  })
  .catch({ type: undefined, data: undefined })

const Nested = z.record(z.string(), z.unknown()).catch({})

const KNOWN = `Events are ${Object.keys(Events).join(', ')}.`

function isEventName(name: string | undefined): name is EventName {
  return name !== undefined && Object.hasOwn(Events, name)
}

function toEvent(name: EventName, content: object): BidiEvent {
  const parsed = Events[name].safeParse(content)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    const where = issue?.path.join('.') ?? ''
    throw badEvent(`${where === '' ? 'The event' : where}: ${issue?.message ?? 'unexpected shape'}`)
  }
  const { id, chatId = id, ...rest } = parsed.data
  const event = { type: 'bidi', event: name, chatId, ...rest }
  if ('messages' in rest) {
    const messages = rest.messages.map((message, index) =>
      index === rest.messages.length - 1 ? withOutputs(message) : message,
    )
    Object.assign(event, { messages, results: readResults(messages.at(-1)) })
  }
  // The schema of this name made the content.
  return event as BidiEvent
}

const RawPart = z.looseObject({ type: z.string().max(128) })
const RawMessage = z.looseObject({
  role: z.string(),
  parts: z.array(RawPart).optional(),
  content: z.array(RawPart).optional(),
})
type RawPart = z.infer<typeof RawPart>

/** A confirmation that carries `approval` in place of an output says the same: seeds 000 and 004 send it so. */
function withOutputs(message: unknown): unknown {
  const read = RawMessage.safeParse(message).data
  if (!read) return message
  const parts = (read.parts ?? read.content ?? []).map((part) => {
    const approval = Approved.safeParse(part['approval']).data
    if (part.type !== `tool-${CONFIRMATION_TOOL}` || 'output' in part || !approval) return part
    const { id = part['toolCallId'], approved: confirmed, reason } = approval
    const output = { confirmed, ...(reason !== undefined && { reason }) }
    return { type: part.type, toolCallId: id, state: 'output-available', output }
  })
  const { content: _content, ...rest } = read
  return { ...rest, parts }
}

/** Answers in a message of the person: the assistant's are read as everywhere. */
function readResults(message: unknown): ToolResult[] {
  const { role, parts = [] } = RawMessage.safeParse(message).data ?? {}
  return role === 'user' ? parts.filter(({ type }) => type.startsWith('tool-')).map(toResult) : []
}

const ResultPart = z.object({
  toolCallId: Id,
  toolName: z.string().max(256).optional(),
  result: z.unknown().optional(),
  output: z.unknown().optional(),
})

function toResult(part: RawPart): ToolResult {
  const approval = Approved.safeParse(part['approval']).data
  if (approval?.id !== undefined) {
    const { id: toolCallId, approved: confirmed, reason } = approval
    const result = { confirmed, ...(reason !== undefined && { reason }) }
    return { toolCallId, toolName: CONFIRMATION_TOOL, result }
  }
  const parsed = ResultPart.safeParse(part)
  if (!parsed.success) throw badEvent(`A ${part.type} needs the \`toolCallId\` it answers.`)
  const { toolCallId, output, result = output } = parsed.data
  const named = part.type === 'tool-result' ? parsed.data.toolName : part.type.slice('tool-'.length)
  return { toolCallId, result, ...(named !== undefined && { toolName: named }) }
}

function badEvent(message: string): ProtocolError {
  return new ProtocolError('bad-request', { message })
}
