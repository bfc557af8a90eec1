import { AdkError, isTemporary } from '../adk-error.ts'
import type { ToolOutput } from './attachable-chat.ts'
import { catchUpIfBehind, requestCatchUp, withoutBase } from './catch-up.ts'
import {
  type MessageView,
  type ShownApproval,
  approvalState,
  findApproval,
  readApproval,
  reopenApproval,
} from '../connection/chat-messages.ts'
import { findUndelivered, isGiven } from '../connection/response-states.ts'
import {
  type AttachedStep,
  type Step,
  CANCEL_RETRY,
  forget,
  mark,
  reportError,
  resetDelay,
  scheduleRetry,
  setMessages,
  withEffects,
  withMark,
  type AttachedSync,
  type ChatView,
  type QueueEffect,
  type Refusal,
  type SyncEffect,
  type SyncEvent,
  type Unconfirmed,
} from './sync-state.ts'

export function onDecision(
  state: AttachedSync,
  chat: ChatView,
  { decision, supplement }: Extract<SyncEvent, { type: 'decision-given' }>,
): Step {
  const { id } = decision
  const { state: approval } = readApproval(chat.messages, id)
  // While a reply is replayed, its message lacks the approval for a moment. The page may still show it.
  const isReplayed = chat.isBusy && state.stream.writes === 'replay'
  const isOpen = approval === 'open' || (approval === 'missing' && isReplayed)
  // A second click has no effect.
  if (!isOpen || isGiven(id, chat.responses)) return [state, []]
  const add: SyncEffect = { type: 'supplement', decision, supplement }
  if (chat.hasOpenStream)
    return [state, [add, mark('sent', id), { type: 'send-decision', decision, supplement }]]
  const queue: QueueEffect = { type: 'queue-decision', decision }
  const show = approval === 'open' ? [queue] : []
  const next = withUnconfirmed(state, id, { state: 'queued', effect: queue })
  return [next, [add, mark('queued', id), ...show]]
}

const UNREPORTED: Unconfirmed = { state: 'unreported' }

function withUnconfirmed(state: AttachedSync, id: string, entry: Unconfirmed): AttachedSync {
  return { ...state, outbox: new Map([...state.outbox, [id, entry]]) }
}

/** CL390, CL900: shows queued responses again that a replayed stream has removed from the messages. */
export function restoreQueued(
  state: AttachedSync,
  chat: ChatView,
  { type }: SyncEvent,
): AttachedStep {
  if (state.outbox.size === 0) return [state, []]
  const isReplayRead = type === 'chat-idle'
  const effects: SyncEffect[] = []
  const outbox = new Map<string, Unconfirmed>()
  for (const [id, entry] of state.outbox) {
    const effect = entry.state === 'queued' ? entry.effect : undefined
    const response = chat.responses.get(id)
    // The next request has sent it, and may have been refused.
    if (effect && response !== 'queued') {
      if (effect.type === 'queue-output' && response !== undefined)
        outbox.set(id, { state: 'requested', output: effect.output })
      continue
    }
    outbox.set(id, entry)
    if (!effect) continue
    effects.push(
      ...(effect.type === 'queue-output'
        ? restoreOutput(effect, chat)
        : restoreDecision(effect, chat, isReplayRead)),
    )
  }
  return [{ ...state, outbox }, effects]
}

/** CL1620: sends the outputs of a request again whose turn has failed. The server may have failed before it stored them. */
export function settleRequested(state: AttachedSync, { hasFailed }: ChatView): AttachedStep {
  const outbox = new Map<string, Unconfirmed>()
  const lost: string[] = []
  for (const [id, entry] of state.outbox) {
    if (entry.state !== 'requested') outbox.set(id, entry)
    if (entry.state !== 'requested' || !hasFailed) continue
    outbox.set(id, { state: 'unsent', output: entry.output })
    lost.push(id)
  }
  if (lost.length === 0) return [{ ...state, outbox }, []]
  const [next, effects] = scheduleRetry({ ...state, outbox })
  return [next, [mark('sent', ...lost), ...effects]]
}

/** A decision whose approval was decided elsewhere, or has not returned at the end of the replay, is not sent. */
function restoreDecision(
  queue: Extract<QueueEffect, { type: 'queue-decision' }>,
  { messages }: ChatView,
  isReplayRead: boolean,
): SyncEffect[] {
  const { id, approved } = queue.decision
  const shown = readApproval(messages, id)
  if (shown.state === 'open') return [queue]
  const isLost = shown.state === 'settled' || (shown.state === 'missing' && isReplayRead)
  if (!isLost) return []
  const isSame = shown.state === 'settled' && shown.approved === approved
  return [forget(id), ...(isSame ? [] : [refuse(id, shown)])]
}

