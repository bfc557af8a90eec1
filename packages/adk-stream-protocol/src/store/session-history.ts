import type { Event, GetSessionConfig } from '@google/adk'
import { createEvent } from '@google/adk'

import { decodeJson, encodeJson } from './stored-json.ts'

/** Returns the longest of the known histories that is still valid at an epoch, or an empty one. */
export function continueHistory(
  epoch: number,
  known: readonly (SessionHistory | undefined)[],
): SessionHistory {
  return known.reduce<SessionHistory>(
    (longest, history) =>
      history?.epoch === epoch && history.seq > longest.seq ? history : longest,
    { epoch, seq: 0, size: EVENT_ALLOWANCE, events: [], calls: [] },
  )
}

// The approximate memory of an event in addition to its text.
const EVENT_ALLOWANCE = 512

/** Adds a stored event to a history. */
export function addToHistory(
  history: SessionHistory,
  { seq, data }: { readonly seq: number; readonly data: string },
): void {
  const event = decodeEvent(data)
  if (hasFunctionCalls(event)) history.calls.push(history.events.length)
  history.events.push(event)
  history.size += data.length + EVENT_ALLOWANCE
  history.seq = seq
}

/** Returns the events for one reader, which may change the list and the arguments of calls. */
export function shareEvents(history: SessionHistory): Event[] {
  const events = history.events.slice()
  for (const index of history.calls) {
    const event = history.events[index]
    if (event !== undefined) events[index] = withOwnArguments(event)
  }
  return events
}

/** Returns the part of a history that ADK's `getSession` requests: the most recent events, then those after a time. */
export function selectEvents(events: Event[], config: GetSessionConfig = {}): Event[] {
  const { numRecentEvents, afterTimestamp } = config
  const recent = numRecentEvents ? events.slice(-numRecentEvents) : events
  if (!afterTimestamp) return recent
  const lastBefore = recent.findLastIndex((event) => event.timestamp < afterTimestamp)
  return recent.slice(lastBefore + 1)
}

export interface SessionCacheLimits {
  /** The maximum number of sessions. Default 1,000. 0 disables the cache. */
  readonly sessions?: number
  /** The maximum number of characters of stored JSON, with an allowance for each event. Default: 32 Mi. */
  readonly characters?: number
}

/** The events of a session that have been read so far. */
export interface SessionHistory {
  /** Grows when stored events are changed or removed. A history of an earlier epoch is invalid. */
  readonly epoch: number
  seq: number
  size: number
  readonly events: Event[]
  /** The indices in `events` of events with function calls. */
  readonly calls: number[]
}

/** A cache of parsed histories. It drops the least recently used one first. */
export class SessionCache<Key = number> {
  readonly #histories = new Map<Key, { history: SessionHistory; size: number }>()
  readonly #limits: Required<SessionCacheLimits>
  #size = 0

  constructor(limits: SessionCacheLimits = {}) {
    this.#limits = { sessions: 1_000, characters: 32 * 1024 * 1024, ...limits }
  }

  get(session: Key): SessionHistory | undefined {
    return this.#histories.get(session)?.history
  }

  /** Stores a history as the most recently used one, within the limits. */
  keep(session: Key, history: SessionHistory): void {
    this.drop(session)
    // It exceeds the limit on its own, and dropping all others would not help.
    if (history.size > this.#limits.characters) return
    this.#histories.set(session, { history, size: history.size })
    this.#size += history.size
    for (const oldest of this.#histories.keys()) {
      if (this.#histories.size <= this.#limits.sessions && this.#size <= this.#limits.characters)
        break
      this.drop(oldest)
    }
  }

  drop(session: Key): void {
    this.#size -= this.#histories.get(session)?.size ?? 0
    this.#histories.delete(session)
  }

  clear(): void {
    this.#histories.clear()
    this.#size = 0
  }
}

/** Encodes an event as the text to store. */
export function encodeEvent(event: Event): string {
  return encodeJson(event)
}

/** Decodes a stored event. It carries ADK's event mark, and it is frozen because all readers of the session share it. */
export function decodeEvent(text: string): Event {
  // `encodeEvent` wrote the text.
  const event = decodeJson(text) as Event
  return deepFreeze(Object.assign(event, eventMark))
}

/** Whether an event contains function calls. */
function hasFunctionCalls(event: Event): boolean {
  return event.content?.parts?.some((part) => part.functionCall !== undefined) ?? false
}

/**
 * Copies a shared event so that the reader owns the arguments of its function calls.
 *
 * When ADK 2.0.0 resumes a confirmed call, it passes the arguments from the history, not a copy, to callbacks and to
 * the tool. Both may change them in place.
 */
function withOwnArguments(event: Event): Event {
  const parts = event.content?.parts?.map((part) => {
    const call = part.functionCall
    return call?.args === undefined
      ? part
      : { ...part, functionCall: { ...call, args: copyRecord(call.args) } }
  })
  return parts === undefined ? event : { ...event, content: { ...event.content, parts } }
}

// ADK marks its events with a symbol, which JSON cannot carry.
const eventMark = pickSymbols(createEvent())

function pickSymbols(source: object): object {
  const symbols = Object.getOwnPropertySymbols(source)
  return Object.fromEntries(symbols.map((symbol) => [symbol, Reflect.get(source, symbol)]))
}

function deepFreeze<Value>(value: Value): Value {
  // JavaScript cannot freeze typed arrays.
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  for (const item of Object.values(value)) deepFreeze(item)
  return Object.freeze(value)
}

function copyRecord(record: object): Record<string, unknown> {
  const copied: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(record)) {
    // An assignment to `__proto__` would set the prototype.
    if (key === '__proto__')
      Object.defineProperty(copied, key, { value: copyValue(value), ...ORDINARY })
    else copied[key] = copyValue(value)
  }
  return copied
}

const ORDINARY = { writable: true, enumerable: true, configurable: true }

function copyValue(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(copyValue)
  return value instanceof Uint8Array ? value.slice() : copyRecord(value)
}
