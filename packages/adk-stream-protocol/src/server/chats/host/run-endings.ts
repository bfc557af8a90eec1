import { randomUUID } from 'node:crypto'

import type { AppendEventRequest, BaseSessionService, Event, Session } from '@google/adk'
import { createEvent, createEventActions } from '@google/adk'
import type { Content } from '@google/genai'

import { intercept } from '../../../agent/adk-workarounds/session-services.ts'
import { STOPPED } from '../../../agent/call-responses.ts'
import { writeNotes } from '../../../agent/events/event-notes.ts'
import {
  type PartialReply,
  canBeContinued,
  findUnstoredParts,
  respondToDanglingCalls,
  storePartialReply,
} from '../../../agent/tree/interrupted-turn.ts'
import { createFailureEvent } from '../../../agent/translate/failure-event.ts'
import { type StoredTurn, findTurn, splitTurns } from '../../../agent/history/stored-turns.ts'
import { chatOf } from '../../../agent/tool-call.ts'
import type { Ledger } from '../../../approvals/ledger.ts'
import type { RunState } from '../../../calls/run-state.ts'
import type { ProtocolError } from '../../../protocol/errors.ts'
import { type AppChatRef, toChatKey } from '../../../shared/chat-ref.ts'
import { keepNewest } from '../../../shared/collections.ts'
import type { RunOutcome } from '../../../turns/run-turn.ts'
import type { TurnRegistry } from '../../../turns/turn-registry.ts'
import { isClosing } from '../../../turns/turn.ts'
import { StoreError } from '../../../store/store-error.ts'
import { findStoreError, isStoreFailure, readError } from '../../../store/read-error.ts'
import type { ChatSessions } from '../chat-sessions.ts'
import { readCallState } from './stored-calls.ts'

type OnLateResults = (() => void) | undefined

/** What ADK stores during the runs of a chat. */
interface Appends {
  /** The newest event of the agent with content that ADK has tried to store. */
  last: Event | undefined
  readonly pending: Set<Promise<unknown>>
}

const MAX_CHATS = 10_000

/** What a turn has left to store under the lock of its chat. */
interface Unsettled {
  readonly chat: AppChatRef
  readonly settle: () => Promise<void>
}

/** A run that has ended, with its session still to be repaired. */
interface EndedRun {
  readonly chat: AppChatRef
  readonly outcome: RunOutcome
  /** Whether another server may continue its turn. */
  readonly isLeft: boolean
}

const MAX_UNSETTLED = 1_000

/** The runs that have not ended. Stores what ADK leaves unstored if a run is stopped or fails. */
export class RunEndings {
  readonly #sessions: ChatSessions
  readonly #ledger: Ledger
  /** The runs of each chat that have not ended, even if their turns have. Each value is called when results are stored after the turn was stopped. */
  readonly #runs = new Map<string, Map<RunState, OnLateResults>>()
  /**
   * A turn that is stopped does not wait for its run, so it may not know that the whole reply is being stored. The streamed text must
   * then not be stored as well.
   */
  readonly #appends = new Map<string, Appends>()
  /** TU871, TU1990: what could not be stored at the end of a turn, because the store failed. By the id of the reply. */
  readonly #unsettled = new Map<string, Unsettled>()

  constructor(sessions: ChatSessions, ledger: Ledger) {
    this.#sessions = sessions
    this.#ledger = ledger
  }

  /** Whether a run with a decided call is active, even if its turn was stopped. */
  get hasDecidedRuns(): boolean {
    return [...this.#runs.values()].some((runs) =>
      [...runs.keys()].some((run) => run.all.some(({ decided }) => decided.size > 0)),
    )
  }