function restoreOutput(
  queue: Extract<QueueEffect, { type: 'queue-output' }>,
  { messages }: ChatView,
): SyncEffect[] {
  const { toolCallId: id } = queue.output
  const isLost = messages.some(({ parts }) =>
    parts.some((part) => part.toolCallId === id && WITHOUT_OUTPUT.has(part.state ?? '')),
  )
  return isLost ? [queue] : []
}

const WITHOUT_OUTPUT = new Set(['input-available', 'approval-responded'])

function refuse(id: string, { state }: ShownApproval): SyncEffect {
  const error =
    state === 'settled'
      ? new AdkError(
          'approval-decided',
          `Approval ${id} was decided differently elsewhere, or has ended.`,
        )
      : new AdkError('unknown-approval', `The chat no longer asks for approval ${id}.`)
  return { type: 'report-refusal', ids: [id], error }
}

export function onOutput(state: AttachedSync, chat: ChatView, output: ToolOutput): Step {
  const { toolCallId: id } = output
  // A call has one output: the first. The server may have ended the call without the page.
  if (isGiven(id, chat.responses) || hasOutcome(chat, id)) return [state, []]
  if (!chat.hasOpenStream) {
    const effect: QueueEffect = { type: 'queue-output', output }
    return [withUnconfirmed(state, id, { state: 'queued', effect }), [mark('queued', id), effect]]
  }
  return [
    withUnconfirmed(state, id, UNREPORTED),
    [mark('sent', id), { type: 'send-output', output, isShown: false }],
  ]
}

function hasOutcome({ messages }: ChatView, id: string): boolean {
  return messages.some(({ parts }) =>
    parts.some(({ toolCallId, state }) => toolCallId === id && state?.startsWith('output-')),
  )
}

/** Sends the newest message with queued responses. Does nothing while the chat is busy: `chat-idle` follows. */
export function sendQueued(chat: ChatView): SyncEffect[] {
  const message = findQueued(chat)
  return message && !chat.isBusy ? [{ type: 'send-responses', messageId: message.id }] : []
}

/** Finds the newest message with responses that the server does not have. */
export function findQueued({ messages, responses }: ChatView): MessageView | undefined {
  return messages.findLast((message) => findUndelivered(message, responses).length > 0)
}

export function onRefused(
  state: AttachedSync,
  chat: ChatView,
  { ids, error, isUnreported }: Refusal,
): Step {
  const effects: SyncEffect[] = [mark('refused', ...ids)]
  // The person stopped the request: that is no refusal.
  if (!isAborted(error)) effects.push({ type: 'report-refusal', ids, error })
  const isOwn = chat.isBusy && !isUnreported
  const next: AttachedSync = {
    ...state,
    outbox: queueAgain(state.outbox, ids, isTemporary(error)),
    stream: isOwn ? { ...state.stream, end: 'refused' } : state.stream,
  }
  if (isDecidedElsewhere(error)) {
    const refusal = { ids, error, isUnreported }
    return [next, [...effects, { type: 'check-refusal', refusal }]]
  }
  const isOutput = (id: string): boolean =>
    !findApproval(chat.messages, id, 'approval-responded') &&
    chat.messages.some(({ parts }) => parts.some(({ toolCallId }) => toolCallId === id))
  const outputs = ids.filter(isOutput)
  const decisions = ids.filter((id) => !isOutput(id))
  // CL800: some of several decisions may count, and a request that was stopped may have arrived.
  if (decisions.length > 1 || (decisions.length === 1 && isAborted(error))) {
    const refusal = { ids: decisions, error, isUnreported }
    effects.push({ type: 'check-refusal', refusal })
  } else {
    effects.push(...reopen(decisions, chat))
    if (isUnreported) effects.push(reportError(error))
  }
  if (outputs.length === 0) return [next, effects]
  if (!isTemporary(error)) return withEffects(effects, loadRefused(next, chat, ids))
  effects.push(mark('queued', ...outputs))
  return withEffects(effects, scheduleRetry(next))
}

/** Queues outputs again whose request was refused for the moment. Others that were refused are not sent again. */
function queueAgain(
  outbox: AttachedSync['outbox'],
  refused: readonly string[],
  isLater: boolean,
): AttachedSync['outbox'] {
  const entries = [...outbox].flatMap(([id, entry]): [string, Unconfirmed][] => {
    if (entry.state !== 'requested' || !refused.includes(id)) return [[id, entry]]
    const effect: QueueEffect = { type: 'queue-output', output: entry.output }
    return isLater ? [[id, { state: 'queued', effect }]] : []
  })
  return new Map(entries)
}

