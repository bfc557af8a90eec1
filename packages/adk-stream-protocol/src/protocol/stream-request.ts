import { z } from 'zod'

import { ProtocolError } from './errors.ts'
import { isRawPart, partsOf, RawMessage, UncheckedArray } from './client-input.ts'
import type { Responses, DecisionResponse } from './read-responses.ts'
import {
  checkCount,
  Edits,
  Payloads,
  Offers,
  Previews,
  readResponses,
  readEarlierDecisions,
} from './read-responses.ts'

/** The limits of a request. */
export interface MessageLimits {
  /**
   * Messages in the body. Default 100,000, because the AI SDK uploads the whole history with each message. The server
   * reads only a few of them.
   */
  readonly maxMessages: number
  /** Parts of the newest message. Default 64. */
  readonly maxParts: number
  /** Decisions and tool results in a request, counted before any of them is read. Default 256. */
  readonly maxResponses: number
  /** Characters of text in the newest message. Default 200,000. */
  readonly maxTextLength: number
  /** Decoded bytes of one file. Default 5 MiB. */
  readonly maxFileBytes: number
  /** Accepted media types of files, exact or with a trailing `/*`. Default: common images, audio, PDF and plain text. */
  readonly fileTypes: readonly string[]
}

/** The newest user message. The server ignores the other messages that a client sends (RQ1). */
export interface UserMessage {
  readonly id: string | undefined
  readonly parts: readonly UserPart[]
}

/** A part of a user message: text or a file. */
export type UserPart =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'file'
      readonly mediaType: string
      readonly data: string
      readonly filename?: string
    }

/** The body of `POST /stream`: a new message, or the responses that the last turn waits for. */
export type StreamRequest = (MessageRequest | ResponsesRequest) & {
  /** The format in which the client reads the turn, if the body names it as `dialect`. */
  readonly format?: string
  /** The agent for a new chat, from `?agent=`. */
  readonly addressed?: string
  /** Whether a live stream stays open while it waits for a response. */
  readonly hold?: boolean
  /** Whether the client asks for positions. */
  readonly positions?: boolean
  /** Decisions about requests in earlier messages. The client may have sent them before. */
  readonly earlier: readonly DecisionResponse[]
}

/** What a client sends in addition to its message. The client controls all of it. */
export interface ClientContext {
  /** Fields of the body that are not part of the protocol: the `body` option of `useChat`. */
  readonly body: Readonly<Record<string, unknown>>
  /** The `metadata` of the newest message. */
  readonly metadata?: unknown
}

export interface MessageRequest {
  readonly type: 'message'
  readonly chatId: string
  readonly message: UserMessage
  readonly context?: ClientContext
  /**
   * Whether the message replaces the stored message with its id and all later ones: the AI SDK's `regenerate()` and
   * `sendMessage({ messageId })`.
   */
  readonly replaces: boolean
  /** The newest user message that the page showed. A message that replaces others removes no newer ones. Undefined if it does not say. */
  readonly newestMessageId?: string
  /** The approvals and questions that the page showed as open when the person sent the message. Undefined if it does not say. */
  readonly openApprovals?: readonly string[]
  /** The ids of all earlier messages. Empty if the client sent a message without an id. */
  readonly history: readonly string[]
}

export interface ResponsesRequest extends Responses {
  readonly type: 'responses'
  readonly chatId: string
}

/** Ids appear in paths, logs and databases, so they are short and plain. */
export const ChatId = z.string().regex(/^[\w.~:-]{1,128}$/, {
  message: 'A chat id has 1 to 128 letters, digits or . _ ~ : - characters.',
})

/** The ids of the approvals and questions that the page shows as open. */
export const OpenApprovals = z.array(z.string().max(256)).max(256).readonly()

