import {
  type MessageView,
  addUserMessage,
  type PartView,
  findApproval,
  settleApprovals,
} from '../connection/chat-messages.ts'
import {
  catchUpIfBehind,
  endCatchUp,
  loadAgain,
  onCatchUpFailed,
  onFeedEvent,
  onLoaded,
  requestCatchUp,
  withBase,
  withoutBase,
  withoutSent,
} from './catch-up.ts'
import { isStopped, mergeStored, toStored } from './merge-stored.ts'
import { type ResponseStateMap, findUndelivered } from '../connection/response-states.ts'
import {
  type Step,
  CANCEL_RETRY,
  forget,
  mark,
  NONE,
  NOTIFY,
  resetDelay,
  scheduleRetry,
  setMessages,
  START_RETRY,
  withEffects,
  withId,
  withMark,
  withoutId,
  withoutKey,
  type AttachedSync,
  type ChatView,
  type SyncEffect,
  type SyncEvent,
  type SyncState,
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
  settleRequested,
  findQueued,
} from './sync-responses.ts'
import type { Chunk } from '../../protocol/chunk.ts'
import type { ChatPositions } from '../../protocol/sse.ts'

/** The state of a chat that was just attached. */
export const START: AttachedSync = {
  state: 'attached',
  base: undefined,
  news: undefined,
  catchUp: { state: 'current', isDue: false },
  stream: { end: 'none' },
  shown: { messageIds: NONE },
  outbox: new Map(),
  retry: START_RETRY,
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
  const isRead = isBusy && (state.stream.messageId ?? messageId) === messageId
  return isRead || state.shown.messageIds.has(messageId)
}

/** Whether the AI SDK should send the responses of the last message by itself. */
export function shouldSend(last: MessageView | undefined, responses: ResponseStateMap): boolean {
  return findUndelivered(last, responses).length > 0
}

function nextAttached(state: AttachedSync, event: SyncEvent, chat: ChatView): Step {
  switch (event.type) {
    case 'chunk':
      return onChunk(state, chat, event)
    case 'stream-ended':
      return [{ ...state, stream: { ...state.stream, end: 'ended', read: event.read } }, []]
    case 'message-sent':
      return [{ ...state, stream: { ...state.stream, sends: event.id } }, []]
    case 'chat-idle':
      return onIdle(state, chat)
    case 'turn-shown': {
      const messageIds = withId(state.shown.messageIds, event.messageId)
      const spokenReplyId = event.isSpokenReply ? event.messageId : state.shown.spokenReplyId
      return [{ ...state, shown: { messageIds, spokenReplyId } }, []]
    }
    case 'shown-turn-ended': {
      const messageIds = withoutId(state.shown.messageIds, event.messageId)
      const next = { ...state, shown: { ...state.shown, messageIds } }
      return withEffects([NOTIFY], catchUpIfBehind(next, chat))
    }
    case 'user-message': {
      const replyId = event.source === 'spoken' ? state.shown.spokenReplyId : undefined
      const messages = addUserMessage(chat.messages, event.message, replyId)
      const shown = { ...state.shown, spokenReplyId: undefined }
      return [{ ...state, shown }, messages === chat.messages ? [] : [setMessages(messages)]]
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
      return onOutputFailed(state, chat, event)
    case 'connection-opened':
      return state.retry.isScheduled ? onRetry(state, chat) : [state, []]
    case 'retry-due':
      return onRetry(state, chat)
    case 'feed-started':
      return [{ ...state, news: state.news ?? {} }, []]
    case 'feed-event':
      return onFeedEvent(state, chat, event.event)
    case 'loaded':
      return onLoaded(state, chat, event.loaded)
    case 'catch-up-failed':
      return onCatchUpFailed(state, event.error)
    case 'reloaded':
      return onReloaded(state, chat, event)
    case 'stopped':
      // CL1800: the page marks the reply as stopped, which no position covers. It may have ended before.
      return requestCatchUp(withoutBase(state), chat)
    case 'marked':
      // The server may have handled the stop before. Then nothing else follows that compares the mark with what is stored.
      return scheduleRetry(withoutBase(state))
    case 'turn-read':
      if (event.wasRunning) return endCatchUp(state, chat, { isDue: true })
      return loadAgain(state, chat)
    case 'detached':
      return [{ state: 'detached' }, onDetach(state, chat)]
  }
}

/** Forgets what was not delivered: the next chat with this id may send it. */
function onDetach(state: AttachedSync, { messages, responses }: ChatView): SyncEffect[] {
  const undelivered = messages.flatMap((message) => findUndelivered(message, responses))
  const kept = [...state.outbox].flatMap(([id, { state: sent }]) => {
    const isQueued = sent === 'queued' && responses.get(id) === 'queued'
    return isQueued || sent === 'unsent' ? [id] : []
  })
  return [CANCEL_RETRY, ...[...kept, ...undelivered].map(forget)]
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
    const { messageId } = chunk
    const isKnown = chat.messages.some(({ id }) => id === messageId)
    const requested = isKnown ? 'rest' : 'new'
    const writes = source === 'resumed' ? 'replay' : requested
    const { sends } = next.stream
    next = { ...next, stream: { end: 'none', messageId, writes, sends } }
  }
  if ('toolCallId' in chunk && next.outbox.get(chunk.toolCallId)?.state === 'unreported')
    next = { ...next, outbox: withoutKey(next.outbox, chunk.toolCallId) }
  const effects: SyncEffect[] = source === 'shown' ? [] : showReportedDecision(chunk, chat)
  if (isCallData(chunk)) effects.push(NOTIFY)
  return [next, effects]
}

