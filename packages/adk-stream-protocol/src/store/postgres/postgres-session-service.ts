import { randomUUID } from 'node:crypto'
import { setImmediate as yieldToEventLoop } from 'node:timers/promises'

import type {
  CompositeSessionKey,
  CreateSessionRequest,
  DeleteSessionRequest,
  Event,
  GetSessionRequest,
  ListSessionsRequest,
  Session,
} from '@google/adk'
import { hasReadableText } from '../../agent/user-message.ts'
import type { Append, ListedSession, ListedSessions, ListPage } from '../stored-session-service.ts'
import {
  checkTimestamp,
  decodeState,
  encodeDelta,
  encodeState,
  lockLost,
  mergeScopes,
  noSuchEvent,
  replayDeltas,
  sessionGone,
  StoredSessionService,
  toSession,
  withoutTemp,
} from '../stored-session-service.ts'
import type { HeldLock, LockedChats, SessionKey } from '../keys.ts'
import { checkName, isStorable, sessionKey } from '../keys.ts'
import type { SessionCache, SessionHistory } from '../session-history.ts'
import {
  addToHistory,
  continueHistory,
  shareEvents,
  decodeEvent,
  encodeEvent,
} from '../session-history.ts'
import type {
  FirstMessageReader,
  LockedSessionReader,
  RewindableSessionService,
  RewindRequest,
} from '../store.ts'
import type { Database, RunStatement } from './database.ts'
import { violatedConstraint } from './postgres-errors.ts'
import type { AppendShape, SessionSql } from './session-sql.ts'
import { PAGE_EVENTS, SCOPES, sessionSql, readState, toColumns } from './session-sql.ts'

export interface PostgresSessionServiceOptions {
  /** The quoted name of the schema. */
  readonly schema: string
  readonly cache: SessionCache<string>
  /** The locks of this process, shared with the approval store. */
  readonly held: LockedChats
  /** Returns the database with which sessions are read. */
  readonly reads: () => Database
}

