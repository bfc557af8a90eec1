import {
  type MessageView,
  addUserMessage,
  type PartView,
  findApproval,
  settleApprovals,
} from './chat-messages.ts'
import {
  endCatchUp,
  loadAgain,
  onCatchUpFailed,
  onFeedEvent,
  onLoaded,
  catchUpOnMissed,
} from './catch-up.ts'
import { mergeStored } from './merge-stored.ts'
import { type ResponseStateMap, findUndelivered } from './response-states.ts'
import {
  type Step,
  CANCEL_RETRY,
  forget,
  mark,
  NONE,
  NOTIFY,
  resetDelay,
  resume,
  setMessages,
  START_RETRY,
  withEffects,
  withId,
  withoutId,
  type AttachedSync,
  type ChatView,
  type SyncEffect,
  type SyncEvent,
  type SyncState,
  type AttachedStep,
  RELOAD,
} from './sync-state.ts'
import {
  onDecision,
  onOutput,
  onOutputFailed,
  onRefusalChecked,
  onRefused,
  onRetry,
  reopen,
  restoreQueued,
  sendQueued,
  findQueued,
} from './sync-responses.ts'
import type { Chunk } from '../../protocol/chunk.ts'

/** The state of a chat that was just attached. */
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
  retry: START_RETRY,
  askedApprovals: NONE,
  queued: new Map(),
  writtenMessageId: undefined,
  spokenReplyId: undefined,
}

/** Decides what an attached chat does when something happens: in its own stream, on the page, or on the server. */
export function nextSync(state: SyncState, event: SyncEvent, chat: ChatView): Step {
  if (state.state === 'detached') return [state, afterDetach(event)]
  const [next, effects] = restoreQueued(state, chat, event)
  return withEffects(effects, nextAttached(next, event, withoutForgotten(chat, effects)))
}

/** Returns the chat as it is after responses were forgotten. */
function withoutForgotten(chat: ChatView, effects: readonly SyncEffect[]): ChatView {
  const ids = effects.flatMap((effect) => (effect.type === 'forget' ? [effect.id] : []))
  if (ids.length === 0) return chat
  return { ...chat, responses: new Map([...chat.responses].filter(([id]) => !ids.includes(id))) }
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
  // The rest of the interrupted stream is read first. The AI SDK asks again when it has ended.
  const isInterrupted = state.state === 'attached' && state.stream === 'interrupted'
  return !isInterrupted && findUndelivered(last, responses).length > 0
}

function nextAttached(state: AttachedSync, event: SyncEvent, chat: ChatView): Step {
  switch (event.type) {
    case 'chunk':
      return onChunk(state, chat, event)
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
      return onCatchUpFailed(state, event.error)
    case 'reloaded': {
      // The stored messages leave out the turn that is running, for this page or for another one.
      const isPartial = event.isRunning || chat.isBusy
      // A message that could not be sent is on this page only.
      const hasUnsent = chat.hasFailed && chat.messages.at(-1)?.role === 'user'
      const messages = mergeStored(event.messages, chat, { keepAll: isPartial || hasUnsent })
      return [state, [setMessages(messages), NOTIFY]]
    }
    case 'stopped':
      return [state, [RELOAD]]
    case 'turn-read':
      if (event.wasRunning) return endCatchUp(state, chat, { isDue: true })
      return loadAgain(state, chat)
    case 'outcome-read':
      return onOutcomeRead(state, chat)
    case 'detached':
      return [{ state: 'detached' }, onDetach(state, chat)]
  }
}

/** Forgets what was not delivered: the next chat with this id may send it. */
function onDetach(state: AttachedSync, { messages, responses }: ChatView): SyncEffect[] {
  const undelivered = messages.flatMap((message) => findUndelivered(message, responses))
  const queued = [...state.queued.keys()].filter((id) => responses.get(id) === 'queued')
  const ids = [...state.unsentOutputs.keys(), ...queued, ...undelivered]
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

/** Whether a chunk may change the state. All others, deltas above all, need not be passed to `nextSync`. */
export function isSyncChunk(chunk: Chunk): boolean {
  return chunk.type === 'start' || 'toolCallId' in chunk || isCallData(chunk)
}

function isCallData({ type }: Chunk): boolean {
  return type === 'data-approval' || type === 'data-browser-call'
}

function onChunk(
  state: AttachedSync,
  chat: ChatView,
  { chunk, source }: Extract<SyncEvent, { type: 'chunk' }>,
): Step {
  let next = state
  if (chunk.type === 'start' && source !== 'shown') {
    next = { ...next, writtenMessageId: chunk.messageId }
    if (source === 'requested') next = onOwnTurn(next, chunk.messageId)
  }
  if (chunk.type === 'tool-approval-request')
    next = { ...next, askedApprovals: withId(next.askedApprovals, chunk.approvalId) }
  if ('toolCallId' in chunk && next.unreportedOutputs.has(chunk.toolCallId))
    next = { ...next, unreportedOutputs: withoutId(next.unreportedOutputs, chunk.toolCallId) }
  const effects: SyncEffect[] = source === 'shown' ? [] : showReportedDecision(chunk, chat)
  if (isCallData(chunk)) effects.push(NOTIFY)
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
  // A turn that failed may continue on another server.
  const ownTurns = chat.hasFailed ? NONE : state.ownTurns
  const next: AttachedSync = { ...state, ownTurns, stream: 'none' }
  switch (state.stream) {
    case 'interrupted':
      return [next, [resume('interrupted')]]
    case 'none': {
      // Without a stream, the AI SDK sends nothing by itself.
      const effects = sendQueued(chat)
      return effects.length > 0 ? [next, effects] : catchUpOnMissed(next, chat)
    }
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
  // The AI SDK sends the responses of the last message by itself, unless the stream has failed.
  const queued = findQueued(now)
  const isLeft = queued && (older.includes(queued) || chat.hasFailed)
  if (isLeft) return [next, [...effects, ...sendQueued(now)]]
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

/** Records that the server has a response, and reads its outcome if no stream is open. */
function onAcknowledged(state: AttachedSync, chat: ChatView, id: string): Step {
  const responses = new Map([...chat.responses, [id, 'accepted' as const]])
  return withEffects([mark('accepted', id), NOTIFY], readOutcome(state, { ...chat, responses }))
}