const Body = z.looseObject({
  // The AI SDK sends `id`, clients of the Python server send `chatId`.
  id: ChatId.optional(),
  chatId: ChatId.optional(),
  messages: UncheckedArray.refine(({ length }) => length > 0, 'messages is empty.'),
  trigger: z.enum(['submit-message', 'regenerate-message']).default('submit-message'),
  messageId: z.string().max(128).nullish(),
  edits: Edits.optional(),
  payloads: Payloads.optional(),
  previews: Previews.optional(),
  offers: Offers.optional(),
  dialect: z.string().max(64).optional(),
  hold: z.boolean().optional(),
  positions: z.boolean().optional(),
  openApprovals: OpenApprovals.optional(),
  newestMessageId: z.string().max(128).optional(),
})

const TextPart = z.object({ text: z.string() })
const FilePart = z.object({
  mediaType: z.string().max(128),
  url: z.string(),
  filename: z.string().max(256).optional(),
})

/** Reads the body of `POST /stream`: that of the AI SDK, or `{ messages, chatId }` with `content` strings. */
export function readStreamRequest(body: unknown, limits: MessageLimits): StreamRequest {
  const {
    id,
    chatId = id,
    messages,
    trigger,
    messageId,
    edits,
    payloads,
    previews,
    offers,
    dialect,
    hold,
    positions,
    openApprovals,
    newestMessageId,
    ...own
  } = parse(Body, body, '')
  if (chatId === undefined) throw badRequest(NO_CHAT)
  const { maxMessages, maxResponses } = limits
  if (messages.length > maxMessages)
    throw badRequest(`The body contains more than ${maxMessages} messages.`)
  for (const given of [edits, payloads, previews, offers])
    checkCount(Object.keys(given ?? {}).length, maxResponses)
  const options = { maxResponses, edits, payloads, previews, offers }
  const last = parse(RawMessage, messages.at(-1), 'the newest message')
  const named = findRespondedMessage(messages, messageId)
  const responses = readResponses(named?.message ?? last, options)
  const index = responses && named ? named.index : messages.length - 1
  const kind = {
    earlier: readEarlierDecisions(messages.toSpliced(index, 1), options),
    ...readStreaming({ dialect, hold, positions }),
  }
  if (responses) return { type: 'responses', chatId, ...responses, ...kind }
  if (last.role !== 'user') throw new ProtocolError('nothing-new')
  return {
    ...kind,
    type: 'message',
    chatId,
    message: { id: last.id, parts: readParts(last, limits) },
    context: { body: own, metadata: last.metadata },
    replaces: trigger === 'regenerate-message' || isNamed(last, messageId),
    ...(openApprovals && { openApprovals }),
    ...(newestMessageId !== undefined && { newestMessageId }),
    history: readIds(messages.slice(0, -1)),
  }
}

/** Returns how the client wants to read the turn. */
function readStreaming({ dialect, hold, positions }: Partial<z.infer<typeof Body>>) {
  return {
    ...(dialect !== undefined && { format: dialect }),
    ...(hold !== undefined && { hold }),
    ...(positions !== undefined && { positions }),
  }
}

function isNamed({ id }: RawMessage, messageId: string | null | undefined): boolean {
  return id !== undefined && id === messageId
}

/** Returns the ids of messages. Returns none if one of them has no id. */
function readIds(messages: readonly unknown[]): string[] {
  const ids = messages.flatMap((message) => Named.safeParse(message).data?.id ?? [])
  return ids.length === messages.length ? ids : []
}

const NO_CHAT =
  'The body needs a chat id in `id` (or `chatId`). Choose any name, and use it for all messages of the conversation.'

/** AP14: a client that responds to an older request names its message, and sends newer messages after it. */
function findRespondedMessage(
  messages: readonly unknown[],
  messageId: string | null | undefined,
): { readonly message: RawMessage; readonly index: number } | undefined {
  // A client without ids names no message.
  if (typeof messageId !== 'string') return undefined
  const index = messages.findLastIndex((message) => Named.safeParse(message).data?.id === messageId)
  const message = RawMessage.safeParse(messages[index]).data
  return message?.role === 'assistant' ? { message, index } : undefined
}

const Named = z.object({ id: z.string() })

