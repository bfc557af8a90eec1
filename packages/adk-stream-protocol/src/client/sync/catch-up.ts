import { isTemporary } from '../adk-error.ts'
import type { WatchEvent } from '../api/watch-feed.ts'
import type { StoredConversation } from '../connection/transport.ts'
import { type MessageView, hasSameContent } from '../connection/chat-messages.ts'
import { mergeStored, toStored } from './merge-stored.ts'
import {
  type AttachedStep,
  type Step,
  NOTIFY,
  reportError,
  resetDelay,
  scheduleRetry,
  setMessages,
  withEffects,
  withoutId,
  type AttachedSync,
  type ChatView,
  type StoredBase,
} from './sync-state.ts'

/** Follows what the feed reports: turns and decisions of other pages and servers. */
export function onFeedEvent(state: AttachedSync, chat: ChatView, event: WatchEvent): Step {
  switch (event.type) {
    case 'open':
      // What happened while the feed was lost is not reported.
      return requestCatchUp(state, chat)
    case 'lost':
      return [state, []]
    case 'approval':
      return event.state === 'requested' ? [state, []] : requestCatchUp(state, chat)
    case 'turn': {
      if (state.shown.messageIds.has(event.messageId)) return [state, []]
      return onNews(state, chat, { turn: event.turn })
    }
    case 'stored':
      return onNews(state, chat, { position: event.position })
  }
}

function onNews(state: AttachedSync, chat: ChatView, news: AttachedSync['news']): Step {
  const next = { ...state, news: { ...state.news, ...news } }
  // A catch-up in progress may have loaded the messages before.
  if (isBehind(next) && state.catchUp.state !== 'current') return requestCatchUp(next, chat)
  return catchUpIfBehind(next, chat)
}

/** Whether something is stored, or a turn is running, that the page does not show. */
function isBehind({ catchUp, news = {}, base, stream }: AttachedSync): boolean {
  const { position = base?.position, turn = stream.read?.turn } = news
  return catchUp.isDue || position !== base?.position || turn !== stream.read?.turn
}

/**
 * Catches up if the page is behind the server. What the chat is doing, or a catch-up in progress, may take it there: the end of it is an
 * event too.
 */
export function catchUpIfBehind(state: AttachedSync, chat: ChatView): AttachedStep {
  const isWaiting = state.catchUp.state !== 'current' || isOccupied(state, chat)
  return isBehind(state) && !isWaiting ? requestCatchUp(state, chat) : [state, []]
}

/** Whether the chat reads or sends something that is newer than what the server has stored. */
function isOccupied({ shown }: AttachedSync, chat: ChatView): boolean {
  return chat.isBusy || isResponding(chat) || shown.messageIds.size > 0
}

/** Catches up now, or once more after the catch-up in progress. */
export function requestCatchUp(state: AttachedSync, chat: ChatView): AttachedStep {
  const { catchUp, base } = state
  if (catchUp.state !== 'current' || isOccupied(state, chat))
    return [{ ...state, catchUp: { ...catchUp, isDue: true } }, []]
  const loading = { state: 'loading', shown: chat.messages, isDue: false } as const
  const ids = new Set(chat.messages.map(({ id }) => id))
  const isIntact = base && [...base.ids].every((id) => ids.has(id))
  const after = isIntact ? base.position : undefined
  return [{ ...state, catchUp: loading }, [{ type: 'load', after }]]
}

function hasMessage(messages: readonly MessageView[], id: string): boolean {
  return messages.some((message) => message.id === id)
}

export function endCatchUp(
  state: AttachedSync,
  chat: ChatView,
  { isDue = false }: { readonly isDue?: boolean } = {},
): AttachedStep {
  const { catchUp } = state
  const next: AttachedSync = {
    ...state,
    catchUp: { state: 'current', isDue: isDue || catchUp.isDue },
  }
  return catchUpIfBehind(next, chat)
}

/** Shows the stored conversation, and then the turn that runs. */
export function onLoaded(
  state: AttachedSync,
  chat: ChatView,
  loaded: StoredConversation | undefined,
): Step {
  const { catchUp } = state
  if (catchUp.state !== 'loading' && catchUp.state !== 'checking') return [state, []]
  const isChecked = catchUp.state === 'checking'
  // Without a way to load, the running turn is read, if there is one.
  if (!loaded) return isChecked ? endCatchUp(state, chat) : startReading(state, chat.messages)
  const hasChanged = chat.isBusy || chat.messages !== catchUp.shown
  const isOutdated = loaded.after !== undefined && loaded.after !== state.base?.position
  if (hasChanged || isOutdated) return endCatchUp(state, chat, { isDue: !isChecked || isOutdated })
  const stored = toStored(loaded, state.base, chat.messages)
  const based = withBase(state, loaded, stored)
  // What the feed has reported since the request makes another catch-up due.
  const next = { ...based, news: state.news && { position: based.base?.position } }
  if (!loaded.running) {
    // A message that could not be sent is on this page only.
    const kept = { keepAll: chat.hasFailed, base: withoutSent(state) }
    return showStored(next, chat, mergeStored(stored, chat, kept))
  }
  // The turn runs on a server that this page cannot read from.
  if (isChecked) return catchUp.isDue ? endCatchUp(next, chat) : catchUpLater(next)
  return readRunning(next, chat, stored)
}