/** Shows stored messages that were not loaded for `catchUp`, with what only this page has. */
function onReloaded(
  state: AttachedSync,
  chat: ChatView,
  { loaded, shown = chat.messages }: Extract<SyncEvent, { type: 'reloaded' }>,
): Step {
  const stored = toStored(loaded, state.base, chat.messages)
  const known = new Set([...shown, ...stored].map(({ id }) => id))
  // The chat has sent and read something since the request.
  const isOutdated = !chat.isBusy && chat.messages.some(({ id }) => !known.has(id))
  // The stored messages leave out the turn that is running, for this page or for another one.
  const isPartial = loaded.running || chat.isBusy || isOutdated
  // A message that could not be sent is on this page only.
  const kept = {
    keepAll: isPartial || chat.hasFailed,
    base: isPartial ? undefined : withoutSent(state),
  }
  const messages = mergeStored(stored, chat, kept)
  const next = isOutdated ? withoutBase(state) : withBase(state, loaded, stored)
  const following = catchUpIfBehind(next, { ...chat, messages })
  return withEffects([setMessages(messages), NOTIFY], following)
}

/** Shows a decision before the chat reads its outcome: the AI SDK does not take it from the outcome. */
function showReportedDecision(chunk: Chunk, { messages }: ChatView): SyncEffect[] {
  if (chunk.type !== 'data-approval') return []
  const { approvalId: id, state, reason } = chunk.data
  if (state !== 'approved' && state !== 'denied') return []
  const decision = { id, approved: state === 'approved', reason }
  const isOpen = findApproval(messages, id, 'approval-requested') !== undefined
  return [mark('accepted', id), ...(isOpen ? [{ type: 'show-decision', decision } as const] : [])]
}

function onIdle(state: AttachedSync, chat: ChatView): Step {
  const { end } = state.stream
  const [next, effects] = settleRequested(afterStream(state, chat), chat)
  return withEffects(effects, afterRequest(next, chat, end))
}

function afterRequest(
  state: AttachedSync,
  chat: ChatView,
  end: AttachedSync['stream']['end'],
): Step {
  switch (end) {
    case 'none': {
      // Without a stream, the AI SDK sends nothing by itself.
      const effects = sendQueued(chat)
      return effects.length > 0 ? [state, effects] : catchUpIfBehind(state, chat)
    }
    case 'refused':
      return catchUpIfBehind(state, chat)
    case 'ended':
      return onStreamRead(state, chat)
  }
}

