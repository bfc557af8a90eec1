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
import type {
  Append,
  ListedSession,
  ListedSessions,
  ListPage,
  ScopedDelta,
  StateWrites,
} from '../stored-session-service.ts'
import {
  applyDelta,
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
import type { SessionCache, SessionHistory } from '../session-history.ts'
import {
  addToHistory,
  continueHistory,
  shareEvents,
  decodeEvent,
  encodeEvent,
} from '../session-history.ts'
import type { HeldLock, SessionKey } from '../keys.ts'
import { checkName, joinKey, LockedChats, sessionKey } from '../keys.ts'
import type {
  ChangeTagReader,
  FirstMessageReader,
  LockedSessionReader,
  RewindableSessionService,
  RewindRequest,
} from '../store.ts'
import type { Connection, SqlValue, Statement } from './connection.ts'
import {
  type ListStatements,
  type MissingView,
  prepareSessionStatements,
  type RewindRow,
  type SessionRow,
  type SessionStatements,
  type SessionView,
} from './session-statements.ts'

/**
 * Stores ADK sessions in SQLite. Each append is one transaction that survives a crash of the process. Its cost does
 * not depend on the length of the history.
 */
export class SqliteSessionService
  extends StoredSessionService
  implements RewindableSessionService, FirstMessageReader, LockedSessionReader, ChangeTagReader
{
  readonly #connection: Connection
  readonly #statements: SessionStatements
  readonly #cache: SessionCache
  readonly #held: LockedChats
  /** Sessions that were read when their chats were locked, until they are used. */
  readonly #locked = new Map<string, ReadSession>()
  /** New sessions of locked chats. The first append stores the session with its event. */
  readonly #unstored = new Set<string>()

  constructor(connection: Connection, cache: SessionCache, held = new LockedChats()) {
    super()
    this.#held = held
    this.#connection = connection
    this.#statements = prepareSessionStatements(connection)
    this.#cache = cache
  }

  override async getSession(request: GetSessionRequest): Promise<Session | undefined> {
    return this.#toExisting(request, await this.#read(request))
  }

  async getLockedSession(request: CompositeSessionKey): Promise<Session | undefined> {
    return this.#toExisting(request, this.#takeLocked(request) ?? (await this.#read(request)))
  }

  async getOrCreateLockedSession(request: CompositeSessionKey): Promise<Session> {
    const { session, isStored } = this.#takeLocked(request) ?? (await this.#read(request))
    if (isStored) return session
    const key = sessionKey(request)
    if (this.#held.lockOf(key) === undefined) return this.insertOrGet(request)
    this.#unstored.add(joinKey(key))
    return session
  }

  /** Reads the session of a chat that was just locked, if one query is enough: the session is new, or its events are cached. */
  readLocked(request: CompositeSessionKey): void {
    const read = this.#readPage(request, { cachedOnly: true })
    if (read !== 'incomplete') this.#locked.set(joinKey(sessionKey(request)), read)
  }

  /** Forgets what belongs to the lock of a chat. */
  dropLocked(key: SessionKey): void {
    this.#locked.delete(joinKey(key))
    this.#unstored.delete(joinKey(key))
  }

  /** Returns a session that is stored, or that this process has created and will store with its first event. */
  #toExisting(request: GetSessionRequest, read: ReadSession): Session | undefined {
    const isCreated = read.isStored || this.#unstored.has(joinKey(sessionKey(request)))
    return isCreated ? read.session : undefined
  }

  #takeLocked(request: CompositeSessionKey): ReadSession | undefined {
    const key = joinKey(sessionKey(request))
    const locked = this.#locked.get(key)
    this.#locked.delete(key)
    return locked
  }

  protected override async list(
    { appName, userId, order }: ListSessionsRequest,
    { limit, offset }: ListPage,
  ): Promise<ListedSessions> {
    const scope: SqlValue[] = [checkName('appName', appName)]
    if (userId !== undefined) scope.push(checkName('userId', userId))
    const list = userId === undefined ? this.#statements.listOfApp : this.#statements.listOfUser
    return this.#connection.read(() => ({
      total: list.count.rows(...scope)[0]?.total ?? 0,
      rows: inOrder(list, order).rows(...scope, limit ?? -1, offset),
    }))
  }

  override async deleteSession(request: DeleteSessionRequest): Promise<void> {
    const key = sessionKey(request)
    const [deleted] = await this.#connection.write(() =>
      this.#statements.deleteSession.rows(...key),
    )
    this.dropLocked(key)
    if (deleted === undefined) return
    this.#cache.drop(deleted.session)
    await this.#connection.emptyLog()
  }

  async readFirstMessage(request: CompositeSessionKey): Promise<Event | undefined> {
    const [row] = await this.#statements.findFirstMessage.select(...sessionKey(request))
    return row && decodeEvent(row.data)
  }

  async readChangeCount(): Promise<number> {
    const [row] = await this.#statements.readDataVersion.select()
    return row?.data_version ?? 0
  }

  async readChangeTags({
    appName,
    userIds,
  }: Parameters<ChangeTagReader['readChangeTags']>[0]): ReturnType<
    ChangeTagReader['readChangeTags']
  > {
    const rows = await this.#statements.readTags.select(appName, JSON.stringify(userIds))
    return new Map(rows.map(({ user_id, tags }) => [user_id, readTags(tags)]))
  }

  async rewind(request: RewindRequest): Promise<void> {
    const key = sessionKey(request)
    const eventId = checkName('eventId', request.eventId)
    const keep = JSON.stringify(request.keep ?? [])
    await this.#connection.write(() => {
      const [row] = this.#statements.findRewind.rows(...key)
      if (row === undefined) throw sessionGone(request.sessionId)
      this.#checkLock(key, this.#held.fenceOf(key))
      const [event] = this.#statements.findEvent.rows(row.session, eventId)
      if (event === undefined) throw noSuchEvent(eventId)
      this.#statements.deleteEventsFrom.run(row.session, event.seq, keep)
      this.#restore(key, row)
    })
    this.dropLocked(key)
  }

  protected override async insert(request: CreateSessionRequest): Promise<Session | undefined> {
    const key = { ...request, sessionId: request.sessionId || randomUUID() }
    const columns = sessionKey(key)
    const initial = encodeState(withoutTemp(request.state))
    return this.#connection.write(() => {
      const inserted = this.#statements.insertSession.run(...columns, Date.now(), initial)
      if (inserted === 0) return undefined
      const [row] = this.#statements.viewSession.rows(...columns)
      return row && viewSession(key, row, [])
    }, 'process-death')
  }

  async #read(request: GetSessionRequest): Promise<ReadSession> {
    const known: KnownHistory = {}
    for (;;) {
      const read = await this.#connection.read(() => this.#readPage(request, known))
      if (read !== 'incomplete') return read
      // A long history is read page by page, and other work runs in between. The pages stay valid as long as the
      // epoch does.
      await yieldToEventLoop()
    }
  }

  /** Reads a session, or a page of a long one. `known` keeps the pages, because the cache may drop them. */
  #readPage(request: GetSessionRequest, known: KnownHistory): ReadSession | 'incomplete' {
    const [row] = this.#statements.viewSession.rows(...sessionKey(request))
    if (row === undefined || row.session === null)
      return { session: viewSession(request, row, []), isStored: false }
    const history = continueHistory(row.epoch, [this.#cache.get(row.session), known.history])
    if (known.cachedOnly && history.seq < row.seq) return 'incomplete'
    known.history = history
    const isComplete = extendHistory(history, row, this.#statements)
    this.#cache.keep(row.session, history)
    if (!isComplete) return 'incomplete'
    return { session: viewSession(request, row, shareEvents(history)), isStored: true }
  }

  protected override async append({ session, event, delta, calls }: Append): Promise<boolean> {
    const { id: sessionId, appName, userId } = session
    const key = sessionKey({ appName, userId, sessionId })
    const eventId = checkName('event.id', event.id)
    const timestamp = checkTimestamp(event.timestamp)
    const row = [...key, eventId, timestamp, encodeDelta(delta.session), encodeEvent(event)]
    const statements = this.#statements
    const write = () => {
      // Read when it is written: this process may have unlocked the chat, or locked it again, while the write waited.
      const fence = this.#held.fenceOf(key, { isResponse: calls.length > 0 })
      const isMissing =
        calls.length > 0 &&
        statements.findMissingCall.rows(...key, JSON.stringify(calls)).length > 0
      if (isMissing) return false
      const isStarted =
        this.#unstored.has(joinKey(key)) && this.#start(key, timestamp, delta.session)
      if (!isStarted && !this.#extend(key, timestamp, delta.session)) {
        this.#checkLock(key, fence)
        throw sessionGone(sessionId)
      }
      const [first = null, second = null] = fence.map(({ token }) => token)
      if (statements.insertEvent.run(...row, first, second, fence.length) === 0) {
        this.#checkLock(key, fence)
        statements.replaceEvent.run(...row)
        statements.changeSession.run(...key, timestamp, null)
      }
      this.#appendShared(session, delta)
      return true
    }
    const isStored = await (isText(event)
      ? this.#connection.writeTogether(key, write)
      : this.#connection.write(write, 'process-death'))
    if (isStored) this.dropLocked(key)
    return isStored
  }

  /** Stores a new session, for its first event. Returns false if it exists. */
  #start(key: SessionKey, timestamp: number, delta: StateWrites): boolean {
    const state = encodeState(applyDelta({}, delta))
    return this.#statements.startSession.run(...key, timestamp, state) === 1
  }

  /** Prepares a stored session for its next event. Returns false if it does not exist. */
  #extend(key: SessionKey, timestamp: number, delta: StateWrites): boolean {
    const state = nextState(delta, () => this.#statements.readState.rows(...key))
    return this.#statements.extendSession.run(...key, timestamp, state) === 1
  }

  /** Throws if another process has locked the chat since this process did. */
  #checkLock(key: SessionKey, fence: readonly HeldLock[]): void {
    const isHeld = ({ token }: HeldLock) => this.#statements.isLocked.rows(...key, token).length > 0
    if (!fence.every(isHeld)) throw lockLost()
  }

  #appendShared({ appName, userId }: Session, { app, user }: ScopedDelta): void {
    const appState = nextState(app, () => this.#statements.readAppState.rows(appName))
    if (appState !== null) this.#statements.putAppState.run(appName, appState)
    const userState = nextState(user, () => this.#statements.readUserState.rows(appName, userId))
    if (userState !== null) this.#statements.putUserState.run(appName, userId, userState)
  }

  #restore(key: SessionKey, { session, created_at, initial_state }: RewindRow): void {
    const state = replayDeltas(initial_state, this.#statements.readDeltas.rows(session))
    const updatedAt = this.#statements.readLastTimestamp.rows(session)[0]?.timestamp ?? created_at
    this.#statements.changeSession.run(...key, updatedAt, encodeState(state))
  }
}

/** Whether an event may wait for others. A call may not: a person decides as soon as it is shown, and the chat must be free then. */
function isText({ content }: Event): boolean {
  return content?.parts?.every(({ text }) => text !== undefined) === true
}

function viewSession(
  request: GetSessionRequest,
  row: SessionView | MissingView | undefined,
  events: Event[],
): Session {
  const { state = null, updated_at: updatedAt = Date.now() } = row?.session == null ? {} : row
  const merged = mergeScopes(
    decodeState(state),
    decodeState(row?.app_state ?? null),
    decodeState(row?.user_state ?? null),
  )
  return toSession(request, { state: merged, updatedAt, events })
}

function readTags(text: string): ReadonlyMap<string, string> {
  // The statement `readTags` wrote the text.
  return new Map(Object.entries(JSON.parse(text) as Record<string, string>))
}

/** A session that was read, or as it would be created. */
interface ReadSession {
  readonly session: Session
  readonly isStored: boolean
}

interface KnownHistory {
  history?: SessionHistory
  /** Whether no events are read. Without a transaction they could be newer than the state of the session. */
  readonly cachedOnly?: true
}

function inOrder(
  list: ListStatements,
  order: ListSessionsRequest['order'],
): Statement<ListedSession> {
  if (order === undefined) return list.created
  return order === 'asc' ? list.ascending : list.descending
}

function nextState(delta: StateWrites, readRows: () => { state: string }[]): string | null {
  if (delta.length === 0) return null
  return encodeState(applyDelta(decodeState(readRows()[0]?.state ?? null), delta))
}

/** How many events to read at once, and for how many ms. */
const PAGE_EVENTS = 256
const PAGE_MS = 8

/** Reads further events of a session for a few ms. Returns whether the history is complete. */
function extendHistory(
  history: SessionHistory,
  row: SessionRow,
  statements: SessionStatements,
): boolean {
  const until = performance.now() + PAGE_MS
  while (history.seq < row.seq) {
    const rows = statements.readEvents.rows(row.session, history.seq, PAGE_EVENTS)
    for (const event of rows) {
      addToHistory(history, event)
      if (performance.now() > until) return history.seq >= row.seq
    }
    // The numbers of events may have gaps.
    if (rows.length < PAGE_EVENTS) history.seq = row.seq
  }
  return true
}