  /** Returns the session service for a runner. */
  observe(sessions: BaseSessionService): BaseSessionService {
    const appendEvent = async (request: AppendEventRequest): Promise<Event> => {
      const { event } = request
      if (event.partial) return sessions.appendEvent(request)
      const appends = this.#appendsOf(chatOf(request.session))
      const isOfAgent = event.author !== 'user'
      if (isOfAgent && event.content) appends.last = event
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

  /** Adds a run that starts. The caller must end it. */
  add(chat: AppChatRef, run: RunState, onLateResults: OnLateResults): void {
    const key = toChatKey(chat)
    const runs = this.#runs.get(key) ?? new Map<RunState, OnLateResults>()
    this.#runs.set(key, runs.set(run, onLateResults))
  }

  /** Returns the error that ended a run, and the results of approved calls that had run before. */
  async fail(
    chat: AppChatRef,
    run: RunState,
    { signal, thrown }: { readonly signal: AbortSignal; readonly thrown: unknown },
  ): Promise<{ readonly error: ProtocolError; readonly results: readonly Event[] }> {
    // ADK called these tools, and a callback of the application threw before they could run.
    if (!signal.aborted) run.abandonCalls(this.#ledger)
    const loss = run.loss ?? (await this.#ledger.locks.findLoss(chat, thrown))
    const error = readError(loss ?? findStoreError(thrown))
    if (signal.aborted || error.code === 'turn-lost') return { error, results: [] }
    // AP802: a callback after the calls may have thrown.
    const results = await storeResults(this.#sessions, chat, run).catch((): Event[] => [])
    return { error, results }
  }

  /** Removes a run that has ended. Stores the results that it left if it was stopped, and records which outcomes the conversation shows. */
  async end(chat: AppChatRef, run: RunState, signal: AbortSignal): Promise<void> {
    // AP661: another server checks whether the agent has continued with the outcome. The agents inside continue there.
    const isLeft = isClosing(signal) && run.cause === 'responses'
    try {
      if (signal.aborted)
        await storeLateResults(this.#sessions, chat, { run, isLeft, hasEnded: true })
      if (!isLeft) await this.#ledger.markReported(chat, [...run.endingsStored])
      await this.#cancelUnasked(run)
    } finally {
      const onLateResults = this.#remove(chat, run)
      if (signal.aborted && run.endingsStored.size > 0) onLateResults?.()
    }
  }

  /** AP920: cancels the approvals of a run that the conversation does not contain. No turn would resume with a decision. */
  async #cancelUnasked(run: RunState): Promise<void> {
    for (const id of run.requested) {
      const approval = await this.#ledger.get(id)
      // ADK does not yield an event that it has stored while the run was stopped.
      const isAsked =
        approval && (await readCallState({ sessions: this.#sessions }, approval)) === 'asked'
      if (!isAsked) await this.#ledger.cancel(id, NOT_ASKED)
    }
  }

  /** Repairs the session after a run for the next turn. If the store fails, `settleLeft` tries again. */
  async settle(run: EndedRun): Promise<void> {
    try {
      await this.#settle(run)
    } catch (error) {
      const { chat, outcome } = run
      const unsettled = { chat, settle: () => this.#settleLate(run) }
      if (isStoreFailure(readError(error).code))
        this.#keepUnsettled(outcome.unstored.messageId, unsettled)
      throw error
    }
  }

  /** TU1990: stores a message that has replaced stored ones, in a locked chat. If the store fails, `settleLeft` tries again. */
  async storeReplacement(chat: AppChatRef, message: ReplacingMessage): Promise<void> {
    try {
      await storeReplacement(this.#sessions, chat, message)
    } catch (error) {
      if (isStoreFailure(readError(error).code)) this.storeReplacementLater(chat, message)
      throw error
    }
  }

  /** TU1990: lets `settleLeft` store a message that has replaced stored ones. */
  storeReplacementLater(chat: AppChatRef, message: ReplacingMessage): void {
    const settle = () => storeReplacement(this.#sessions, chat, message)
    this.#keepUnsettled(message.messageId, { chat, settle })
  }

  /**
   * Stores what earlier turns have left, under the lock of their chats. What belongs to chats that are not free, or to a principal with too
   * many turns, follows later. With `only`, stores only what the turn of this reply has left.
   */
  async settleLeft(
    turns: Pick<TurnRegistry, 'start'>,
    onError: (error: unknown) => void,
    only?: string,
  ): Promise<void> {
    // What fails again is added for the next time, not for this loop.
    const left = [...this.#unsettled].filter(([id]) => only === undefined || id === only)
    for (const [messageId, unsettled] of left) {
      this.#unsettled.delete(messageId)
      const { principalId, chatId } = unsettled.chat
      try {
        const { settled } = await turns.start({ principalId, chatId }, messageId, {
          onlyIfFree: true,
          background: true,
          isReplay: true,
          prepare: unsettled.settle,
          run: async ({ log }) => log.end(),
        })
        await settled
      } catch (error) {
        const { code } = readError(error)
        const isNotFree = code === 'turn-running' || code === 'too-many-turns'
        if (isNotFree || isStoreFailure(code)) this.#keepUnsettled(messageId, unsettled)
        else onError(error)
      }
    }
  }

  /** Repairs the session after an earlier run of a message, before the message continues under the lock of its chat. */
  async settleBefore(messageId: string): Promise<void> {
    const unsettled = this.#unsettled.get(messageId)
    if (!unsettled) return
    await unsettled.settle()
    this.#unsettled.delete(messageId)
  }

  async #settle(run: EndedRun): Promise<void> {
    const { chat, outcome } = run
    if (outcome.end !== 'completed') return this.#repair(run)
    this.#appends.delete(toChatKey(chat))
    // Loads the session into the cache now, before a response arrives that a person waits for.
    if (outcome.paused) await this.#sessions.get(chat)
  }

  /** Settles a run whose session could not be repaired at first. If a newer message was stored meanwhile, stores only the error. */
  async #settleLate({ chat, outcome, isLeft }: EndedRun): Promise<void> {
    const session = await this.#sessions.get(chat)
    if (!session) return
    const { unstored } = outcome
    const turns = splitTurns(session.events)
    const turn = turns.find(({ messageId }) => messageId === unstored.messageId)
    if (turn && isContinued(turn, outcome)) return
    if (!turn || turn !== turns.at(-1)) return this.#storeFailure(session, outcome)
    const parts = hasStoredReply(session, outcome) ? unstored.parts : findRest(turn, outcome)
    await this.#settle({ chat, outcome: { ...outcome, unstored: { ...unstored, parts } }, isLeft })
  }

  #keepUnsettled(messageId: string, unsettled: Unsettled): void {
    this.#unsettled.set(messageId, unsettled)
    keepNewest(this.#unsettled, MAX_UNSETTLED)
  }

  /** Stores what a run that was stopped or has failed left unstored. */
  async #repair({ chat, outcome, isLeft }: EndedRun): Promise<void> {
    const { end, unstored } = outcome
    outcome.newest ??= await this.#takeNewest(chat)
    if (end === 'stopped') await this.#storeUntaken(chat, unstored.messageId, isLeft)
    const session = await this.#sessions.get(chat)
    if (!session) return
    const { service } = this.#sessions
    const turn = findTurn(session.events, unstored.messageId)
    const isContinuable = turn !== undefined && canBeContinued(turn)
    // TU330: ADK may have stored the whole reply when the turn was stopped.
    const isStored = hasStoredReply(session, outcome)
    const parts = isStored ? [] : unstored.parts
    // TU1983: the id of the whole reply, which the database may still commit.
    const id = isStored ? undefined : findReply(outcome)?.id
    const isMarked = end === 'stopped' && unstored.invocationId !== '' && !(isLeft && isContinuable)
    if (isMarked || parts.length > 0)
      await storePartialReply(service, session, { ...unstored, parts, id })
    // TU871: of a reply without text, only an error remains, unless the turn continues later.
    if (parts.length > 0 || !isContinuable) await this.#storeFailure(session, outcome)
    await respondToDanglingCalls(service, session)
  }

  /** AP802: stores the results of a stopped run that has not ended, because a callback of the application hangs after its calls. */
  async #storeUntaken(chat: AppChatRef, messageId: string, isLeft: boolean): Promise<void> {
    for (const [run, onLateResults] of this.#runs.get(toChatKey(chat)) ?? []) {
      if (run.messageId !== messageId) continue
      const before = run.endingsStored.size
      await storeLateResults(this.#sessions, chat, { run, isLeft, hasEnded: false })
      if (run.endingsStored.size === before) continue
      if (!isLeft) await this.#ledger.markReported(chat, [...run.endingsStored])
      onLateResults?.()
    }
  }

  /** TU871: stores the error of a reply that could not be stored at first. ADK stores the other errors. */
  async #storeFailure(session: Session, outcome: RunOutcome): Promise<void> {
    const { state, unstored } = outcome
    const { error } = state
    if (!error || !isStoreFailure(error.code)) return
    // If the person's message is not stored either, the error would be read as that of the message before.
    if (!findTurn(session.events, unstored.messageId)) return
    // TU1065: another server may have streamed the reply as complete.
    if (hasStoredReply(session, outcome)) return
    const event = createFailureEvent(unstored.messageId, unstored.author, error)
    await this.#sessions.service.appendEvent({ session, event })
  }

  /** Waits until nothing is being stored in a chat. Returns the newest event of the agent that ADK has tried to store since the last call. */
  async #takeNewest(chat: AppChatRef): Promise<Event | undefined> {
    const key = toChatKey(chat)
    const appends = this.#appends.get(key)
    if (!appends) return undefined
    while (appends.pending.size > 0) await Promise.allSettled(appends.pending)
    this.#appends.delete(key)
    return appends.last
  }

  #appendsOf(chat: AppChatRef): Appends {
    const key = toChatKey(chat)
    const known = this.#appends.get(key)
    if (known) return known
    const appends: Appends = { last: undefined, pending: new Set() }
    this.#appends.set(key, appends)
    keepNewest(this.#appends, MAX_CHATS)
    return appends
  }

  #remove(chat: AppChatRef, run: RunState): OnLateResults {
    const key = toChatKey(chat)
    const runs = this.#runs.get(key)
    const onLateResults = runs?.get(run)
    runs?.delete(run)
    if (runs?.size === 0) this.#runs.delete(key)
    return onLateResults
  }
}

const NOT_ASKED = 'its turn ended before the request was part of the conversation'

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

/** A message that has no reply, with the id that its reply would have had. */
export interface UnansweredMessage {
  readonly content: Content
  readonly messageId: string
  readonly userMessageId: string
  /** Session state to set with the message. */
  readonly state: Readonly<Record<string, unknown>>
  readonly author: string
  /** Why it has none. Undefined if its turn was stopped. */
  readonly error?: ProtocolError | undefined
}

/** A message that has replaced stored ones. */
export interface ReplacingMessage extends UnansweredMessage {
  /** The last reply before the messages that were removed. Undefined if there is none. */
  readonly follows: string | undefined
}

/** Stores a message that has replaced stored ones, unless it, or another one in its place, is stored. */
async function storeReplacement(
  sessions: ChatSessions,
  chat: AppChatRef,
  message: ReplacingMessage,
): Promise<void> {
  const session = await sessions.get(chat)
  const isMissing = session && splitTurns(session.events).at(-1)?.messageId === message.follows
  if (isMissing) await storeUnanswered(sessions, chat, message)
}

/** TU900: stores a message whose turn ended before anything of the reply was streamed, and how it ended. */
export async function storeUnanswered(
  sessions: ChatSessions,
  chat: AppChatRef,
  { content, messageId, userMessageId, state, author, error }: UnansweredMessage,
): Promise<void> {
  const { service } = sessions
  const session = await sessions.getOrCreateLocked(chat)
  const turn = findTurn(session.events, messageId)
  // What was streamed is stored with a mark.
  if (turn?.events.some(({ interrupted }) => interrupted)) return
  const first = turn?.firstEvent ?? createEvent({ author: 'user', invocationId: randomUUID() })
  if (!turn) {
    const actions = createEventActions({ stateDelta: { ...state } })
    const customMetadata = writeNotes({ messageId, userMessageId })
    await service.appendEvent({ session, event: { ...first, content, customMetadata, actions } })
  }
  const { invocationId } = first
  if (error)
    await service.appendEvent({ session, event: createFailureEvent(messageId, author, error) })
  else await storePartialReply(service, session, { parts: [], author, invocationId, messageId })
}

/** Whether the newest event of the agent contains the text and reasoning that a turn has streamed, and is stored. */
function hasStoredReply({ events }: Session, outcome: RunOutcome): boolean {
  const reply = findReply(outcome)
  return reply !== undefined && events.some((event) => event.id === reply.id && !event.interrupted)
}

/** Returns the newest event of the agent if it contains the text and reasoning that a turn has streamed. ADK has tried to store it. */
function findReply({ newest, lastStored, unstored: { parts } }: RunOutcome): Event | undefined {
  if (!newest || newest.id === lastStored || parts.length === 0) return undefined
  return textOf(newest.content?.parts ?? []).startsWith(textOf(parts)) ? newest : undefined
}

/** The last events of a turn, without those that a run has received. */
function eventsAfter({ runs }: StoredTurn, { lastStored }: RunOutcome): Event[] {
  const events = runs.at(-1) ?? []
  return events.slice(events.findLastIndex(({ id }) => id === lastStored) + 1)
}

/** Whether another server has continued the turn of a run, and its agent has replied. */
function isContinued(turn: StoredTurn, outcome: RunOutcome): boolean {
  return eventsAfter(turn, outcome).some(
    ({ author, interrupted, invocationId, content }) =>
      author !== 'user' &&
      !interrupted &&
      invocationId !== outcome.unstored.invocationId &&
      textOf(content?.parts ?? []) !== '',
  )
}

/** What a run has still to store of its reply: another server may have stored the beginning, or this one before the store failed again. */
function findRest(turn: StoredTurn, outcome: RunOutcome): PartialReply['parts'] {
  const stored = eventsAfter(turn, outcome).flatMap(({ interrupted, content }) =>
    interrupted ? (content?.parts ?? []) : [],
  )
  return findUnstoredParts(outcome.unstored.parts, stored)
}

function textOf(parts: readonly { readonly text?: string }[]): string {
  return parts.map(({ text = '' }) => text).join('')
}

/** Stores the results of approved calls that ran, because ADK drops the results of a stopped or failed run. Returns the stored events. */
async function storeResults(
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

interface LateResults {
  readonly run: RunState
  readonly isLeft: boolean
  readonly hasEnded: boolean
}

/**
 * AP23: stores what a stopped run has left. Ends the calls of agents that are used as tools, unless they continue on another server.
 * AP802: if the run has not ended, because a callback hangs, only agents end whose decided calls have outcomes.
 */
async function storeLateResults(
  sessions: ChatSessions,
  chat: AppChatRef,
  { run, isLeft, hasEnded }: LateResults,
): Promise<void> {
  await storeResults(sessions, chat, run)
  if (isLeft) return
  for (const inner of run.inner) {
    if (!hasEnded && !hasOutcomes(inner)) continue
    run.inner.delete(inner)
    await endStopped(sessions, chat, { run, stopped: inner })
  }
}

/** Whether calls inside an agent were decided, and none of them still runs. */
function hasOutcomes({ all }: RunState): boolean {
  const notes = all.flatMap(({ decided }) => [...decided.values()])
  const isRunning = notes.some(
    ({ state, outcome }) => state === 'approved' && outcome === undefined,
  )
  return notes.length > 0 && !isRunning
}

/** AP405: ends a call whose agent was stopped. Keeps the results of approved calls inside. */
async function endStopped(
  sessions: ChatSessions,
  chat: AppChatRef,
  { run, stopped }: { readonly run: RunState; readonly stopped: RunState },
): Promise<void> {
  const { call, results } = stopped.describeStopped() ?? {}
  for (const [id, notes] of results ?? []) {
    await sessions.append(chat, run.messageId, { notes })
    run.endingsStored.add(id)
  }
  for (const { endingsStored } of stopped.all)
    for (const id of endingsStored) run.endingsStored.add(id)
  const parts = [{ functionResponse: { ...call, response: STOPPED } }]
  await sessions.append(chat, run.messageId, { content: { role: 'user', parts }, notes: {} })
}