/** CL1220: the page shows an output that the server does not have. */
function loadRefused(state: AttachedSync, chat: ChatView, ids: readonly string[]): AttachedStep {
  return catchUpIfBehind(withoutBase(state), withMark(chat, 'refused', ...ids))
}

/** Shows an approval as open if the server could not say how it was decided. */
export function onRefusalChecked(
  state: AttachedSync,
  chat: ChatView,
  { ids, known, isRunning, error, isUnreported }: Extract<SyncEvent, { type: 'refusal-checked' }>,
): Step {
  // A message that is being written is not stored. What becomes of it is known when it was read.
  const open = (isRunning ? [] : chat.messages).flatMap(({ id: messageId, parts }) => {
    // These are as the server has them.
    if (known.includes(messageId)) return []
    return parts.flatMap(({ toolCallId, approval }) => {
      if (toolCallId === undefined || !approval || !ids.includes(approval.id)) return []
      const reported = approvalState(parts, toolCallId) ?? 'requested'
      return reported === 'requested' ? [approval.id] : []
    })
  })
  const effects = reopen(open, chat)
  if (isUnreported) effects.push(reportError(error))
  // With a feed, its end is reported.
  const isRead = isRunning && state.news === undefined
  return withEffects(effects, isRead ? requestCatchUp(state, chat) : catchUpIfBehind(state, chat))
}

/** Opens approvals again, in the messages and in the stream that writes them. Both may still show the decision: it is not sent. */
export function reopen(
  ids: readonly string[],
  { messages, hasOpenStream }: ChatView,
): SyncEffect[] {
  const effects: SyncEffect[] = []
  let next = messages
  for (const id of ids) {
    effects.push(mark('refused', id))
    const toolCallId = findApproval(next, id, 'approval-responded')?.toolCallId
    if (toolCallId === undefined) continue
    const chunk = { type: 'tool-approval-request', approvalId: id, toolCallId } as const
    if (hasOpenStream) effects.push({ type: 'push-chunk', chunk })
    next = reopenApproval(next, id)
  }
  if (next !== messages) effects.push(setMessages(next))
  return effects
}

export function onOutputFailed(
  state: AttachedSync,
  chat: ChatView,
  { output, error }: Extract<SyncEvent, { type: 'output-failed' }>,
): Step {
  const { toolCallId: id } = output
  const effects: SyncEffect[] = [reportError(error)]
  if (!isTemporary(error))
    return withEffects([...effects, mark('refused', id)], loadRefused(state, chat, [id]))
  // No request sends it: a turn that is held open takes it only in this way.
  return withEffects(
    effects,
    scheduleRetry(withUnconfirmed(state, id, { state: 'unsent', output })),
  )
}

export function onRetry(state: AttachedSync, chat: ChatView): Step {
  const unsent = [...state.outbox.values()].flatMap((entry) =>
    entry.state === 'unsent' ? entry.output : [],
  )
  const hasQueued = findQueued(chat) !== undefined
  const isDue = unsent.length > 0 || hasQueued || state.catchUp.isDue
  // What is being read or sent may not send the responses, and its end may not be reported.
  if (chat.isBusy && hasQueued) return scheduleRetry(state)
  const retry = { ...state.retry, isScheduled: false }
  const effects: SyncEffect[] = [
    CANCEL_RETRY,
    ...unsent.flatMap((output): SyncEffect[] => [
      mark('sent', output.toolCallId),
      { type: 'send-output', output, isShown: true },
    ]),
    ...sendQueued(chat),
  ]
  const sent = [...state.outbox].map(
    ([id, entry]) => [id, entry.state === 'unsent' ? UNREPORTED : entry] as const,
  )
  const next: AttachedSync = {
    ...state,
    outbox: new Map(sent),
    retry: isDue ? retry : resetDelay(retry),
  }
  return withEffects(effects, catchUpIfBehind(next, chat))
}

/** Refusals after which an approval is no longer open. */
const DECIDED_ELSEWHERE = new Set<string>([
  'approval-decided',
  'approval-expired',
  'approval-cancelled',
  'unknown-approval',
])

function isDecidedElsewhere(error: unknown): boolean {
  return error instanceof AdkError && DECIDED_ELSEWHERE.has(error.code)
}

function isAborted(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError'
}
