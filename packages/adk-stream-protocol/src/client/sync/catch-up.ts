import { isTemporary } from '../adk-error.ts'
import type { WatchEvent } from '../api/watch-feed.ts'
import type { MessageView } from './chat-messages.ts'
import { mergeStored } from './merge-stored.ts'
import {
  type AttachedStep,
  type Step,
  LOAD,
  NONE,
  NOTIFY,
  reportError,
  resetDelay,
  resume,
  scheduleRetry,
  setMessages,
  withEffects,
  withId,
  withoutId,
  type AttachedSync,
  type ChatView,
  type SyncEvent,
} from './sync-state.ts'

/** Stands in `missedTurns` for anything that was missed. */
const ANY_TURN = ''

/** Follows what the feed reports: turns and decisions of other pages and servers. */
export function onFeedEvent(state: AttachedSync, chat: ChatView, event: WatchEvent): Step {
  switch (event.type) {
    case 'open':
      // Turns that started while the feed was lost are not reported any more.
      return requestCatchUp(event.again ? { ...state, ownTurns: NONE } : state, chat)
    case 'lost':
      return [{ ...state, ownTurns: NONE }, []]
    case 'stored':
      return [state, []]
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

/** Catches up if the feed has reported something while the chat was busy. */
export function catchUpOnMissed(state: AttachedSync, chat: ChatView): AttachedStep {
  return state.missedTurns.size > 0 ? requestCatchUp(state, chat) : [state, []]
}

/** Catches up now, or once more after the catch-up in progress. */
function requestCatchUp(state: AttachedSync, chat: ChatView): AttachedStep {
  const { catchUp } = state
  if (catchUp.state !== 'current') return [{ ...state, catchUp: { ...catchUp, isDue: true } }, []]
  // What the chat reads or sends at the moment is newer than what the server has stored. `chat-idle` follows.
  if (chat.isBusy || isResponding(chat))
    return [{ ...state, missedTurns: withId(state.missedTurns, ANY_TURN) }, []]
  const loading = { state: 'loading', base: chat.messages, isDue: false } as const
  return [{ ...state, missedTurns: NONE, catchUp: loading }, [LOAD]]
}

export function endCatchUp(
  state: AttachedSync,
  chat: ChatView,
  { isDue = false }: { readonly isDue?: boolean } = {},
): AttachedStep {
  const { catchUp } = state
  const next: AttachedSync = { ...state, catchUp: { state: 'current' } }
  const isDueAgain = isDue || (catchUp.state !== 'current' && catchUp.isDue)
  return isDueAgain ? requestCatchUp(next, chat) : [next, []]
}

/** Shows the stored conversation, and then the turn that runs. */
export function onLoaded(
  state: AttachedSync,
  chat: ChatView,
  { messages: loaded, isRunning }: Extract<SyncEvent, { type: 'loaded' }>,
): Step {
  const { catchUp } = state
  if (catchUp.state !== 'loading' && catchUp.state !== 'checking') return [state, []]
  const hasChanged = chat.isBusy || chat.messages !== catchUp.base
  if (catchUp.state === 'checking') {
    if (hasChanged || (isRunning && catchUp.isDue)) return endCatchUp(state, chat)
    // The turn runs on a server that this page cannot read from.
    return isRunning ? catchUpLater(state) : showStored(state, chat, loaded)
  }
  if (hasChanged) return endCatchUp(state, chat, { isDue: true })
  return isRunning ? readRunning(state, chat, loaded) : showStored(state, chat, loaded)
}

function showStored(loading: AttachedSync, chat: ChatView, stored: readonly MessageView[]): Step {
  const state: AttachedSync = { ...loading, retry: resetDelay(loading.retry) }
  // A message that could not be sent is on this page only.
  const messages = mergeStored(stored, chat, { keepAll: chat.hasFailed })
  if (JSON.stringify(messages) === JSON.stringify(chat.messages)) return endCatchUp(state, chat)
  return withEffects([setMessages(messages), NOTIFY], endCatchUp(state, { ...chat, messages }))
}

/** Reads the running turn after the stored messages. */
function readRunning(state: AttachedSync, chat: ChatView, loaded: readonly MessageView[]): Step {
  // The AI SDK clears the error of the chat when it reads a turn. A message that could not be sent would look as if it were sent.
  if (chat.hasFailed && isLastUnknown(chat.messages, loaded)) {
    const messages = mergeStored(loaded, chat, { keepAll: true })
    return withEffects([setMessages(messages), NOTIFY], catchUpLater(state))
  }
  const stored = mergeStored(loaded, chat)
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

/** Whether the server does not have the newest user message. */
function isLastUnknown(shown: readonly MessageView[], stored: readonly MessageView[]): boolean {
  const last = shown.findLast(({ role }) => role === 'user')
  return last !== undefined && stored.every(({ id }) => id !== last.id)
}

export function onCatchUpFailed(state: AttachedSync, error: unknown): Step {
  const effects = [reportError(error)]
  if (!state.isFollowing || !isTemporary(error))
    return [{ ...state, catchUp: { state: 'current' } }, effects]
  return withEffects(effects, catchUpLater(state))
}

/** Loads the messages again later. The feed does not report again what was missed. */
function catchUpLater(state: AttachedSync): AttachedStep {
  const missedTurns = withId(state.missedTurns, ANY_TURN)
  return scheduleRetry({ ...state, catchUp: { state: 'current' }, missedTurns })
}

/** There was no turn to read: it ended after the server had reported it. */
export function loadAgain(state: AttachedSync, chat: ChatView): Step {
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
