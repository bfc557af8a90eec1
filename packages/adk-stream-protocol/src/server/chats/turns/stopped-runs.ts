import { randomUUID } from 'node:crypto'

import type { AppendEventRequest, BaseSessionService, Event, Session } from '@google/adk'
import { createEvent, createEventActions } from '@google/adk'
import type { Content } from '@google/genai'

import { intercept } from '../../../agent/adk-workarounds/session-services.ts'
import { STOPPED, toNestedEnding } from '../../../agent/call-responses.ts'
import { readNotes, writeNotes } from '../../../agent/history/event-notes.ts'
import { type PartialReply, storePartialReply } from '../../../agent/history/interrupted-turn.ts'
import { type StoredTurn, findTurn } from '../../../agent/history/replay-turn.ts'
import { chatOf } from '../../../agent/tool-call.ts'
import type { RunState } from '../../../calls/run-state.ts'
import { type AppChatRef, toChatKey } from '../../../shared/chat-ref.ts'
import { keepNewest } from '../../../shared/collections.ts'
import type { RunOutcome } from '../../../turns/run-turn.ts'
import { StoreError } from '../../../store/store-error.ts'
import type { ChatSessions } from '../chat-sessions.ts'

interface Appends {
  /** The newest event of the agent that ADK has tried to store. */
  last: Event | undefined
  readonly pending: Set<Promise<unknown>>
}

const MAX_CHATS = 10_000

/**
 * What ADK stores during runs. A turn that is stopped does not wait for its run, so it may not know that the whole reply is being stored.
 * The streamed text must then not be stored as well.
 */
export class RunAppends {
  readonly #chats = new Map<string, Appends>()

  /** Returns the session service for a runner. */
  observe(sessions: BaseSessionService): BaseSessionService {
    const appendEvent = async (request: AppendEventRequest): Promise<Event> => {
      const { event } = request
      if (event.partial) return sessions.appendEvent(request)
      const appends = this.#of(request)
      const isOfAgent = event.author !== 'user'
      if (isOfAgent) appends.last = event
      const appended = isOfAgent
        ? appendWithRetry(sessions, request)
        : sessions.appendEvent(request)
      appends.pending.add(appended)
      try {
        return await appended
      } finally {
        appends.pending.delete(appended)
      }
    }
    return intercept(sessions, { appendEvent })
  }

  /** Waits until nothing is being stored in a chat. Returns the newest event of the agent that ADK has tried to store since the last call. */
  async settled(chat: AppChatRef): Promise<Event | undefined> {
    const key = toChatKey(chat)
    const appends = this.#chats.get(key)
    if (!appends) return undefined
    while (appends.pending.size > 0) await Promise.allSettled(appends.pending)
    this.#chats.delete(key)
    return appends.last
  }

  forget(chat: AppChatRef): void {
    this.#chats.delete(toChatKey(chat))
  }

  #of({ session }: AppendEventRequest): Appends {
    const key = toChatKey(chatOf(session))
    const known = this.#chats.get(key)
    if (known) return known
    const appends: Appends = { last: undefined, pending: new Set() }
    this.#chats.set(key, appends)
    keepNewest(this.#chats, MAX_CHATS)
    return appends
  }
}

/** TU870: stores an event, and tries once more if the database was locked: nothing is stored then, and the client has the whole reply. */
async function appendWithRetry(
  sessions: BaseSessionService,
  request: AppendEventRequest,
): Promise<Event> {
  try {
    return await sessions.appendEvent(request)
  } catch (error) {
    if (!(error instanceof StoreError) || error.code !== 'busy') throw error
    return sessions.appendEvent(request)
  }
}

/** A message whose turn was stopped, with the ids of the message and of its reply. */
export interface StoppedMessage {
  readonly content: Content
  readonly messageId: string
  readonly userMessageId: string
  /** Session state to set with the message. */
  readonly state: Readonly<Record<string, unknown>>
  readonly author: string
}

