import type {
  AppendEventRequest,
  CompositeSessionKey,
  CreateSessionRequest,
  Event,
  GetSessionRequest,
  ListSessionsRequest,
  ListSessionsResponse,
  Session,
} from '@google/adk'
import { BaseSessionService, createSession, State } from '@google/adk'

import { selectEvents } from './session-history.ts'
import { decodeJson, encodeJson } from './stored-json.ts'
import { StoreError } from './store-error.ts'

/** An event to store, with the writes to the state that take effect. */
export interface Append {
  readonly session: Session
  readonly event: Event
  readonly delta: ScopedDelta
  /** The ids of calls that the session must contain. */
  readonly calls: readonly string[]
}

/** What ADK requires of a session service, independent of the database. */
export abstract class StoredSessionService extends BaseSessionService {
  readonly #written = new WeakMap<Session, SessionState>()

  /** Returns undefined if the session exists. */
  protected abstract insert(request: CreateSessionRequest): Promise<Session | undefined>

  /** Returns false, and stores nothing, if one of the calls is missing. */
  protected abstract append(append: Append): Promise<boolean>

  /** Returns a page of the sessions, and the number of all. */
  protected abstract list(request: ListSessionsRequest, page: ListPage): Promise<ListedSessions>

  override async createSession(request: CreateSessionRequest): Promise<Session> {
    const session = await this.insert(request)
    if (session === undefined) {
      throw new StoreError(
        'conflict',
        `The session ${request.sessionId} already exists. Use getOrCreateSession.`,
      )
    }
    return session
  }

  override async getOrCreateSession(request: CreateSessionRequest): Promise<Session> {
    const { appName, userId, sessionId } = request
    if (!sessionId) return this.createSession(request)
    const key = { appName, userId, sessionId }
    return (await this.getSession(key)) ?? this.insertOrGet({ ...request, sessionId })
  }

  /** Creates a session, or returns that of another process that has created it first. */
  protected async insertOrGet(
    request: CreateSessionRequest & CompositeSessionKey,
  ): Promise<Session> {
    const { appName, userId, sessionId } = request
    const session =
      (await this.insert(request)) ?? (await this.getSession({ appName, userId, sessionId }))
    if (session === undefined) throw sessionGone(sessionId)
    return session
  }

  override async listSessions(request: ListSessionsRequest): Promise<ListSessionsResponse> {
    const { total, rows } = await this.list(request, readPage(request))
    const sessions = rows.map((row) =>
      createSession({
        id: row.session_id,
        appName: request.appName,
        userId: row.user_id,
        lastUpdateTime: row.updated_at,
      }),
    )
    return { sessions, ...describePage(request, total) }
  }

  override async appendEvent(request: AppendEventRequest): Promise<Event> {
    if (request.event.partial) return request.event
    return (await this.#appendIf(request, [])) ?? request.event
  }

  /** Appends a response to calls if the session still contains them, in one transaction. Returns false if it does not. */
  async appendResponse(request: AppendEventRequest, calls: readonly string[]): Promise<boolean> {
    return (await this.#appendIf(request, calls)) !== undefined
  }

  /** Appends an event if the session contains all of these calls. */
  async #appendIf(
    request: AppendEventRequest,
    calls: readonly string[],
  ): Promise<Event | undefined> {
    const event = withWritableActions(request.event)
    const delta = await this.#selectEffectiveWrites(request.session, event)
    const row = { session: request.session, event, delta: scopeDelta(delta), calls }
    if (!(await this.append(row))) return undefined
    // Last, so that a rejected append does not change the session of the caller.
    await super.appendEvent({ session: request.session, event })
    request.session.lastUpdateTime = event.timestamp
    return event
  }

  /** Returns the writes of an event that take effect, in ADK's order of writes within a run. */
  async #selectEffectiveWrites(session: Session, event: Event): Promise<StateWrites> {
    if (isEmpty(event.actions?.stateDelta)) return []
    // Without a prototype, even `__proto__` is an ordinary key.
    const written = this.#written.get(session) ?? (Object.create(null) as SessionState)
    this.#written.set(session, written)
    // Only ADK knows when each write was made. It leaves late writes out of `written` and removes `temp:` keys from
    // the event.
    await super.appendEvent({ session: { ...session, state: written, events: [] }, event })
    return Object.entries(event.actions.stateDelta).filter(([key, value]) =>
      Object.is(written[key], value),
    )
  }
}

/** Creates the session that a reader gets. */
export function toSession(
  request: GetSessionRequest,
  { state, updatedAt, events }: { state: SessionState; updatedAt: number; events: Event[] },
): Session {
  return createSession({
    id: request.sessionId,
    appName: request.appName,
    userId: request.userId,
    state,
    events: selectEvents(events, request.config),
    lastUpdateTime: updatedAt,
  })
}

export function checkTimestamp(timestamp: number): number {
  if (Number.isFinite(timestamp)) return timestamp
  throw new StoreError('invalid', '`event.timestamp` must be a finite number of milliseconds.')
}

export function sessionGone(sessionId: string): StoreError {
  return new StoreError(
    'session-gone',
    `The session ${sessionId} does not exist. It may have been deleted.`,
  )
}

