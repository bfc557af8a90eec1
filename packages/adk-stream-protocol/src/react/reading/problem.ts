import type { UIMessage } from 'ai'

import { AdkError, readErrorBody } from '../../client/adk-error.ts'
import { hasSameContent } from '../../client/connection/chat-messages.ts'
import { isStopped } from '../../client/sync/merge-stored.ts'
import { isRecord } from '../../protocol/guards.ts'
import type { ShownPreview } from '../../protocol/preview.ts'
import type { Call } from './call.ts'
import { isCall } from './call.ts'
import type { Approval } from './approval.ts'
import { readApprovals } from './approval.ts'

/** Why there is no reply. Each kind asks for a different action of the person. */
export type Problem =
  /** `retryAt` is in ms since 1970. */
  | { readonly kind: 'rate-limited'; readonly retryAt: number | undefined }
  /** `lost` is what was interrupted: a message that may not have arrived, or a reply. */
  | { readonly kind: 'disconnected'; readonly lost?: 'message' | 'reply' }
  | { readonly kind: 'busy' }
  | { readonly kind: 'overloaded' }
  | { readonly kind: 'blocked' }
  /** The model gave no usable reply. Another attempt may succeed. */
  | { readonly kind: 'mistake' }
  /** The server has no access to the model. Only its operator can change that. */
  | { readonly kind: 'no-access' }
  | { readonly kind: 'signed-out' }
  | { readonly kind: 'refused'; readonly code: string; readonly message: string }
  | { readonly kind: 'unavailable' }
  /** A call ran before the reply failed. The reply is not regenerated; the person sends a message to continue. */
  | { readonly kind: 'unfinished' }

/**
 * An error as the server reports it.
 *
 * @inline
 */
export interface ServerError {
  readonly code: string
  readonly message: string
  /** When the server accepts the request again, if it is rate-limited. */
  readonly retryAfterSeconds?: number | undefined
  /** The current preview of a call whose approval the server rejected. */
  readonly preview?: ShownPreview | undefined
}

/** Returns the problem of a chat, from its error and from its last message. */
export function readProblem(error: Error, messages: readonly UIMessage[], now: number): Problem {
  const failure = readFailure(messages.at(-1))
  if (failure !== undefined && hasRunCall(messages)) return { kind: 'unfinished' }
  // If the server rejects a request, AI SDK transports throw an error with the response body as its message.
  const serverError = error instanceof AdkError ? error : readErrorBody(error.message)
  if (serverError) return classify(serverError, now)
  const reported = readServerError(failure)
  if (reported) return classify(reported, now)
  // `fetch` and our sockets throw a TypeError if the network fails, before or during a reply.
  if (!(error instanceof TypeError)) return { kind: 'unavailable' }
  return { kind: 'disconnected', lost: readLoss(messages) }
}

/** Returns why a reply failed, from its message. Returns undefined for any other message. */
export function readFailedReply(
  message: Pick<UIMessage, 'role' | 'metadata'>,
): Problem | undefined {
  const reported = readServerError(readFailure(message))
  return reported && classify(reported, 0)
}

/** Why a reply is incomplete, if the model has ended it before its end. */
export type IncompleteReason = 'length' | 'content-filter' | 'mistake'

/** Returns why the model did not complete a reply. Returns undefined if it did. */
export function readIncomplete({
  role,
  metadata,
}: Pick<UIMessage, 'role' | 'metadata'>): IncompleteReason | undefined {
  const reason = role === 'assistant' && isRecord(metadata) ? metadata['finishReason'] : undefined
  switch (reason) {
    case 'length':
    case 'content-filter':
      return reason
    case 'error':
    case 'other':
      return 'mistake'
    default:
      return undefined
  }
}

/** Returns what a lost connection interrupts: the last message of the person, or the reply to it. */
export function readLoss(messages: readonly UIMessage[]): 'message' | 'reply' {
  return messages.at(-1)?.role === 'user' ? 'message' : 'reply'
}

/** Returns the error in the metadata of a failed reply, or undefined. */
function readFailure(last: Pick<UIMessage, 'role' | 'metadata'> | undefined): unknown {
  const { metadata } = last?.role === 'assistant' ? last : {}
  if (!isRecord(metadata)) return undefined
  // Clients merge metadata, and keep the error of a reply that has continued since.
  return metadata['finishReason'] === 'stop' ? undefined : metadata['error']
}

/** Converts anything that was thrown. */
export function toServerError(thrown: unknown): ServerError {
  if (thrown instanceof AdkError) return thrown
  // The network failed. The request may have arrived, and can be sent again.
  return { code: 'unavailable', message: thrown instanceof Error ? thrown.message : String(thrown) }
}

function readServerError(value: unknown): ServerError | undefined {
  if (!isRecord(value)) return undefined
  const { code, message, retryAfterSeconds } = value
  if (typeof code !== 'string' || typeof message !== 'string') return undefined
  return { code, message, ...(typeof retryAfterSeconds === 'number' && { retryAfterSeconds }) }
}