/**
 * Records what the page shows of the store from now on. While a turn runs, the loaded messages go beyond their position, and those after
 * it may be replaced: the page still has what it had up to its own position.
 */
export function withBase(
  state: AttachedSync,
  { position, running }: StoredConversation,
  stored: readonly MessageView[],
): AttachedSync {
  if (running) return state
  const ids = new Set(stored.map(({ id }) => id))
  return { ...state, base: position === undefined ? undefined : { position, ids } }
}

/** The page shows something that is not stored: it loads everything when it is idle. */
export function withoutBase(state: AttachedSync): AttachedSync {
  return { ...state, base: undefined, catchUp: { ...state.catchUp, isDue: true } }
}

/** Returns what the server had, without the message that a request of this page stores again: the server may have removed it. */
export function withoutSent({ base, stream }: AttachedSync): StoredBase | undefined {
  return base && { ...base, ids: withoutId(base.ids, stream.sends ?? '') }
}

function showStored(loading: AttachedSync, chat: ChatView, messages: MessageView[]): Step {
  const state: AttachedSync = { ...loading, retry: resetDelay(loading.retry) }
  if (isSame(messages, chat.messages)) return endCatchUp(state, chat)
  return withEffects([setMessages(messages), NOTIFY], endCatchUp(state, { ...chat, messages }))
}

function isSame(messages: readonly MessageView[], shown: readonly MessageView[]): boolean {
  const isEqual = (message: MessageView, index: number): boolean =>
    message === shown[index] || JSON.stringify(message) === JSON.stringify(shown[index])
  return messages.length === shown.length && messages.every(isEqual)
}

/** Reads the running turn after the stored messages. */
function readRunning(state: AttachedSync, chat: ChatView, loaded: readonly MessageView[]): Step {
  // The AI SDK clears the error of the chat when it reads a turn. A message that could not be sent would look as if it were sent.
  if (chat.hasFailed && isLastUnknown(chat, loaded)) {
    const messages = mergeStored(loaded, chat, { keepAll: true })
    return withEffects([setMessages(messages), NOTIFY], catchUpLater(state))
  }
  const stored = mergeStored(loaded, chat)
  // The stored messages leave out the running turn. The page keeps showing what it has of it.
  const unfinished = chat.messages.findLast(
    ({ role, id }) => role === 'assistant' && !hasMessage(stored, id),
  )
  // The AI SDK would add the turn as the last message.
  if (unfinished && unfinished !== chat.messages.at(-1)) {
    const catchUp = { state: 'reading', isDue: state.catchUp.isDue } as const
    return [{ ...state, catchUp }, [{ type: 'read-turn', messageId: unfinished.id }]]
  }
  return startReading(state, unfinished ? [...stored, unfinished] : stored)
}

/** Lets the AI SDK read the running turn after these messages. */
function startReading(state: AttachedSync, messages: MessageView[]): Step {
  const catchUp = { state: 'reading', isDue: state.catchUp.isDue } as const
  return [{ ...state, catchUp }, [setMessages(messages), NOTIFY, { type: 'resume' }]]
}

/** Whether the server does not have the newest user message, or has another version of it. */
function isLastUnknown(chat: ChatView, stored: readonly MessageView[]): boolean {
  const last = chat.messages.findLast(({ role }) => role === 'user')
  const known = stored.find(({ id }) => id === last?.id)
  if (!last || !known) return last !== undefined
  const mayBeEdited = chat.keepsEdit === true && last === chat.messages.at(-1)
  return mayBeEdited && !hasSameContent(last, known)
}

export function onCatchUpFailed(state: AttachedSync, error: unknown): Step {
  if (state.news && isTemporary(error)) return catchUpLater(state)
  return [{ ...state, catchUp: { state: 'current', isDue: false } }, [reportError(error)]]
}

/** Loads the messages again later. The feed does not report again what was missed. */
function catchUpLater(state: AttachedSync): AttachedStep {
  return scheduleRetry({ ...state, catchUp: { state: 'current', isDue: true } })
}

/** There was no turn to read: it ended after the server had reported it. */
export function loadAgain(state: AttachedSync, chat: ChatView): Step {
  const { isDue } = state.catchUp
  const checking = { state: 'checking', shown: chat.messages, isDue } as const
  return [{ ...state, catchUp: checking }, [{ type: 'load', after: undefined }]]
}

/** Whether a response to the last message is queued or in flight. */
function isResponding({ messages, responses }: ChatView): boolean {
  const isPending = (id: string | undefined): boolean => {
    const state = id === undefined ? undefined : responses.get(id)
    return state === 'queued' || state === 'sent'
  }
  const parts = messages.at(-1)?.parts ?? []
  return parts.some(({ approval, toolCallId }) => isPending(approval?.id) || isPending(toolCallId))
}
