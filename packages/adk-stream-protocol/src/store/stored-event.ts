import { createEvent, type Event } from '@google/adk'
import { decodeJson, encodeJson } from './stored-json.ts'

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
export function hasFunctionCalls(event: Event): boolean {
  return event.content?.parts?.some((part) => part.functionCall !== undefined) ?? false
}

/**
 * Copies a shared event so that the reader owns the arguments of its function calls.
 *
 * When ADK 2.0.0 resumes a confirmed call, it passes the arguments from the history, not a copy, to callbacks and to
 * the tool. Both may change them in place.
 */
export function withOwnArguments(event: Event): Event {
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