function classify({ code, message, retryAfterSeconds }: ServerError, now: number): Problem {
  switch (code) {
    case 'model-rate-limited':
    case 'too-many-turns':
      return {
        kind: 'rate-limited',
        retryAt: retryAfterSeconds === undefined ? undefined : now + retryAfterSeconds * 1000,
      }
    case 'turn-running':
      return { kind: 'busy' }
    case 'model-overloaded':
      return { kind: 'overloaded' }
    case 'model-blocked':
      return { kind: 'blocked' }
    case 'model-mistake':
    case 'unknown-tool':
      return { kind: 'mistake' }
    case 'model-access-denied':
      return { kind: 'no-access' }
    case 'model-call-limit':
      return { kind: 'unfinished' }
    case 'unauthenticated':
      return { kind: 'signed-out' }
    case 'already-acted':
    case 'newer-messages':
    case 'reply-outdated':
    case 'bad-request':
    case 'too-large':
    case 'too-many-live-chats':
    case 'store-failed':
    // Another attempt would be refused too.
    case 'not-rewindable':
    case 'other-agent':
    case 'unknown-agent':
    case 'not-allowed':
    case 'other-principal':
    case 'not-live':
    case 'too-many-sockets':
    case 'model-refused':
      return { kind: 'refused', code, message }
    default:
      return { kind: 'unavailable' }
  }
}

type ShownMessage = Pick<UIMessage, 'id' | 'role' | 'parts' | 'metadata'>

/** A chat as the server has stored it. */
export interface SavedChat<Message> {
  readonly messages: readonly Message[]
  readonly running: boolean
}

/** The step that recovers a chat from a problem. */
export type Recovery<Message> =
  /** The server did not receive the last user message. */
  | { readonly step: 'resend'; readonly message: Message }
  /** The person edited the last user message, and the server has the version before. */
  | { readonly step: 'replace'; readonly message: Message }
  /** The reply is still running. */
  | { readonly step: 'resume' }
  /** The reply has finished meanwhile, or a call ran in it that must not be repeated. */
  | { readonly step: 'show' }
  /** The reply failed and no call ran in it. */
  | { readonly step: 'regenerate' }

/** Returns the recovery step, from the messages of the page and those of the server. */
export function planRecovery<Message extends ShownMessage>(
  shown: readonly Message[],
  { messages, running }: SavedChat<Message>,
): Recovery<Message> {
  const message = shown.findLast((each) => each.role === 'user' && !isStopped(each))
  if (message && !messages.some(({ id }) => id === message.id)) return { step: 'resend', message }
  if (message && isLostEdit(message, shown, { messages, running }))
    return { step: 'replace', message }
  if (running) return { step: 'resume' }
  const last = messages.at(-1)
  const isMissing = last?.role === 'user' || readFailure(last) !== undefined
  // A request for another reply would contain the last message of the page.
  const isLastStopped = shown.slice(-1).some(isStopped)
  const canRegenerate = isMissing && !isLastStopped && !hasRunCall(messages)
  return canRegenerate ? { step: 'regenerate' } : { step: 'show' }
}

/** Whether the server has another version of a message, and neither writes nor has written the reply that the page shows to it. */
function isLostEdit<Message extends ShownMessage>(
  message: Message,
  shown: readonly Message[],
  { messages, running }: SavedChat<Message>,
): boolean {
  const index = messages.findIndex(({ id }) => id === message.id)
  const saved = messages[index]
  if (!saved || hasSameContent(message, saved)) return false
  // An application may change what it stores of a message (`onUserMessageCallback`). The reply to it is not requested twice.
  if (running && index === messages.findLastIndex(({ role }) => role === 'user')) return false
  const reply = shown[shown.indexOf(message) + 1]
  return reply === undefined || reply.id !== messages[index + 1]?.id
}

/** Returns the recovery step without the server's messages. Does not regenerate a reply with calls, because they may have run. */
export function planLocalRecovery(
  shown: readonly ShownMessage[],
  { isDisconnected }: { readonly isDisconnected: boolean },
): 'resume' | 'keep' | 'regenerate' {
  if (isDisconnected) return 'resume'
  return lastReply(shown).some(({ parts }) => parts.some(isCall)) ? 'keep' : 'regenerate'
}

type ReplyMessage = Pick<UIMessage, 'role' | 'parts'>

/** Returns the reply to the last user message. A live reply may consist of several messages. */
function lastReply<Message extends ReplyMessage>(messages: readonly Message[]): Message[] {
  return messages.slice(messages.findLastIndex(({ role }) => role === 'user') + 1)
}

/** Returns whether a call of the last reply ran or may have run. Regenerating that reply would repeat the call and hide the first one. */
function hasRunCall(messages: readonly ReplyMessage[]): boolean {
  return calls(messages).some(([call, approval]) => mayHaveRun(call, approval))
}

/** Like `hasRunCall`, for calls that a person approved. An application may repeat calls that need no approval. */
export function hasRunApprovedCall(messages: readonly ReplyMessage[]): boolean {
  return calls(messages).some(([call, approval]) => approval && mayHaveRun(call, approval))
}

function calls(messages: readonly ReplyMessage[]): [Call, Approval | undefined][] {
  return lastReply(messages).flatMap((message) => {
    const approvals = readApprovals(message)
    return message.parts
      .filter(isCall)
      .map((call): [Call, Approval | undefined] => [call, approvals.get(call.toolCallId)])
  })
}

const NEVER_RAN: ReadonlySet<unknown> = new Set<Approval['state']>([
  'denied',
  'expired',
  'cancelled',
])

function mayHaveRun(call: Call, approval: Approval | undefined): boolean {
  if (NEVER_RAN.has(approval?.state)) return false
  switch (call.state) {
    case 'input-streaming':
    case 'output-denied':
      return false
    case 'approval-requested':
      // The approval part may report a decision that the call's state does not show yet.
      return approval?.state !== 'requested'
    case 'approval-responded':
      return call.approval.approved
    case 'input-available':
    case 'output-available':
    case 'output-error':
      return true
  }
}
