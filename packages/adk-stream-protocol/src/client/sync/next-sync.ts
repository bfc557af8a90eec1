import type { Chunk } from '../../protocol/chunk.ts'
import { AdkError } from '../adk-error.ts'
import type { WatchEvent } from '../api/watch-feed.ts'
import type { ToolOutput } from './attachable-chat.ts'
import type { MessageView, PartView } from './chat-messages.ts'
import {
  addUserMessage,
  approvalState,
  findApproval,
  isDecided,
  mergeMessages,
  reopenApproval,
  settleApprovals,
} from './chat-messages.ts'
import type { ResponseState, ResponseStateMap } from './response-states.ts'
import { findUndelivered, isGiven } from './response-states.ts'
import type {
  AttachedSync,
  ChatView,
  Refusal,
  SyncEffect,
  SyncEvent,
  SyncState,
} from './sync-state.ts'

type Step = readonly [state: SyncState, effects: readonly SyncEffect[]]
type AttachedStep = readonly [state: AttachedSync, effects: readonly SyncEffect[]]

/** The first delay before outputs are sent again, and the longest, in ms. */
const [FIRST_RETRY_MS, MAX_RETRY_MS] = [500, 30_000]

/** Stands in `missedTurns` for anything that was missed. */
const ANY_TURN = ''

const NONE: ReadonlySet<string> = new Set()

export const START: AttachedSync = {
  state: 'attached',
  isFollowing: false,
  catchUp: { state: 'current' },
  missedTurns: NONE,
  ownTurns: NONE,
  shownTurns: NONE,
  stream: 'none',
  outcome: 'settled',
  unreportedOutputs: NONE,
  unsentOutputs: new Map(),
  retry: { isScheduled: false, delayMs: FIRST_RETRY_MS },
  offeredCalls: NONE,
  askedApprovals: NONE,
  earlyDecisions: new Map(),
  writtenMessageId: undefined,
  spokenReplyId: undefined,
}

/** Whether a chunk may change the state. All others, deltas above all, need not be passed to `nextSync`. */
export function isSyncChunk(chunk: Chunk): boolean {
  return chunk.type === 'start' || 'toolCallId' in chunk || isCallData(chunk)
}

function isCallData({ type }: Chunk): boolean {
  return type === 'data-approval' || type === 'data-browser-call'
}

/** Decides what an attached chat does when something happens: in its own stream, on the page, or on the server. */
export function nextSync(state: SyncState, event: SyncEvent): Step {
  if (state.state === 'detached') return [state, afterDetach(event)]
  const [next, early] = takeEarlyDecisions(state, event)
  return withEffects(early, nextAttached(next, event))
}

/** Whether a message is still being written, as far as this page reads it. */
export function isWriting(state: SyncState, isBusy: boolean, messageId: string): boolean {
  if (state.state === 'detached') return false
  const isRead = isBusy && (state.writtenMessageId ?? messageId) === messageId
  return isRead || state.shownTurns.has(messageId)
}

/** Whether the AI SDK should send the responses of the last message by itself. */
export function shouldSend(
  state: SyncState,
  last: MessageView | undefined,
  responses: ResponseStateMap,
): boolean {
  // The rest of the interrupted stream is read first. Its end gets here again.
  const isInterrupted = state.state === 'attached' && state.stream === 'interrupted'
  return !isInterrupted && findUndelivered(last, responses).length > 0
}

