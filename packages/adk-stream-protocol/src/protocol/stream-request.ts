import { z } from 'zod'

import { ProtocolError } from './errors.ts'
import { isRawPart, partsOf, RawMessage, UncheckedArray } from './raw-message.ts'
import type { Responses, DecisionResponse } from './read-responses.ts'
import {
  checkCount,
  Edits,
  Payloads,
  readResponses,
  readEarlierDecisions,
} from './read-responses.ts'

/** What one request may hold. */
export interface MessageLimits {
  /** Default 100,000: the AI SDK uploads the whole history with every message. Only a few of them are read. */
  readonly maxMessages: number
  /** Parts of the newest message. Default 64. */
  readonly maxParts: number
  /** Decisions and outputs in one request, counted before any of them is looked at. Default 256. */
  readonly maxResponses: number
  /** Characters of text in the newest message. Default 200,000. */
  readonly maxTextLength: number
  /** Decoded bytes of one file. Default 5 MiB. */
  readonly maxFileBytes: number
  /** Media types of files, exact or with a trailing `/*`. Default: common images, audio, PDF and plain text. */
  readonly fileTypes: readonly string[]
}

/** The newest message of the user: all that the server reads of a conversation a client sends (RQ1). */
export interface UserMessage {
  readonly id: string | undefined
  readonly parts: readonly UserPart[]
}

/** A part of a person's message: text, or a file. */
export type UserPart =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'file'
      readonly mediaType: string
      readonly data: string
      readonly filename?: string
    }

/** A `POST /stream` body: a new message, or answers to what the last turn waits for. */
export type StreamRequest = (MessageRequest | ResponsesRequest) & {
  /** The kind of client, where the body says so. */
  readonly dialect?: string
  /** The agent that the address names for new chats, by `?agent=`. */
  readonly addressed?: string
  /** Whether a live stream stays open while it waits for a person. */
  readonly hold?: boolean
  /** Decisions about questions of earlier messages, which the client may have sent before. */
  readonly earlier: readonly DecisionResponse[]
}

/** What a client sends beside its message. It chose all of it. */
export interface ClientContext {
  /** What is in the body and is not part of the protocol: the `body` of `useChat`. */
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
   * Whether the message takes the place of the stored one with its id, and of all that followed: the AI SDK's
   * `regenerate()` and `sendMessage({ messageId })`.
   */
  readonly replaces: boolean
  /** The ids of all messages before it, where the client sent them with ids; else empty. */
  readonly history: readonly string[]
}

export interface ResponsesRequest extends Responses {
  readonly type: 'answers'
  readonly chatId: string
}

/** Ids travel in paths, logs and databases, so they are short and plain. */
export const ChatId = z.string().regex(/^[\w.~:-]{1,128}$/, {
  message: 'A chat id has 1 to 128 letters, digits or . _ ~ : - characters.',
})

const Body = z.looseObject({
  // `id` is what the AI SDK sends, `chatId` what clients of the earlier system send.
  id: ChatId.optional(),
  chatId: ChatId.optional(),
  messages: UncheckedArray.refine(({ length }) => length > 0, 'messages is empty.'),
  trigger: z.enum(['submit-message', 'regenerate-message']).default('submit-message'),
  messageId: z.string().max(128).nullish(),
  edits: Edits.optional(),
  payloads: Payloads.optional(),
  dialect: z.string().max(64).optional(),
  hold: z.boolean().optional(),
})

const TextPart = z.object({ text: z.string() })
const FilePart = z.object({
  mediaType: z.string().max(128),
  url: z.string(),
  filename: z.string().max(256).optional(),
})

/** Reads a `POST /stream` body: the AI SDK's, or `{ messages, chatId }` with `content` strings. */
export function readStreamRequest(body: unknown, limits: MessageLimits): StreamRequest {
  const {
    id,
    chatId = id,
    messages,
    trigger,
    messageId,
    edits,
    payloads,
    dialect,
    hold,
    ...own
  } = parse(Body, body, '')
  if (chatId === undefined) throw badRequest(NO_CHAT)
  if (messages.length > limits.maxMessages) {
    throw badRequest(`The body contains more than ${limits.maxMessages} messages.`)
  }
  const { maxResponses } = limits
  checkCount(Object.keys(edits ?? {}).length, maxResponses)
  checkCount(Object.keys(payloads ?? {}).length, maxResponses)
  const beside = { maxResponses, edits, payloads }
  const last = parse(RawMessage, messages.at(-1), 'the newest message')
  const named = findAnswered(messages, messageId)
  const answers = readResponses(named?.message ?? last, beside)
  const index = answers && named ? named.index : messages.length - 1
  const kind = {
    earlier: readEarlierDecisions(messages.toSpliced(index, 1), beside),
    ...(dialect !== undefined && { dialect }),
    ...(hold !== undefined && { hold }),
  }
  if (answers) return { type: 'answers', chatId, ...answers, ...kind }
  if (last.role !== 'user') throw new ProtocolError('nothing-new')
  return {
    ...kind,
    type: 'message',
    chatId,
    message: { id: last.id, parts: readParts(last, limits) },
    context: { body: own, metadata: last.metadata },
    replaces: trigger === 'regenerate-message' || (last.id !== undefined && messageId === last.id),
    history: readIds(messages.slice(0, -1)),
  }
}

/** The ids of messages; none if one of them has none. */
function readIds(messages: readonly unknown[]): string[] {
  const ids = messages.flatMap((message) => Named.safeParse(message).data?.id ?? [])
  return ids.length === messages.length ? ids : []
}

const NO_CHAT =
  'The body needs a chat id in `id` (or `chatId`). Choose any name, and use it for all messages of the conversation.'

/** AP14: a client that answers an older question names its message, and sends newer ones after it. */
function findAnswered(
  messages: readonly unknown[],
  messageId: string | null | undefined,
): { readonly message: RawMessage; readonly index: number } | undefined {
  // A client without ids names none, and has no message that is named by that.
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
  // RQ4: application data of the page is not addressed to the agent.
  if (part.type.startsWith('data-')) return []
  throw badRequest(`A user message cannot contain a part of type ${JSON.stringify(part.type)}.`)
}

function readText(part: unknown, limits: MessageLimits): UserPart {
  return checkText(parse(TextPart, part, 'a text part').text, limits)
}

/** The text of a person as a part of a message, however it came; throws if it is empty or too long. */
export function checkText(text: string, limits: MessageLimits): UserPart {
  if (text.length > limits.maxTextLength) throw tooLong(limits)
  if (text.trim() === '') throw badRequest('The text of the newest message is empty.')
  // A lone surrogate cannot be written as UTF-8; the model would see another text than the record.
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

/** The media type of a file in lower case, however it came; throws if it is not an accepted one. */
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

/** Throws if a file, in base64, is too large. */
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
