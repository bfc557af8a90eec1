import type { SessionHistory } from '../session-cache.ts'
import { addToHistory } from '../session-history.ts'
import type { SessionRow, SessionStatements } from './session-statements.ts'

/** How many events to read at once, and for how many ms. */
const PAGE_EVENTS = 256
const PAGE_MS = 8

/** Reads further events of a session for a few ms. Returns whether the history is complete. */
export function extendHistory(
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