export function lockLost(): StoreError {
  return new StoreError(
    'lock-lost',
    'Another process has taken over this chat. Read the session again.',
  )
}

export function noSuchEvent(eventId: string): StoreError {
  return new StoreError(
    'conflict',
    `The session has no event ${eventId}. It may have been rewound already.`,
  )
}

function withWritableActions(event: Event): Event {
  // Events read from this store are frozen, but ADK writes to the actions of an event that it appends.
  return Object.isFrozen(event.actions) ? { ...event, actions: { ...event.actions } } : event
}

function isEmpty(record: object | undefined): boolean {
  return record === undefined || Object.keys(record).length === 0
}

export interface ListedSessions {
  readonly total: number
  readonly rows: readonly ListedSession[]
}

export interface ListedSession {
  readonly user_id: string
  readonly session_id: string
  readonly updated_at: number
}

export interface ListPage {
  readonly offset: number
  /** `undefined` means no limit. */
  readonly limit: number | undefined
}

/** Reads the range of a list request. `page` counts from 1 and takes precedence over `offset`. */
function readPage({ limit, offset = 0, page }: ListSessionsRequest): ListPage {
  checkWhole('offset', offset, 0)
  if (limit === undefined) return { offset, limit }
  checkWhole('limit', limit, 0)
  if (page === undefined) return { offset, limit }
  checkWhole('page', page, 1)
  return { offset: (page - 1) * limit, limit }
}

/** Describes the position of a page in the whole list, in the shape of ADK. */
function describePage(
  request: ListSessionsRequest,
  totalItems: number,
): Omit<ListSessionsResponse, 'sessions'> {
  const { offset, limit } = readPage(request)
  if (limit === undefined)
    return { page: 1, limit: totalItems, totalItems, totalPages: totalItems === 0 ? 0 : 1 }
  if (limit === 0) return { page: request.page ?? 1, limit, totalItems, totalPages: 0 }
  const page = request.page ?? Math.floor(offset / limit) + 1
  return { page, limit, totalItems, totalPages: Math.ceil(totalItems / limit) }
}

function checkWhole(what: string, value: number, least: number): void {
  if (Number.isSafeInteger(value) && value >= least) return
  throw new StoreError('invalid', `\`${what}\` must be an integer of at least ${least}.`)
}

export type SessionState = Record<string, unknown>

/** Ordered writes to the state. A value of `undefined` removes the key. */
export type StateWrites = readonly (readonly [key: string, value: unknown])[]

export interface ScopedDelta {
  readonly session: StateWrites
  readonly app: StateWrites
  readonly user: StateWrites
}

/** Groups the writes of an event by the scope of their prefix and removes the prefix. Drops `temp:` keys. */
function scopeDelta(delta: StateWrites): ScopedDelta {
  const session: [string, unknown][] = []
  const app: [string, unknown][] = []
  const user: [string, unknown][] = []
  for (const [key, value] of delta) {
    if (key.startsWith(State.APP_PREFIX)) app.push([key.slice(State.APP_PREFIX.length), value])
    else if (key.startsWith(State.USER_PREFIX))
      user.push([key.slice(State.USER_PREFIX.length), value])
    else if (!key.startsWith(State.TEMP_PREFIX)) session.push([key, value])
  }
  return { session, app, user }
}

/** Copies a state without the `temp:` keys, which last for one run only. */
export function withoutTemp(state: SessionState = {}): SessionState {
  return Object.fromEntries(
    Object.entries(state).filter(([key]) => !key.startsWith(State.TEMP_PREFIX)),
  )
}

/** Applies writes to a state in place. A key such as `__proto__` becomes an ordinary own property. */
export function applyDelta(state: SessionState, delta: StateWrites): SessionState {
  for (const [key, value] of delta) {
    if (value === undefined) delete state[key]
    else
      Object.defineProperty(state, key, {
        value,
        writable: true,
        enumerable: true,
        configurable: true,
      })
  }
  return state
}

/** Returns the state of a session after its stored deltas. `initial` is an encoded state. */
export function replayDeltas(
  initial: string,
  deltas: readonly { readonly delta: string }[],
): SessionState {
  const state = decodeState(initial)
  for (const { delta } of deltas) applyDelta(state, decodeDelta(delta))
  return state
}

/** Adds app and user state to the state of a session under their prefixes, in place. */
export function mergeScopes(
  session: SessionState,
  app: SessionState,
  user: SessionState,
): SessionState {
  for (const [key, value] of Object.entries(app)) session[State.APP_PREFIX + key] = value
  for (const [key, value] of Object.entries(user)) session[State.USER_PREFIX + key] = value
  return session
}

export function encodeState(state: SessionState): string {
  return encodeJson(state)
}

export function decodeState(text: string | null): SessionState {
  // `encodeState` wrote the text. Without a row the state is empty.
  return text === null ? {} : (decodeJson(text) as SessionState)
}

/** Encodes a delta as text. It keeps the order, and encodes `undefined` as a pair without a second element. */
export function encodeDelta(delta: StateWrites): string | null {
  if (delta.length === 0) return null
  return encodeJson(delta.map(([key, value]) => (value === undefined ? [key] : [key, value])))
}

export function decodeDelta(text: string): StateWrites {
  // `encodeDelta` wrote the text.
  return decodeJson(text) as StateWrites
}
