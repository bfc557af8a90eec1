import { State } from '@google/adk'
import { decodeJson, encodeJson } from './stored-json.ts'

export type SessionState = Record<string, unknown>

/** Ordered writes to the state. A value of `undefined` removes the key. */
export type StateDelta = readonly (readonly [key: string, value: unknown])[]

export interface ScopedDelta {
  readonly session: StateDelta
  readonly app: StateDelta
  readonly user: StateDelta
}

/** Groups the writes of an event by the scope of their prefix and removes the prefix. Drops `temp:` keys. */
export function scopeDelta(delta: StateDelta): ScopedDelta {
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
export function applyDelta(state: SessionState, delta: StateDelta): SessionState {
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
export function encodeDelta(delta: StateDelta): string | null {
  if (delta.length === 0) return null
  return encodeJson(delta.map(([key, value]) => (value === undefined ? [key] : [key, value])))
}

export function decodeDelta(text: string): StateDelta {
  // `encodeDelta` wrote the text.
  return decodeJson(text) as StateDelta
}