function nextAttached(state: AttachedSync, event: SyncEvent): Step {
  const { chat } = event
  switch (event.type) {
    case 'chunk':
      return onChunk(state, event)
    case 'stream-ended':
      return [state.stream === 'interrupted' ? state : { ...state, stream: 'ended' }, []]
    case 'stream-interrupted':
      if (chat.isBusy) return [{ ...state, stream: 'interrupted' }, []]
      return [state, [resume('interrupted')]]
    case 'chat-idle':
      return onIdle(state, chat)
    case 'turn-shown': {
      const shownTurns = withId(state.shownTurns, event.messageId)
      const spokenReplyId = event.isSpokenReply ? event.messageId : state.spokenReplyId
      return [{ ...state, shownTurns, spokenReplyId }, []]
    }
    case 'shown-turn-ended':
      return [{ ...state, shownTurns: withoutId(state.shownTurns, event.messageId) }, [NOTIFY]]
    case 'user-message': {
      const replyId = event.source === 'spoken' ? state.spokenReplyId : undefined
      const messages = addUserMessage(chat.messages, event.message, replyId)
      return [
        { ...state, spokenReplyId: undefined },
        messages === chat.messages ? [] : [setMessages(messages)],
      ]
    }
    case 'decision-given':
      return onDecision(state, chat, event)
    case 'output-given':
      return onOutput(state, chat, event.output)
    case 'response-queued': {
      const isQueued = chat.responses.get(event.id) === 'queued'
      return [state, [...(isQueued ? sendQueued(chat) : []), NOTIFY]]
    }
    case 'decision-acknowledged':
      // One vote of several: the others have to decide.
      if (event.approval === 'requested') return [state, reopen([event.id], chat)]
      return onAcknowledged(state, chat, event.id)
    case 'output-acknowledged':
      return onAcknowledged({ ...state, retry: resetDelay(state.retry) }, chat, event.id)
    case 'responses-refused':
      return onRefused(state, chat, event)
    case 'refusal-checked':
      return onRefusalChecked(state, chat, event)
    case 'output-failed':
      return onOutputFailed(state, event)
    case 'connection-opened':
      return state.retry.isScheduled ? onRetry(state, chat) : [state, []]
    case 'retry-due':
      return onRetry(state, chat)
    case 'feed-started':
      return [{ ...state, isFollowing: true }, []]
    case 'feed-event':
      return onFeedEvent(state, chat, event.event)
    case 'loaded':
      return onLoaded(state, chat, event)
    case 'catch-up-failed':
      return [{ ...state, catchUp: { state: 'current' } }, [reportError(event.error)]]
    case 'reloaded': {
      // The stored messages leave out the turn that is running, for this page or for another one.
      const isPartial = event.isRunning || chat.isBusy
      const messages = isPartial
        ? mergeMessages(event.messages, chat.messages)
        : [...event.messages]
      return [state, [setMessages(messages), NOTIFY]]
    }
    case 'turn-read':
      if (event.wasRunning) return endCatchUp(state, chat, { isDue: true })
      return loadAgain(state, chat)
    case 'outcome-read':
      return onOutcomeRead(state, chat)
    case 'detached':
      return [{ state: 'detached' }, onDetach(state, chat)]
  }
}

// The chat's own stream

function onChunk(
  state: AttachedSync,
  { chunk, source, chat }: Extract<SyncEvent, { type: 'chunk' }>,
): Step {
  let next = state
  if (chunk.type === 'start' && source !== 'shown') {
    next = { ...next, writtenMessageId: chunk.messageId }
    if (source === 'requested') next = onOwnTurn(next, chunk.messageId)
  }
  if (chunk.type === 'data-browser-call')
    next = { ...next, offeredCalls: withId(next.offeredCalls, chunk.data.toolCallId) }
  if (chunk.type === 'tool-approval-request')
    next = { ...next, askedApprovals: withId(next.askedApprovals, chunk.approvalId) }
  if ('toolCallId' in chunk && next.unreportedOutputs.has(chunk.toolCallId))
    next = { ...next, unreportedOutputs: withoutId(next.unreportedOutputs, chunk.toolCallId) }
  const effects: SyncEffect[] = source === 'shown' ? [] : showReportedDecision(chunk, chat)
  if (chunk.type === 'tool-input-available' || isCallData(chunk)) effects.push(NOTIFY)
  return [next, effects]
}

