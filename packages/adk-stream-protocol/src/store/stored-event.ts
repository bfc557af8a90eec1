import { createEvent, type Event } from '@google/adk'
import { decodeJson, encodeJson } from './stored-json.ts'

/** Writes an event as the text that is stored. */
export function encodeEvent(event: Event): string {
  return encodeJson(event)
}

/** Reads a stored event: marked as ADK's own, and frozen, because every reader of the session shares it. */
export function decodeEvent(text: string): Event {
  // The text was written by `encodeEvent`.
  const event = decodeJson(text) as Event
  return deepFreeze(Object.assign(event, eventMark))
}

/** Tells whether an event asks for a tool. */
export function hasFunctionCalls(event: Event): boolean {
  return event.content?.parts?.some((part) => part.functionCall !== undefined) ?? false
}

/**
 * Copies a shared event so that the arguments of its function calls belong to the reader.
 *
 * When ADK 2.0.0 resumes a confirmed call it hands the arguments in the history, not a copy, to callbacks and to the
 * tool, and both may edit them in place.
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

// ADK recognises its events by a symbol that JSON cannot carry.
const eventMark = pickSymbols(createEvent())

function pickSymbols(source: object): object {
  const symbols = Object.getOwnPropertySymbols(source)
  return Object.fromEntries(symbols.map((symbol) => [symbol, Reflect.get(source, symbol)]))
}

function deepFreeze<Value>(value: Value): Value {
  // The engine refuses to freeze views of bytes.
  if (typeof value !== 'object' || value === null || ArrayBuffer.isView(value)) return value
  for (const item of Object.values(value)) deepFreeze(item)
  return Object.freeze(value)
}

function copyRecord(record: object): Record<string, unknown> {
  const copied: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(record)) {
    // Plain assignment to `__proto__` would set the prototype.
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
