import type { Context, LlmRequest, LlmResponse } from '@google/adk'

import { QuietPlugin } from '../../agent/adk-workarounds/plugin-callbacks.ts'
import { isRecord } from '../../protocol/guards.ts'
import type { ModelCall, TimelineEntry } from '../../protocol/timeline.ts'
import { isSameChat, type ChatRef } from '../../shared/chat-ref.ts'
import { keepNewest } from '../../shared/collections.ts'

/** Whether the bridge records model calls. */
export type RecordModelCalls = boolean | 'with-authentication'

/** Throws if the content of model calls could reach people who must not see it. */
export function checkRecordModelCalls(options: {
  readonly recordModelCalls?: unknown
  readonly authenticate?: unknown
}): void {
  const { recordModelCalls = false, authenticate } = options
  if (recordModelCalls === false) return
  if (typeof process === 'object' && process.env['NODE_ENV'] === 'production')
    throw new TypeError(
      'createBridge: `recordModelCalls` is for development. Remove it if `NODE_ENV` is `production`.',
    )
  if (authenticate !== undefined && recordModelCalls !== 'with-authentication')
    throw new TypeError(
      "createBridge: `recordModelCalls` shows the instructions of the agent to every principal. Pass 'with-authentication' if all of them may see these.",
    )
}

/** Maximum number of calls that are kept, of all chats together. */
const MAX_CALLS = 100
/** Maximum length of a request or a reply, in characters of JSON. */
const MAX_LENGTH = 100_000
/** Maximum number of parts of a streamed reply that are kept. */
const MAX_REPLIES = 20
/** How much the times of two clocks in the same process may differ. */
const TOLERANCE_MS = 1_000

interface RecordedCall {
  readonly chat: ChatRef
  readonly invocationId: string
  readonly call: ModelCall
}

/** An ADK plugin that keeps the newest model calls in memory, without secrets. It never changes a call. */
export class ModelCalls extends QuietPlugin {
  readonly #calls = new Map<string, RecordedCall>()

  constructor() {
    super('adk-stream-protocol:model-calls')
  }

  override async beforeModelCallback(params: {
    callbackContext: Context
    llmRequest: LlmRequest
  }): Promise<LlmResponse | undefined> {
    const { session, invocationId, agent } = params.callbackContext.invocationContext
    const {
      model,
      contents,
      config,
      liveConnectConfig: _live,
      toolsDict: _tools,
    } = params.llmRequest
    // These contain the credentials and the abort signal of the request, not what the model reads.
    const { httpOptions: _options, abortSignal: _signal, ...settings } = config ?? {}
    const id = crypto.randomUUID()
    const startedAt = Date.now()
    this.#set({
      chat: { principalId: session.userId, chatId: session.id },
      invocationId,
      call: {
        id,
        agent: agent?.name ?? '',
        startedAt,
        replies: [],
        request: shorten({ model, config: settings, contents }),
      },
    })
    return undefined
  }

  override async afterModelCallback(params: {
    callbackContext: Context
    llmResponse: LlmResponse
  }): Promise<LlmResponse | undefined> {
    // The whole text follows the last piece.
    if (!params.llmResponse.partial) this.#addReply(params.callbackContext, params.llmResponse)
    return undefined
  }

  override async onModelErrorCallback(params: {
    callbackContext: Context
    llmRequest: LlmRequest
    error: Error
  }): Promise<LlmResponse | undefined> {
    const { name, message } = params.error
    this.#addReply(params.callbackContext, { error: { name, message } })
    return undefined
  }

  /** Returns a recorded call of a chat. */
  find(chat: ChatRef, id: string): ModelCall | undefined {
    const found = this.#calls.get(id)
    return found && isSameChat(found.chat, chat) ? found.call : undefined
  }

  /** Adds the ids of recorded calls to the entries of model calls. */
  annotate(chat: ChatRef, entries: readonly TimelineEntry[]): TimelineEntry[] {
    const calls = [...this.#calls.values()].filter((each) => isSameChat(each.chat, chat))
    return entries.map((entry) => {
      if (entry.type !== 'model') return entry
      const distance = (call: ModelCall): number => Math.abs(call.startedAt - entry.at)
      const [closest] = calls
        .map(({ call }) => call)
        .filter((call) => entry.agent === undefined || call.agent === entry.agent)
        .toSorted((one, other) => distance(one) - distance(other))
      if (!closest || distance(closest) > TOLERANCE_MS) return entry
      return { ...entry, callId: closest.id }
    })
  }

  /** Forgets the calls of a principal. */
  forget(principalId: string): void {
    for (const [id, { chat }] of this.#calls)
      if (chat.principalId === principalId) this.#calls.delete(id)
  }

  #addReply({ invocationContext }: Context, reply: object): void {
    const { invocationId, agent } = invocationContext
    const found = [...this.#calls.values()].findLast(
      (each) => each.invocationId === invocationId && each.call.agent === agent?.name,
    )
    if (!found || found.call.replies.length >= MAX_REPLIES) return
    const replies = [...found.call.replies, shorten(reply)]
    this.#calls.set(found.call.id, { ...found, call: { ...found.call, replies } })
  }

  #set(recorded: RecordedCall): void {
    this.#calls.set(recorded.call.id, recorded)
    keepNewest(this.#calls, MAX_CALLS)
  }
}