/** The feed may have reported the turn before its first chunk arrived. */
function onOwnTurn(state: AttachedSync, messageId: string): AttachedSync {
  if (state.missedTurns.has(messageId))
    return { ...state, missedTurns: withoutId(state.missedTurns, messageId) }
  return state.isFollowing ? { ...state, ownTurns: withId(state.ownTurns, messageId) } : state
}

/** Shows a decision before the chat reads its outcome: the AI SDK does not take it from the outcome. */
function showReportedDecision(chunk: Chunk, { messages }: ChatView): SyncEffect[] {
  if (chunk.type !== 'data-approval') return []
  const { approvalId: id, state, reason } = chunk.data
  if (state !== 'approved' && state !== 'denied') return []
  const decision = { id, approved: state === 'approved', ...(reason !== undefined && { reason }) }
  const isOpen = findApproval(messages, id, 'approval-requested') !== undefined
  return [mark('accepted', id), ...(isOpen ? [{ type: 'show-decision', decision } as const] : [])]
}

function onIdle(state: AttachedSync, chat: ChatView): Step {
  const next: AttachedSync = { ...state, stream: 'none' }
  switch (state.stream) {
    case 'none':
      return [state, []]
    case 'interrupted':
      return [next, [resume('interrupted')]]
    case 'refused':
      return catchUpOnMissed(next, chat)
    case 'ended':
      return onStreamRead(next, chat)
  }
}

/** The AI SDK has read the chat's own stream. Settles what the stream did not. */
function onStreamRead(state: AttachedSync, chat: ChatView): Step {
  const settled = settleApprovals(chat.messages)
  const effects: SyncEffect[] = settled ? [setMessages(settled)] : []
  effects.push(NOTIFY)
  // What follows sees the messages as they are now.
  const now: ChatView = settled ? { ...chat, messages: settled } : chat
  const next: AttachedSync = state.outcome === 'resumed' ? { ...state, outcome: 'settled' } : state
  const older = now.messages.slice(0, -1)
  // The AI SDK sends the responses of the last message by itself.
  const queued = findQueued(now)
  if (queued && older.includes(queued)) return [next, [...effects, ...sendQueued(now)]]
  // The outcome was reported in a stream that this page did not read.
  if (older.some(({ parts }) => parts.some((part) => isUnreportedDecision(part, now.responses))))
    return withEffects([...effects, RELOAD], catchUpOnMissed(next, now))
  if (!hasUnreported(next, now)) return withEffects(effects, catchUpOnMissed(next, now))
  if (state.outcome === 'resumed')
    return withEffects([...effects, RELOAD], catchUpOnMissed(next, now))
  return withEffects(effects, readOutcome(next, now))
}

/** Reads the outcome of a response that was accepted when its stream was about to end. */
function readOutcome(state: AttachedSync, chat: ChatView): AttachedStep {
  if (chat.isBusy || state.outcome !== 'settled' || !hasUnreported(state, chat)) return [state, []]
  return [{ ...state, outcome: 'resuming' }, [resume('outcome')]]
}

function onOutcomeRead(state: AttachedSync, chat: ChatView): Step {
  // A stream was read. `chat-idle` follows.
  if (state.stream !== 'none') return [{ ...state, outcome: 'resumed' }, []]
  const next: AttachedSync = { ...state, outcome: 'settled' }
  const isUnknown = hasUnreported(next, chat) && !chat.isBusy
  return withEffects(isUnknown ? [RELOAD] : [], catchUpOnMissed(next, chat))
}

/** Whether a response to the last message was accepted, and no stream has reported its outcome. */
function hasUnreported({ unreportedOutputs }: AttachedSync, chat: ChatView): boolean {
  const isUnreported = (part: PartView): boolean => {
    const { state, toolCallId = '' } = part
    if (state === 'approval-responded') return isUnreportedDecision(part, chat.responses)
    return unreportedOutputs.has(toolCallId) && chat.responses.get(toolCallId) === 'accepted'
  }
  return chat.messages.at(-1)?.parts.some(isUnreported) === true
}