/** Stores ADK sessions in PostgreSQL. Each append is one statement. Its cost does not depend on the length of the history. */
export class PostgresSessionService
  extends StoredSessionService
  implements RewindableSessionService, FirstMessageReader, LockedSessionReader
{
  readonly #database: Database
  readonly #sql: SessionSql
  readonly #cache: SessionCache<string>
  readonly #held: LockedChats
  /** Orders the appends of this process to a session. */
  readonly #appends = queueByKey()
  /** Orders the reads of a session, which extend one cached history. */
  readonly #reads = queueByKey()
  /** Sessions that were read when their chats were locked, until they are used. Undefined if the rows did not suffice. */
  readonly #locked = new Map<string, Promise<ReadSession | undefined>>()
  readonly #readsFrom: () => Database
  readonly #appendSql = new Map<string, string>()

  constructor(database: Database, options: PostgresSessionServiceOptions) {
    const { schema, cache, held, reads } = options
    super()
    this.#database = database
    this.#readsFrom = reads
    this.#sql = sessionSql(schema)
    this.#cache = cache
    this.#held = held
  }

  override async getSession(request: GetSessionRequest): Promise<Session | undefined> {
    const key = sessionKey(request)
    return this.#reads(JSON.stringify(key), () => this.#read(request, key))
  }

  async getLockedSession(request: CompositeSessionKey): Promise<Session | undefined> {
    const cacheKey = JSON.stringify(sessionKey(request))
    const locked = this.#locked.get(cacheKey)
    this.#locked.delete(cacheKey)
    const read = await locked
    return read ? read.session : this.getSession(request)
  }

  async getOrCreateLockedSession(request: CompositeSessionKey): Promise<Session> {
    return (await this.getLockedSession(request)) ?? this.insertOrGet(request)
  }

  /** Returns how much of a session is cached. A statement that reads the session needs to return only the rest. */
  positionOf(key: SessionKey): ReadPosition {
    const { epoch = -1, seq = 0 } = this.#cache.get(JSON.stringify(key)) ?? {}
    return { epoch, seq }
  }

  /** Keeps what was read of a session while its chat was locked. `rows` begin at `position`. */
  keepLocked(
    request: CompositeSessionKey,
    position: ReadPosition,
    rows: readonly SessionRow[],
  ): void {
    const cacheKey = JSON.stringify(sessionKey(request))
    const read = this.#reads(cacheKey, async () => {
      const history = this.#cache.get(cacheKey)
      const { epoch = -1, seq = 0 } = history ?? {}
      // Another read may have extended the history, or the cache may have dropped it.
      if (epoch !== position.epoch || seq !== position.seq) return undefined
      return (await this.#takeRows(request, history, rows)).read
    })
    this.#locked.set(
      cacheKey,
      // If the rows cannot be read, the next read fails too, and reports it.
      read.catch(() => undefined),
    )
  }

  /** Forgets what was read of a session while its chat was locked. */
  dropLocked(key: SessionKey): void {
    this.#locked.delete(JSON.stringify(key))
  }

  protected override async list(
    { appName, userId, order }: ListSessionsRequest,
    { limit, offset }: ListPage,
  ): Promise<ListedSessions> {
    const values: unknown[] = [checkName('appName', appName), limit ?? null, offset]
    if (userId !== undefined) values.push(checkName('userId', userId))
    const text = this.#sql.list(userId !== undefined, order)
    const rows = await this.#database.query<ListedRow>(text, values)
    return {
      total: rows[0]?.total ?? 0,
      rows: rows.filter((row): row is ListedRow & ListedSession => row.session_id !== null),
    }
  }

  override async deleteSession(request: DeleteSessionRequest): Promise<void> {
    const key = sessionKey(request)
    await this.#database.query(this.#sql.delete, key)
    this.#cache.drop(JSON.stringify(key))
    this.dropLocked(key)
  }

  async readFirstMessage(request: CompositeSessionKey): Promise<Event | undefined> {
    const key = sessionKey(request)
    for (let after = 0; ;) {
      const rows = await this.#database.query<Pick<EventRow, 'seq' | 'data'>>(
        this.#sql.findUserEvents,
        [...key, after],
      )
      for (const { seq, data } of rows) {
        after = seq
        const event = decodeEvent(data)
        if (event.author === 'user' && hasReadableText(event.content)) return event
      }
      if (rows.length === 0) return undefined
    }
  }

  async rewind(request: RewindRequest): Promise<void> {
    const key = sessionKey(request)
    const eventId = checkName('eventId', request.eventId)
    const keep = (request.keep ?? []).filter(isStorable)
    const rewound = this.#database.transaction(async (run, attempt) => {
      await this.#checkLock(run, key)
      const [row] = await run<RewindRow>(this.#sql.lockSession, key)
      if (row === undefined) throw sessionGone(request.sessionId)
      const [event] = await run<{ seq: number }>(this.#sql.findEvent, [row.session, eventId])
      // An earlier attempt may have been committed although its acknowledgement was lost.
      if (event === undefined && attempt > 0) return
      if (event === undefined) throw noSuchEvent(eventId)
      await run(this.#sql.deleteEventsFrom, [row.session, event.seq, keep])
      await this.#restore(run, row)
    })
    await rewound.finally(() => this.dropLocked(key))
  }

  protected override async insert(request: CreateSessionRequest): Promise<Session | undefined> {
    const key = { ...request, sessionId: request.sessionId || randomUUID() }
    const state = withoutTemp(request.state)
    const initial = encodeState(state)
    const [ids, keys, values] = toColumns(Object.entries(state))
    const row = [...sessionKey(key), Date.now(), initial, randomUUID(), ids, keys, values]
    const [view] = await this.#database.query<Omit<SessionView, 'state'>>(this.#sql.insert, row)
    return view && viewSession(key, { ...view, state: null }, { events: [], initial })
  }

  protected override async append(append: Append): Promise<boolean> {
    const { id: sessionId, appName, userId } = append.session
    const key = sessionKey({ appName, userId, sessionId })
    const { event } = append
    const rest = [
      checkName('event.id', event.id),
      checkTimestamp(event.timestamp),
      callIds(event),
      encodeDelta(append.delta.session),
      encodeEvent(event),
    ]
    const scopes = SCOPES.filter((scope) => append.delta[scope].length > 0)
    const state = scopes.flatMap((scope) => toColumns(append.delta[scope]))
    const isExpected = append.calls.length > 0
    return this.#appends(JSON.stringify(key), async () => {
      for (let isReplacement = false; ;) {
        const epoch = await this.#findEpoch(key, append.calls)
        if (epoch === undefined) return false
        // Read for each attempt: this process may have unlocked the chat, or locked it again, since the last one.
        const fence = this.#held.fenceOf(key, { isResponse: isExpected })
        const tokens = fence.map(({ token }) => token)
        const values = [...key, tokens, ...rest, ...(epoch === null ? [] : [epoch]), ...state]
        const shape = { isFenced: fence.length > 0, isExpected, isReplacement, scopes }
        const result = await this.#tryAppend(shape, values).finally(() => this.dropLocked(key))
        if (result === 'stored') return true
        if (result === 'known') isReplacement = true
        else {
          await this.#database.retry((run) => this.#explain(run, key, fence))
          isReplacement = false
        }
      }
    })
  }

  /** Runs the statement of an append. Returns `known` if the session has an event with this id. */
  async #tryAppend(shape: AppendShape, values: unknown[]): Promise<'stored' | 'known' | 'refused'> {
    const key = JSON.stringify(shape)
    const text = this.#appendSql.get(key) ?? this.#sql.append(shape)
    this.#appendSql.set(key, text)
    try {
      return (await this.#database.query(text, values)).length > 0 ? 'stored' : 'refused'
    } catch (error) {
      if (error instanceof Error && violatedConstraint(error.cause) === 'events_id') return 'known'
      throw error
    }
  }

  /** Returns the epoch in which the session contains all of these calls, null if there are none, and undefined if one is missing. */
  async #findEpoch(key: SessionKey, calls: readonly string[]): Promise<number | null | undefined> {
    if (calls.length === 0) return null
    const values = [...key, calls.filter(isStorable)]
    const rows = await this.#database.query<{ epoch: number; complete: boolean }>(
      this.#sql.findCalls,
      values,
    )
    const isComplete = rows[0]?.complete === true && calls.every(isStorable)
    return isComplete ? rows[0]?.epoch : undefined
  }

  /** Throws the reason why an append was refused. Returns if there is none any more. */
  async #explain(run: RunStatement, key: SessionKey, fence: readonly HeldLock[]): Promise<void> {
    await this.#checkLock(run, key, fence)
    const rows = await run(this.#sql.findCalls, [...key, []])
    if (rows.length === 0) throw sessionGone(key[2])
  }

  /** Throws if another process has locked the chat since this process did. */
  async #checkLock(
    run: RunStatement,
    key: SessionKey,
    fence: readonly HeldLock[] = this.#held.fenceOf(key),
  ): Promise<void> {
    if (fence.length === 0) return
    const rows = await run<LockRow>(this.#sql.findLocks, key)
    const isLost = (lock: HeldLock): boolean => {
      const row = rows.find((each) => each.app_name === lock.key[0])
      if (row?.token === lock.token) return false
      // If this process has released the lock since the fence was read, the lock is lost only if another one has taken it.
      return this.#held.holds(lock) || (row !== undefined && row.worker !== lock.worker)
    }
    if (fence.some(isLost)) throw lockLost()
  }

  async #read(request: GetSessionRequest, key: SessionKey): Promise<Session | undefined> {
    let history: SessionHistory | undefined = this.#cache.get(JSON.stringify(key))
    for (;;) {
      const values = [...key, history?.epoch ?? -1, history?.seq ?? 0]
      const rows = await this.#readsFrom().query<SessionRow>(this.#sql.read, values)
      const taken = await this.#takeRows(request, history, rows)
      if (taken.read) return taken.read.session
      history = taken.history
    }
  }

  /** Extends a history by the rows that were read. Returns no session if there are more rows. */
  async #takeRows(
    request: GetSessionRequest,
    known: SessionHistory | undefined,
    rows: readonly SessionRow[],
  ): Promise<{ readonly history?: SessionHistory; readonly read?: ReadSession }> {
    const view = rows.find((row): row is SessionView => row.epoch !== null)
    if (view === undefined) return { read: { session: undefined } }
    const history = continueHistory(view.epoch, [known])
    const events = rows.filter((row): row is EventRow => row.epoch === null)
    await extendHistory(history, events)
    // The numbers of events may have gaps.
    const isComplete = events.length < PAGE_EVENTS
    if (isComplete) history.seq = view.seq
    this.#cache.keep(JSON.stringify(sessionKey(request)), history)
    if (!isComplete) return { history }
    return { read: { session: viewSession(request, view, { events: shareEvents(history) }) } }
  }

  async #restore(run: RunStatement, row: RewindRow): Promise<void> {
    const { session, created_at: createdAt, initial_state: initial } = row
    const deltas = await run<{ delta: string }>(this.#sql.readDeltas, [session])
    const state = replayDeltas(initial, deltas)
    const [last] = await run<{ timestamp: number }>(this.#sql.readLastTimestamp, [session])
    const [ids, keys, values] = toColumns(Object.entries(state))
    await run(this.#sql.clearState, [session])
    await run(this.#sql.putState, [session, ids, keys, values])
    await run(this.#sql.touchSession, [session, last?.timestamp ?? createdAt])
  }
}

interface SessionView {
  readonly seq: number
  readonly epoch: number
  readonly updated_at: number
  readonly state: string | null
  readonly app_state: string | null
  readonly user_state: string | null
}

interface EventRow {
  /** Null distinguishes an event from the session itself. */
  readonly epoch: null
  readonly seq: number
  readonly data: string
}

/** A row of a session: the session itself, or one of its events. */
export type SessionRow = SessionView | EventRow

/** How much of a session is cached. */
export interface ReadPosition {
  readonly epoch: number
  readonly seq: number
}

/** A session that was read. Undefined if it does not exist. */
interface ReadSession {
  readonly session: Session | undefined
}

/** The only row of an empty page has null in the columns of its session. */
type ListedRow = { readonly total: number } & (ListedSession | { readonly session_id: null })

interface LockRow {
  readonly app_name: string
  readonly worker: string
  readonly token: string
}

interface RewindRow {
  readonly session: number
  readonly created_at: number
  readonly initial_state: string
}

/** How long to decode events without yielding to the event loop, in ms. */
const SLICE_MS = 8

async function extendHistory(
  history: SessionHistory,
  rows: readonly Pick<EventRow, 'seq' | 'data'>[],
): Promise<void> {
  let until = performance.now() + SLICE_MS
  for (const row of rows) {
    addToHistory(history, row)
    if (performance.now() <= until) continue
    await yieldToEventLoop()
    until = performance.now() + SLICE_MS
  }
}

function viewSession(
  request: GetSessionRequest,
  view: Pick<SessionView, 'updated_at' | 'state' | 'app_state' | 'user_state'>,
  { events, initial }: { events: Event[]; initial?: string },
): Session {
  const own = initial === undefined ? readState(view.state) : decodeState(initial)
  const state = mergeScopes(own, readState(view.app_state), readState(view.user_state))
  return toSession(request, { state, updatedAt: view.updated_at, events })
}

/** Returns the ids of the function calls of an event, or null if it has none. */
function callIds({ content }: Event): string[] | null {
  const ids = (content?.parts ?? []).flatMap(({ functionCall }) =>
    functionCall?.id !== undefined && isStorable(functionCall.id) ? [functionCall.id] : [],
  )
  return ids.length === 0 ? null : ids
}

/** Returns a function that runs work with the same key one after the other, in the order of the calls. */
export function queueByKey() {
  const last = new Map<string, Promise<unknown>>()
  return async <Result>(key: string, work: () => Promise<Result>): Promise<Result> => {
    const before = last.get(key)
    const result = before === undefined ? work() : before.then(work)
    const settled = result.catch(() => undefined)
    last.set(key, settled)
    try {
      return await result
    } finally {
      if (last.get(key) === settled) last.delete(key)
    }
  }
}