/** TU900: stores a message whose turn was stopped before the agent had begun to reply, and that its reply was stopped. */
export async function storeStopped(
  sessions: ChatSessions,
  chat: AppChatRef,
  { content, messageId, userMessageId, state, author }: StoppedMessage,
): Promise<void> {
  const { service } = sessions
  const session = await sessions.getOrCreateLocked(chat)
  const turn = findTurn(session.events, messageId)
  if (turn && turn.events.length > 1) return
  // A reply that was to be generated again was stopped before the earlier one was removed.
  const isKnown = session.events.some((event) => readNotes(event).userMessageId === userMessageId)
  if (!turn && isKnown) return
  const first = turn?.firstEvent ?? createEvent({ author: 'user', invocationId: randomUUID() })
  if (!turn) {
    const actions = createEventActions({ stateDelta: { ...state } })
    const customMetadata = writeNotes({ messageId, userMessageId })
    await service.appendEvent({ session, event: { ...first, content, customMetadata, actions } })
  }
  const { invocationId } = first
  await storePartialReply(service, session, { parts: [], author, invocationId, messageId })
}

/** Whether the newest event of the agent contains the text and reasoning that a turn has streamed, and is stored. */
export function hasStoredReply(
  { events }: Session,
  { newest, lastStored, unstored: { parts } }: RunOutcome,
): boolean {
  if (!newest || newest.id === lastStored || parts.length === 0) return false
  const repeats = textOf(newest.content?.parts ?? []).startsWith(textOf(parts))
  return repeats && events.some(({ id }) => id === newest.id)
}

/** Whether the partial reply of a run was stored before, and something after it could not be. */
export function isKept({ runs }: StoredTurn, { parts }: PartialReply): boolean {
  const last = runs.at(-1) ?? []
  return last.some(
    ({ interrupted, content }) => interrupted && textOf(content?.parts ?? []) === textOf(parts),
  )
}

function textOf(parts: readonly { readonly text?: string }[]): string {
  return parts.map(({ text = '' }) => text).join('')
}

/** Stores the results of approved calls that ran, because ADK drops the results of a stopped or failed run. Returns the stored events. */
export async function storeResults(
  sessions: ChatSessions,
  chat: AppChatRef,
  run: RunState,
): Promise<Event[]> {
  const stored: Event[] = []
  for (const [id, { name, response }] of run.results) {
    const note = run.decided.get(id)
    if (!note) continue
    // First, because the run may end meanwhile, which stores its results too.
    run.results.delete(id)
    const content = { role: 'user', parts: [{ functionResponse: { id, name, response } }] }
    const event = await sessions.append(chat, run.messageId, {
      content,
      notes: { decided: [note] },
    })
    if (event) stored.push(event)
    run.endingsStored.add(id)
  }
  return stored
}

/**
 * AP23: stores what a stopped run has left. Ends the calls of agents that are used as tools, unless they continue on another server.
 * AP850: if the run has not ended, because a callback hangs, only agents end whose decided calls have outcomes.
 */
export async function storeLateResults(
  sessions: ChatSessions,
  chat: AppChatRef,
  { run, isLeft, hasEnded }: LateResults,
): Promise<void> {
  await storeResults(sessions, chat, run)
  if (isLeft) return
  for (const inner of run.inner) {
    if (!hasEnded && !hasOutcomes(inner)) continue
    run.inner.delete(inner)
    await endNested(sessions, chat, { run, stopped: inner })
  }
}

interface LateResults {
  readonly run: RunState
  readonly isLeft: boolean
  readonly hasEnded: boolean
}

/** Whether calls inside an agent were decided, and none of them still runs. */
function hasOutcomes({ all }: RunState): boolean {
  const notes = all.flatMap(({ decided }) => [...decided.values()])
  const isRunning = notes.some(
    ({ state, outcome }) => state === 'approved' && outcome === undefined,
  )
  return notes.length > 0 && !isRunning
}

/** AP405: ends a stopped call of an agent that is used as a tool. Keeps the results of approved calls inside. */
async function endNested(
  sessions: ChatSessions,
  chat: AppChatRef,
  { run, stopped }: { readonly run: RunState; readonly stopped: RunState },
): Promise<void> {
  for (const { nested, results, decided, endingsStored } of stopped.all) {
    for (const [id, { name, response }] of results) {
      const note = decided.get(id)
      if (!nested || !note) continue
      const event = toNestedEnding({ id, name, response }, note)
      const notes = { nested: { session: nested.sessionId, event } }
      await sessions.append(chat, run.messageId, { notes })
      endingsStored.add(id)
    }
    for (const id of endingsStored) run.endingsStored.add(id)
  }
  const { toolCallId: id = '', agent } = stopped.nested ?? {}
  const functionResponse = { id, name: agent?.name ?? '', response: STOPPED }
  const content = { role: 'user', parts: [{ functionResponse }] }
  await sessions.append(chat, run.messageId, { content, notes: {} })
}