/** Whether the server has accepted the decision of a call whose outcome the message does not show. */
function isUnreportedDecision({ state, approval }: PartView, responses: ResponseStateMap): boolean {
  return state === 'approval-responded' && responses.get(approval?.id ?? '') === 'accepted'
}

// Responses

function onDecision(
  state: AttachedSync,
  chat: ChatView,
  { decision, supplement }: Extract<SyncEvent, { type: 'decision-given' }>,
): Step {
  const { id } = decision
  const isOpen = findApproval(chat.messages, id, 'approval-requested') !== undefined
  // While a reply is replayed, its message lacks the approval for a moment. The page may still show it.
  const isReplayed = state.askedApprovals.has(id) && !isDecided(chat.messages, id)
  // A second click has no effect.
  if (!(isOpen || isReplayed) || isGiven(id, chat.responses)) return [state, []]
  const add: SyncEffect = { type: 'supplement', id, supplement }
  if (chat.hasOpenStream)
    return [state, [add, mark('sent', id), { type: 'send-decision', decision, supplement }]]
  if (isOpen) return [state, [add, mark('queued', id), { type: 'queue-decision', decision }]]
  const earlyDecisions = new Map([...state.earlyDecisions, [id, decision]])
  return [{ ...state, earlyDecisions }, [add, mark('queued', id)]]
}

/** Queues the early decisions whose approvals are shown again. Those whose approvals did not return are refused. */
function takeEarlyDecisions(state: AttachedSync, { type, chat }: SyncEvent): AttachedStep {
  if (state.earlyDecisions.size === 0) return [state, []]
  const earlyDecisions = new Map(state.earlyDecisions)
  const effects: SyncEffect[] = []
  const isReplayRead = type === 'chat-idle' && state.stream !== 'interrupted'
  for (const [id, decision] of state.earlyDecisions) {
    const isOpen = findApproval(chat.messages, id, 'approval-requested') !== undefined
    if (isOpen) effects.push({ type: 'queue-decision', decision })
    // It was decided elsewhere.
    else if (isDecided(chat.messages, id)) effects.push(forget(id))
    else if (isReplayRead)
      effects.push(forget(id), { type: 'report-refusal', ids: [id], error: notAsked(id) })
    else continue
    earlyDecisions.delete(id)
  }
  return effects.length === 0 ? [state, []] : [{ ...state, earlyDecisions }, effects]
}

function notAsked(id: string): AdkError {
  const text = `The chat does not ask for approval ${id} any more. Load the chat again to see its outcome.`
  return new AdkError('unknown-approval', text)
}

function onOutput(state: AttachedSync, chat: ChatView, output: ToolOutput): Step {
  const { toolCallId: id } = output
  // A call has one output: the first.
  if (isGiven(id, chat.responses)) return [state, []]
  if (!chat.hasOpenStream) return [state, [mark('queued', id), { type: 'queue-output', output }]]
  return [
    { ...state, unreportedOutputs: withId(state.unreportedOutputs, id) },
    [mark('sent', id), { type: 'send-output', output, isShown: false }],
  ]
}

/** Sends the newest message with queued responses. Does nothing while the chat is busy: the end of its stream gets here again. */
function sendQueued(chat: ChatView): SyncEffect[] {
  const message = findQueued(chat)
  return message && !chat.isBusy ? [{ type: 'send-responses', messageId: message.id }] : []
}

/** Finds the newest message with responses that the server does not have. */
function findQueued({ messages, responses }: ChatView): MessageView | undefined {
  return messages.findLast((message) => findUndelivered(message, responses).length > 0)
}

function onAcknowledged(state: AttachedSync, chat: ChatView, id: string): Step {
  const responses = new Map([...chat.responses, [id, 'accepted' as const]])
  return withEffects([mark('accepted', id), NOTIFY], readOutcome(state, { ...chat, responses }))
}

