import type { Event } from '@google/adk'

import { defer } from '../shared/async.ts'
import type { RunState } from './run-state.ts'

/** Yields the events of ADK, and `undefined` when the run shows an event before the next one: a call runs and asks a question. */
export async function* withShown(
  events: AsyncGenerator<Event>,
  run: RunState,
): AsyncGenerator<Event | undefined> {
  let next: Promise<IteratorResult<Event>> | undefined
  try {
    for (;;) {
      next ??= events.next()
      // It may fail while a shown event is being read.
      next.catch(() => undefined)
      const shown = defer<undefined>()
      run.onShown = () => shown.resolve(undefined)
      const result = run.hasAppended ? undefined : await Promise.race([next, shown.promise])
      if (result?.done === true) return
      if (result) next = undefined
      yield result?.value
    }
  } finally {
    run.onShown = undefined
    await events.return(undefined)
  }
}
