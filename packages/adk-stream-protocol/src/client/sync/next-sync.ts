import type { MessageView } from './chat-messages.ts'
import { addUserMessage, mergeMessages } from './chat-messages.ts'
import { endCatchUp, loadAgain, onFeedEvent, onLoaded } from './catch-up.ts'
import { onAcknowledged, onChunk, onIdle, onOutcomeRead } from './own-stream.ts'
import type { ResponseStateMap } from './response-states.ts'
import { findUndelivered } from './response-states.ts'
import {
  type Step,
  CANCEL_RETRY,
  forget,
  mark,
  NONE,
  NOTIFY,
  reportError,
  resume,
  setMessages,
  withEffects,
  withId,
  withoutId,
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
  resetDelay,
  sendQueued,
  START_RETRY,
  takeEarlyDecisions,
} from './sync-responses.ts'

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
  offeredCalls: NONE,
  askedApprovals: NONE,
  earlyDecisions: new Map(),
  writtenMessageId: undefined,
  spokenReplyId: undefined,
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