function readParts(message: RawMessage, limits: MessageLimits): UserPart[] {
  if (message.parts === undefined && typeof message.content === 'string') {
    return [readText({ text: message.content }, limits)]
  }
  const raw = partsOf(message)
  if (raw.length > limits.maxParts) {
    throw badRequest(`The newest message has more than ${limits.maxParts} parts.`)
  }
  const parts = raw.flatMap((part) => readPart(part, limits))
  const length = parts.reduce((sum, part) => sum + (part.type === 'text' ? part.text.length : 0), 0)
  if (length > limits.maxTextLength) throw tooLong(limits)
  if (parts.length === 0) throw badRequest('The newest message is empty. Send text or a file.')
  return parts
}

function readPart(part: unknown, limits: MessageLimits): UserPart[] {
  if (!isRawPart(part))
    throw badRequest('the newest message.parts: each part must be an object with a `type`.')
  if (part.type === 'text') return [readText(part, limits)]
  if (part.type === 'file') return [readFile(part, limits)]
  // RQ4: application data of the page is not for the agent.
  if (part.type.startsWith('data-')) return []
  throw badRequest(`A user message cannot contain a part of type ${JSON.stringify(part.type)}.`)
}

function readText(part: unknown, limits: MessageLimits): UserPart {
  return checkText(parse(TextPart, part, 'a text part').text, limits)
}

/** Returns a text of a user as a message part. Throws if it is empty or too long. */
export function checkText(text: string, limits: MessageLimits): UserPart {
  if (text.length > limits.maxTextLength) throw tooLong(limits)
  if (text.trim() === '') throw badRequest('The text of the newest message is empty.')
  // UTF-8 cannot encode a lone surrogate, so the model would read a different text than the stored one.
  return { type: 'text', text: text.toWellFormed() }
}

const DATA_URL = /^data:[^,;]*;base64,/

function readFile(part: unknown, limits: MessageLimits): UserPart {
  const { mediaType, url, filename } = parse(FilePart, part, 'a file part')
  const type = checkFileType(mediaType, limits)
  const head = DATA_URL.exec(url.slice(0, 256))?.[0]
  if (head === undefined) {
    throw badRequest('A file must be a complete base64 data: URL. The server does not fetch links.')
  }
  const data = url.slice(head.length)
  checkFileSize(data, limits)
  if (!isBase64(data)) throw badRequest('The data: URL of a file is not valid base64.')
  return { type: 'file', mediaType: type, data, ...(filename !== undefined && { filename }) }
}

/** Returns the media type of a file in lower case. Throws if it is not accepted. */
export function checkFileType(mediaType: string, { fileTypes }: MessageLimits): string {
  const type = mediaType.toLowerCase()
  const isAccepted = fileTypes.some((pattern) =>
    pattern.endsWith('/*') ? type.startsWith(pattern.slice(0, -1)) : pattern === type,
  )
  if (isAccepted) return type
  throw badRequest(
    `Files of type ${JSON.stringify(mediaType)} are not accepted. Accepted: ${fileTypes.join(', ')}.`,
  )
}

/** Throws if a base64 file is too large. */
export function checkFileSize(base64: string, { maxFileBytes }: MessageLimits): void {
  const padding = base64.endsWith('==') ? 2 : Number(base64.endsWith('='))
  if (Math.floor(((base64.length - padding) * 3) / 4) <= maxFileBytes) return
  throw new ProtocolError('too-large', {
    message: `A file is larger than ${maxFileBytes} bytes. Send a smaller one.`,
  })
}

function isBase64(text: string): boolean {
  return text.length > 0 && text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text)
}

function parse<Schema extends z.ZodType>(
  schema: Schema,
  value: unknown,
  what: string,
): z.infer<Schema> {
  const parsed = schema.safeParse(value)
  if (parsed.success) return parsed.data
  const issue = parsed.error.issues[0]
  const path = [what, ...(issue?.path ?? [])].filter((step) => step !== '').join('.')
  throw badRequest(`${path === '' ? 'The body' : path}: ${issue?.message ?? 'unexpected shape'}`)
}

function badRequest(message: string): ProtocolError {
  return new ProtocolError('bad-request', { message })
}

function tooLong(limits: MessageLimits): ProtocolError {
  return new ProtocolError('too-large', {
    message: `The newest message is longer than ${limits.maxTextLength} characters. Send less.`,
  })
}