/**
 * Records what the page shows after its own stream. If it had everything before the turn, and has read the whole message, it has everything
 * after the turn. In all other cases the stored messages are loaded.
 */
function afterStream(state: AttachedSync, chat: ChatView): AttachedSync {
  const { stream, base, news } = state
  const { writes, read, sends } = stream
  // A turn that failed may continue on another server.
  const ended = { end: 'none', ...(chat.hasFailed ? { sends } : read && { read }) } as const
  const positions = read?.positions
  const isCurrent = !chat.hasFailed && base && positions?.before === base.position
  if (stream.end !== 'ended' || !writes) return { ...state, stream: ended }
  if (writes !== 'new') return afterKnown({ ...state, stream: ended }, positions)
  if (!isCurrent) return { ...state, stream: ended }
  const { before, after: position } = positions
  const added = chat.messages.filter((each) => !isStopped(each) && !base.ids.has(each.id))
  // The turn has stored one message and the reply to it. Other ones may have failed or been replaced.
  const sent = added.findLast(({ role }) => role === 'user')
  if (added.some((each) => each.id !== stream.messageId && each !== sent))
    return withoutBase({ ...state, stream: ended })
  const ids = new Set([...base.ids, ...added.map(({ id }) => id)])
  const isReported = news?.position !== undefined && news.position !== before
  return {
    ...state,
    stream: ended,
    base: { position, ids },
    news: news && !isReported ? { ...news, position } : news,
  }
}

/**
 * The rest of a message may contain what the page had: the server knows only which call the page has responded to. A message that is
 * streamed from its start lacks the requests that were decided. If the page had everything before the turn, and the turn has stored
 * something, the message is loaded as changed. Otherwise all messages are loaded.
 */
function afterKnown(state: AttachedSync, positions: ChatPositions | undefined): AttachedSync {
  const { base, news, catchUp } = state
  if (!news) return state
  const { before, after } = positions ?? {}
  const isLoadedAsChanged = before !== after && before === base?.position
  return isLoadedAsChanged ? { ...state, catchUp: { ...catchUp, isDue: true } } : withoutBase(state)
}

/** The AI SDK has read the chat's own stream. Settles what the stream did not. */
function onStreamRead(state: AttachedSync, chat: ChatView): Step {
  const settled = settleApprovals(chat.messages)
  const effects: SyncEffect[] = settled ? [setMessages(settled)] : []
  effects.push(NOTIFY)
  // What follows sees the messages as they are now.
  const now: ChatView = settled ? { ...chat, messages: settled } : chat
  // The AI SDK sends the responses of the last message by itself, unless the stream has failed.
  const queued = findQueued(now)
  const isLeft = queued && (queued !== now.messages.at(-1) || chat.hasFailed)
  if (isLeft) return [state, [...effects, ...sendQueued(now)]]
  const next = hasUnreported(state, now) ? requestCatchUp(state, now) : catchUpIfBehind(state, now)
  return withEffects(effects, next)
}

/** Whether a response was accepted, and no stream has reported its outcome. */
function hasUnreported({ outbox }: AttachedSync, { messages, responses }: ChatView): boolean {
  const isUnreported = ({ state, approval, toolCallId = '' }: PartView): boolean => {
    if (state === 'approval-responded') return responses.get(approval?.id ?? '') === 'accepted'
    return (
      outbox.get(toolCallId)?.state === 'unreported' && responses.get(toolCallId) === 'accepted'
    )
  }
  return messages.some(({ parts }) => parts.some(isUnreported))
}

/** Records that the server has a response, and loads its outcome if no stream is open. */
function onAcknowledged(state: AttachedSync, chat: ChatView, id: string): Step {
  const now = withMark(chat, 'accepted', id)
  const isLoaded = !chat.isBusy && hasUnreported(state, now)
  return withEffects(
    [mark('accepted', id), NOTIFY],
    isLoaded ? requestCatchUp(state, now) : [state, []],
  )
}