function onRefused(
  state: AttachedSync,
  chat: ChatView,
  { ids, error, isUnreported }: Refusal,
): Step {
  const effects: SyncEffect[] = [mark('refused', ...ids), { type: 'report-refusal', ids, error }]
  const next: AttachedSync = chat.isBusy && !isUnreported ? { ...state, stream: 'refused' } : state
  if (isDecidedElsewhere(error)) {
    const refusal = { ids, error, isUnreported }
    return [next, [...effects, { type: 'check-refusal', refusal }]]
  }
  const isOutput = (id: string): boolean =>
    !findApproval(chat.messages, id, 'approval-responded') &&
    chat.messages.some(({ parts }) => parts.some(({ toolCallId }) => toolCallId === id))
  const outputs = ids.filter(isOutput)
  effects.push(
    ...reopen(
      ids.filter((id) => !isOutput(id)),
      chat,
    ),
  )
  if (isUnreported) effects.push(reportError(error))
  if (outputs.length === 0 || !isTemporary(error)) return [next, effects]
  effects.push(mark('queued', ...outputs))
  return withEffects(effects, scheduleRetry(next))
}

/** Shows an approval as open if the server could not say how it was decided. */
function onRefusalChecked(
  state: AttachedSync,
  chat: ChatView,
  { ids, known, error, isUnreported }: Extract<SyncEvent, { type: 'refusal-checked' }>,
): Step {
  const open = chat.messages.flatMap(({ id: messageId, parts }) => {
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
  return withEffects(effects, chat.isBusy ? [state, []] : catchUpOnMissed(state, chat))
}

/** Opens approvals again, in the messages and in the stream that writes them. */
function reopen(ids: readonly string[], { messages, hasOpenStream }: ChatView): SyncEffect[] {
  const effects: SyncEffect[] = []
  let next = messages
  for (const id of ids) {
    effects.push(forget(id))
    const toolCallId = findApproval(next, id, 'approval-responded')?.toolCallId
    if (toolCallId === undefined) continue
    const chunk = { type: 'tool-approval-request', approvalId: id, toolCallId } as const
    if (hasOpenStream) effects.push({ type: 'push-chunk', chunk })
    next = reopenApproval(next, id)
  }
  if (next !== messages) effects.push(setMessages(next))
  return effects
}

function onOutputFailed(
  state: AttachedSync,
  { output, error }: Extract<SyncEvent, { type: 'output-failed' }>,
): Step {
  const { toolCallId: id } = output
  const effects: SyncEffect[] = [reportError(error)]
  if (!isTemporary(error)) return [state, [...effects, mark('refused', id)]]
  // No request sends it: a turn that is held open takes it only in this way.
  const unsentOutputs = new Map([...state.unsentOutputs, [id, output]])
  return withEffects(effects, scheduleRetry({ ...state, unsentOutputs }))
}

function scheduleRetry(state: AttachedSync): AttachedStep {
  const { delayMs } = state.retry
  const retry = { isScheduled: true, delayMs: Math.min(MAX_RETRY_MS, delayMs * 2) }
  return [{ ...state, retry }, [{ type: 'schedule-retry', delayMs }]]
}

function onRetry(state: AttachedSync, chat: ChatView): Step {
  const unsent = [...state.unsentOutputs.values()]
  const hasQueued = findQueued(chat) !== undefined
  const retry = { ...state.retry, isScheduled: false }
  return [
    {
      ...state,
      unsentOutputs: new Map(),
      retry: unsent.length > 0 || hasQueued ? retry : resetDelay(retry),
    },
    [
      CANCEL_RETRY,
      ...unsent.flatMap((output): SyncEffect[] => [
        mark('sent', output.toolCallId),
        { type: 'send-output', output, isShown: true },
      ]),
      ...sendQueued(chat),
    ],
  ]
}

function resetDelay(retry: AttachedSync['retry']): AttachedSync['retry'] {
  return { ...retry, delayMs: FIRST_RETRY_MS }
}

/** Refusals after which an approval is no longer open. */
const DECIDED_ELSEWHERE = new Set<string>([
  'approval-decided',
  'approval-expired',
  'approval-cancelled',
  'unknown-approval',
])

/** Refusals that say nothing about the request: the server may accept the same one later. */
const TEMPORARY = new Set<string>([
  'unavailable',
  'internal',
  'too-fast',
  'too-many-turns',
  'turn-running',
])

function isDecidedElsewhere(error: unknown): boolean {
  return error instanceof AdkError && DECIDED_ELSEWHERE.has(error.code)
}

function isTemporary(error: unknown): boolean {
  return !(error instanceof AdkError) || TEMPORARY.has(error.code)
}

// What happens elsewhere

function onFeedEvent(state: AttachedSync, chat: ChatView, event: WatchEvent): Step {
  switch (event.type) {
    case 'open':
      // Turns that started while the feed was lost are not reported any more.
      return requestCatchUp(event.again ? { ...state, ownTurns: NONE } : state, chat)
    case 'lost':
      return [{ ...state, ownTurns: NONE }, []]
    case 'approval':
      return event.state === 'requested' ? [state, []] : requestCatchUp(state, chat)
    case 'turn': {
      const { messageId } = event
      if (state.ownTurns.has(messageId))
        return [{ ...state, ownTurns: withoutId(state.ownTurns, messageId) }, []]
      if (state.shownTurns.has(messageId)) return [state, []]
      if (chat.isBusy) return [{ ...state, missedTurns: withId(state.missedTurns, messageId) }, []]
      return requestCatchUp(state, chat)
    }
  }
}

function catchUpOnMissed(state: AttachedSync, chat: ChatView): AttachedStep {
  return state.missedTurns.size > 0 ? requestCatchUp(state, chat) : [state, []]
}

/** Catches up now, or once more after the catch-up in progress. */
function requestCatchUp(state: AttachedSync, chat: ChatView): AttachedStep {
  const { catchUp } = state
  if (catchUp.state !== 'current') return [{ ...state, catchUp: { ...catchUp, isDue: true } }, []]
  // What the chat reads or sends at the moment is newer than what the server has stored. The end of it gets here again.
  if (chat.isBusy || isResponding(chat))
    return [{ ...state, missedTurns: withId(state.missedTurns, ANY_TURN) }, []]
  const loading = { state: 'loading', base: chat.messages, isDue: false } as const
  return [{ ...state, missedTurns: NONE, catchUp: loading }, [LOAD]]
}

function endCatchUp(
  state: AttachedSync,
  chat: ChatView,
  { isDue = false }: { readonly isDue?: boolean } = {},
): AttachedStep {
  const { catchUp } = state
  const next: AttachedSync = { ...state, catchUp: { state: 'current' } }
  const isDueAgain = isDue || (catchUp.state !== 'current' && catchUp.isDue)
  return isDueAgain ? requestCatchUp(next, chat) : [next, []]
}

function onLoaded(
  state: AttachedSync,
  chat: ChatView,
  { messages, isRunning }: Extract<SyncEvent, { type: 'loaded' }>,
): Step {
  const { catchUp } = state
  if (catchUp.state !== 'loading' && catchUp.state !== 'checking') return [state, []]
  const hasChanged = chat.isBusy || chat.messages !== catchUp.base
  if (catchUp.state === 'checking') {
    // The turn may run on another server. This page does not wait for it.
    const isStale = isRunning || hasChanged
    if (isStale) return endCatchUp(state, chat)
    const now = { ...chat, messages: [...messages] }
    return withEffects([setMessages(now.messages)], endCatchUp(state, now))
  }
  if (hasChanged) return endCatchUp(state, chat, { isDue: true })
  return isRunning
    ? readRunning(state, chat, [...messages])
    : showStored(state, chat, [...messages])
}

function showStored(state: AttachedSync, chat: ChatView, stored: MessageView[]): Step {
  // A message that could not be sent is on this page only.
  const messages = chat.hasFailed ? mergeMessages(stored, chat.messages) : stored
  if (JSON.stringify(messages) === JSON.stringify(chat.messages)) return endCatchUp(state, chat)
  return withEffects([setMessages(messages), NOTIFY], endCatchUp(state, { ...chat, messages }))
}

/** Reads the running turn after the stored messages. */
function readRunning(state: AttachedSync, chat: ChatView, stored: MessageView[]): Step {
  // The stored messages leave out the running turn. The page keeps showing what it has of it.
  const unfinished = chat.messages.findLast(
    ({ role, id }) => role === 'assistant' && stored.every((message) => message.id !== id),
  )
  if (unfinished && state.shownTurns.has(unfinished.id)) return endCatchUp(state, chat)
  const isDue = state.catchUp.state === 'loading' && state.catchUp.isDue
  const next: AttachedSync = { ...state, catchUp: { state: 'reading', isDue } }
  // The AI SDK would add the turn as the last message.
  if (unfinished && unfinished !== chat.messages.at(-1))
    return [next, [{ type: 'read-turn', messageId: unfinished.id }]]
  const messages = unfinished ? [...stored, unfinished] : stored
  return [next, [setMessages(messages), resume('catch-up')]]
}

/** There was no turn to read: it ended after the server had reported it. */
function loadAgain(state: AttachedSync, chat: ChatView): Step {
  const isDue = state.catchUp.state !== 'current' && state.catchUp.isDue
  const checking = { state: 'checking', base: chat.messages, isDue } as const
  return [{ ...state, catchUp: checking }, [LOAD]]
}

/** Whether a response to the last message is queued or in flight. */
function isResponding({ messages, responses }: ChatView): boolean {
  const isPending = (id: string | undefined): boolean => {
    const state = id === undefined ? undefined : responses.get(id)
    return state === 'queued' || state === 'sent'
  }
  return (
    messages
      .at(-1)
      ?.parts.some(
        ({ approval, toolCallId }) => isPending(approval?.id) || isPending(toolCallId),
      ) === true
  )
}

// Detaching

/** Forgets what was not delivered: the next chat with this id may send it. */
function onDetach(state: AttachedSync, { messages, responses }: ChatView): SyncEffect[] {
  const undelivered = messages.flatMap((message) => findUndelivered(message, responses))
  const { unsentOutputs, earlyDecisions } = state
  const ids = [...unsentOutputs.keys(), ...earlyDecisions.keys(), ...undelivered]
  return [CANCEL_RETRY, ...ids.map(forget)]
}

/** Records what happened to responses that were in flight. */
function afterDetach(event: SyncEvent): SyncEffect[] {
  if (event.type === 'decision-acknowledged' || event.type === 'output-acknowledged')
    return [mark('accepted', event.id)]
  if (event.type === 'responses-refused') return event.ids.map(forget)
  if (event.type === 'output-failed') return [forget(event.output.toolCallId)]
  return []
}

// Small helpers

const NOTIFY = { type: 'notify' } as const
const LOAD = { type: 'load' } as const
const RELOAD = { type: 'reload' } as const
const CANCEL_RETRY = { type: 'cancel-retry' } as const

function mark(response: ResponseState, ...ids: readonly string[]): SyncEffect {
  return { type: 'mark', ids, response }
}

function forget(id: string): SyncEffect {
  return { type: 'forget', id }
}

function setMessages(messages: MessageView[]): SyncEffect {
  return { type: 'set-messages', messages }
}

function resume(purpose: Extract<SyncEffect, { type: 'resume' }>['purpose']): SyncEffect {
  return { type: 'resume', purpose }
}

function reportError(error: unknown): SyncEffect {
  return { type: 'report-error', error }
}

function withEffects(effects: readonly SyncEffect[], [state, more]: Step): Step {
  return [state, [...effects, ...more]]
}

function withId(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  return new Set([...ids, id])
}

function withoutId(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  return new Set([...ids].filter((each) => each !== id))
}
