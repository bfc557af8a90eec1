import { z } from 'zod'

import type { FrameFault } from '../../../protocol/client-frame.ts'
import {
  RawMessage,
  UncheckedArray,
  describeIssue,
  parseJson,
} from '../../../protocol/client-input.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import { isRecord } from '../../../protocol/guards.ts'
import type { ToolResult } from '../../../protocol/read-responses.ts'
import { readResults } from '../../../protocol/read-responses.ts'
import { ChatId } from '../../../protocol/stream-request.ts'

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
