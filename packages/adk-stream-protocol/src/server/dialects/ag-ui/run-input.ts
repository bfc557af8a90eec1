import { z } from 'zod'

import { UncheckedArray } from '../../../protocol/client-input.ts'
import type { ProtocolError } from '../../../protocol/errors.ts'
import { toProtocolError } from '../../../protocol/errors.ts'
import { isRecord } from '../../../protocol/guards.ts'
import type { OutputResponse } from '../../../protocol/read-responses.ts'
import type { MessageLimits, StreamRequest } from '../../../protocol/stream-request.ts'
import {
  ChatId,
  checkFileSize,
  checkFileType,
  readStreamRequest,
} from '../../../protocol/stream-request.ts'
import { checkInput } from '../../http/exchange.ts'

const Id = z.string().min(1).max(256)

const ResumeEntry = z.object({
  interruptId: Id,
  status: z.enum(['resolved', 'cancelled']),
  payload: z.unknown().optional(),
})
export type ResumeEntry = z.infer<typeof ResumeEntry>

/** What the server reads of a `RunAgentInput`. Other members are ignored. */
const RunInput = z.object({
  threadId: ChatId,
  runId: z.string().max(1_024),
  protocolVersion: z.string().max(64).nullish(),
  messages: UncheckedArray,
  resume: z.array(ResumeEntry).max(256).nullish(),
  state: z.unknown().optional(),
  context: z.unknown().optional(),
  forwardedProps: z.unknown().optional(),
})
export interface RunInput extends z.infer<typeof RunInput> {
  /** The languages that the browser prefers. */
  readonly language?: string | undefined
}

/** Reads a `RunAgentInput`. Throws `bad-request` if it is none. */
export function readRunInput(body: unknown): RunInput {
  const parsed = RunInput.safeParse(body)
  if (parsed.success) return parsed.data
  const [issue] = parsed.error.issues
  const path = issue?.path.join('.') ?? ''
  const message = `The body must be a RunAgentInput of AG-UI. ${path}: ${issue?.message ?? 'unexpected shape'}`
  return checkInput(RunInput, body, message)
}

/** A part of a message that the server cannot use. */
export interface RefusedPart {
  readonly code: ProtocolError['code']
  readonly message: string
}

const UserMessage = z.object({
  id: Id,
  role: z.literal('user'),
  content: z.union([z.string(), UncheckedArray]),
})

/** Whether the newest message is a message of the person. All other requests answer something, or ask for the current state. */
export function hasNewMessage({ messages, resume }: RunInput): boolean {
  const newest = messages.at(-1)
  return (resume ?? []).length === 0 && isRecord(newest) && newest['role'] === 'user'
}

/**
 * Reads the newest message as a request. AG1390: the server has the conversation, so it ignores all other messages. A part that it cannot
 * use is skipped.
 */
export function readMessage(
  { threadId, messages, state, context, forwardedProps }: RunInput,
  limits: MessageLimits,
): { readonly request: StreamRequest; readonly refused: readonly RefusedPart[] } {
  const needed = 'A message of the person needs an `id` and `content`: text or a list of parts.'
  const { id, content } = checkInput(UserMessage, messages.at(-1), needed)
  const refused: RefusedPart[] = []
  const parts =
    typeof content === 'string'
      ? [{ type: 'text', text: content }]
      : content.flatMap((part) => readPart(part, limits, refused))
  const regenerates = isRecord(forwardedProps) && forwardedProps['regenerate'] === true
  const trigger = regenerates ? 'regenerate-message' : 'submit-message'
  const sent = { id: threadId, trigger, messages: [{ id, role: 'user', parts }] }
  const own = { state, context, forwardedProps }
  return { request: readStreamRequest({ ...own, ...sent }, limits), refused }
}

const DataPart = z.object({
  type: z.enum(['image', 'audio', 'video', 'document']),
  source: z.object({ type: z.literal('data'), value: z.string(), mimeType: z.string().max(128) }),
})

function readPart(part: unknown, limits: MessageLimits, refused: RefusedPart[]): object[] {
  if (isRecord(part) && part['type'] === 'text') return [part]
  const read = DataPart.safeParse(part).data
  if (!read) {
    const message = 'A part was skipped: the server uses text and media with a `data` source.'
    refused.push({ code: 'bad-request', message })
    return []
  }
  const { value, mimeType } = read.source
  try {
    checkFileType(mimeType, limits)
    checkFileSize(value, limits)
  } catch (thrown) {
    const { code, message } = toProtocolError(thrown)
    refused.push({ code, message: `A part was skipped: ${message}` })
    return []
  }
  return [{ type: 'file', mediaType: mimeType, url: `data:${mimeType};base64,${value}` }]
}

const ToolMessage = z.object({
  role: z.literal('tool'),
  toolCallId: Id,
  content: z.unknown(),
  error: z.string().max(10_000).optional(),
})

/** Returns the results that the client sends for calls. AG1391: a result for any other call is the client's own invention, or history. */
export function readToolMessages(
  { messages }: RunInput,
  toolCallIds: readonly string[],
): OutputResponse[] {
  const wanted = new Set(toolCallIds)
  return messages.toReversed().flatMap((message): OutputResponse[] => {
    const read = ToolMessage.safeParse(message).data
    if (!read || !wanted.delete(read.toolCallId)) return []
    const { toolCallId, content, error } = read
    const result = error === undefined ? { output: parse(content) } : { errorText: error }
    return [{ toolCallId, result }]
  })
}

/** Clients write a result as text, which is JSON if the result of the tool was not text. */
function parse(content: unknown): unknown {
  if (typeof content !== 'string') return content
  try {
    return JSON.parse(content) as unknown
  } catch {
    return content
  }
}

const Caller = z.object({ role: z.literal('assistant'), toolCalls: z.array(z.object({ id: Id })) })

/** Returns the ids of the calls that the client shows. */
export function readClientCalls({ messages }: RunInput): Set<string> {
  const calls = messages.flatMap((message) => Caller.safeParse(message).data?.toolCalls ?? [])
  return new Set(calls.map(({ id }) => id))
}
