import type { Event } from '@google/adk'
import type { SessionCache, SessionHistory } from '../session-cache.ts'
import { decodeEvent, hasFunctionCalls, withOwnArguments } from '../stored-event.ts'
import type { SessionRow, SessionStatements } from './session-statements.ts'

/** Reads the events of a session; of those read before, only what has been written since comes from the database. */
export function readHistory(
  row: SessionRow,
  statements: SessionStatements,
  cache: SessionCache,
): Event[] {
  const cached = cache.get(row.session)
  const history = cached?.epoch === row.epoch ? cached : emptyHistory(row.epoch)
  if (history.seq < row.seq)
    extendHistory(history, statements.readEvents.rows(row.session, history.seq))
  history.seq = row.seq
  cache.keep(row.session, history)
  return shareEvents(history)
}

// What an event costs in memory beside its text, roughly.
const EVENT_ALLOWANCE = 512

function emptyHistory(epoch: number): SessionHistory {
  return { epoch, seq: 0, size: EVENT_ALLOWANCE, events: [], calls: [] }
}

function extendHistory(history: SessionHistory, rows: { seq: number; data: string }[]): void {
  for (const { data } of rows) {
    const event = decodeEvent(data)
    if (hasFunctionCalls(event)) history.calls.push(history.events.length)
    history.events.push(event)
    history.size += data.length + EVENT_ALLOWANCE
  }
}

function shareEvents(history: SessionHistory): Event[] {
  const events = history.events.slice()
  for (const index of history.calls) {
    const event = history.events[index]
    if (event !== undefined) events[index] = withOwnArguments(event)
  }
  return events
}