/** Returns a copy without secrets. If it is too long, the oldest contents are left out. */
function shorten(value: object): Record<string, unknown> {
  // An object stays one.
  const copy = redact(value) as Record<string, unknown>
  const contents = Array.isArray(copy['contents']) ? [...(copy['contents'] as unknown[])] : []
  let omitted = 0
  let length = JSON.stringify(copy).length
  while (length > MAX_LENGTH && contents.length > 1) {
    length -= JSON.stringify(contents.shift()).length + 1
    omitted += 1
  }
  if (length > MAX_LENGTH) return { omitted: `${length} characters` }
  return omitted === 0 ? copy : { ...copy, omittedContents: omitted, contents }
}

const REDACTED = '[redacted]'
/** Maximum length of one text. */
const MAX_TEXT = 8_000
const MAX_DEPTH = 24

/** Names of fields whose value is a secret. */
const SECRET_NAME =
  /^(?:authorization|proxy-authorization|cookie|set-cookie|.*(?:api[-_]?key|secret|password|passwd|passphrase|credentials?|private[-_]?key|(?:access|refresh|id|auth|session|bearer)[-_]?token))$/i

/** Texts that are secrets wherever they are. */
const SECRET_TEXTS: readonly RegExp[] = [
  // Google, OpenAI and similar, GitHub, Slack, AWS.
  /\bAIza[\w-]{30,}/g,
  /\bya29\.[\w.-]{20,}/g,
  /\bsk-[\w-]{16,}/g,
  /\bgh[pousr]_\w{20,}/g,
  /\bgithub_pat_\w{20,}/g,
  /\bxox[abprs]-[\w-]{10,}/g,
  /\bAKIA[\dA-Z]{16}\b/g,
  // JSON Web Tokens, and keys in PEM.
  /\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*/g,
  /-----BEGIN [A-Z ]*PRIVATE KEY-----[^]*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)/g,
  /(?<=\b(?:bearer|basic)\s+)[\w.~+/=-]{12,}/gi,
  // Passwords in URLs.
  /(?<=\b[a-z][\w+.-]*:\/\/[^\s/:@]*:)[^\s/@]+(?=@)/gi,
]

/** Returns a copy as JSON has it, without secrets and without the content of files. Long texts are cut off. */
export function redact(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return redactText(value)
  if (typeof value === 'bigint') return String(value)
  if (typeof value === 'function' || typeof value === 'symbol') return undefined
  if (typeof value !== 'object' || value === null) return value
  if (depth > MAX_DEPTH) return '[too deep]'
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`
  if (Array.isArray(value)) return value.map((each) => redact(each, depth + 1))
  if (!isRecord(value)) return String(value)
  const isFile = typeof value['mimeType'] === 'string' && typeof value['data'] === 'string'
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, each]): [string, unknown][] => {
      if (each === undefined) return []
      if (isFile && name === 'data') return [[name, `[${String(each).length} characters]`]]
      if (SECRET_NAME.test(name) && isSecretValue(each)) return [[name, REDACTED]]
      return [[name, redact(each, depth + 1)]]
    }),
  )
}

/** Whether a value can be a secret. An object is none: it may be the JSON Schema of a field that is named like a secret. */
function isSecretValue(value: unknown): boolean {
  return typeof value === 'string' || typeof value === 'number' || Array.isArray(value)
}

function redactText(text: string): string {
  const safe = SECRET_TEXTS.reduce((rest, secret) => rest.replaceAll(secret, REDACTED), text)
  if (safe.length <= MAX_TEXT) return safe
  return `${safe.slice(0, MAX_TEXT)}… [${safe.length - MAX_TEXT} more characters]`
}
