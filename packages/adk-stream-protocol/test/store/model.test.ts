import { createSession } from '@google/adk'
import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { times } from '../../../../test/support/long-run.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { StoreError } from '../../src/store/store-error.ts'
import type { RewindableSessionService } from '../../src/store/store.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { deltaEvent, key } from '../../src/store/contract/fixtures.ts'

type State = Map<string, unknown>
type Entries = [string, unknown][]

interface Step {
  readonly act: 'create' | 'append' | 'read' | 'rewind' | 'delete' | 'list'
  /** Which of two stores on one file takes the step. The cache of the other is outdated then. */
  readonly store: number
  readonly sessionId: string
  readonly eventId: string
  readonly writes: Record<string, unknown>
}

const steps = fc.array(
  fc.record<Step>({
    act: fc.constantFrom(
      'create',
      'append',
      'append',
      'append',
      'read',
      'rewind',
      'delete',
      'list',
    ),
    store: fc.constantFrom(0, 1),
    sessionId: fc.constantFrom('one', 'one', 'two'),
    eventId: fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f'),
    writes: fc.dictionary(
      fc.constantFrom('x', 'y', 'app:x', 'user:y', 'temp:z', '__proto__'),
      fc.oneof(fc.constant(undefined), fc.jsonValue({ maxDepth: 2 })),
      { maxKeys: 3 },
    ),
  }),
  { maxLength: 40 },
)

test('[ST33] any sequence of operations on two stores matches a simple model', async () => {
  await using folder = await temporaryDirectory()
  let run = 0
  const property = fc.asyncProperty(steps, async (sequence) => {
    run += 1
    const path = folder.file(`run-${run}.db`)
    await using one = await openSqliteStore({ path })
    await using two = await openSqliteStore({ path, cache: { sessions: 1 } })
    const model = new Model()
    for (const step of sequence) {
      const service = step.store === 0 ? one.sessions : two.sessions
      expect(await takeStep(service, step)).toEqual(model[step.act](step))
      expect(await view(service, step)).toEqual(model.read(step))
    }
  })
  await fc.assert(property, { numRuns: times(30, 80) })
})

/** The expected content of the store, in the simplest form. */
class Model {
  readonly #app: State = new Map()
  readonly #user: State = new Map()
  readonly #sessions = new Map<
    string,
    { initial: Entries; events: [string, Entries][]; state: State }
  >()

  create({ sessionId, writes }: Step): unknown {
    if (this.#sessions.has(sessionId)) return 'conflict'
    const initial = lasting(writes)
    this.#sessions.set(sessionId, { initial, events: [], state: writeAll(new Map(), initial) })
    return 'done'
  }

  append({ sessionId, eventId, writes }: Step): unknown {
    const session = this.#sessions.get(sessionId)
    if (session === undefined) return 'session-gone'
    const entries = lasting(writes)
    const known = session.events.findIndex(([id]) => id === eventId)
    session.events.splice(known === -1 ? session.events.length : known, 1, [eventId, entries])
    writeAll(session.state, ownOf(entries))
    writeAll(
      this.#app,
      entries.filter(([name]) => name.startsWith('app:')),
    )
    writeAll(
      this.#user,
      entries.filter(([name]) => name.startsWith('user:')),
    )
    return 'done'
  }

  rewind({ sessionId, eventId }: Step): unknown {
    const session = this.#sessions.get(sessionId)
    if (session === undefined) return 'session-gone'
    const index = session.events.findIndex(([id]) => id === eventId)
    if (index === -1) return 'conflict'
    session.events.length = index
    session.state = writeAll(new Map(), session.initial)
    for (const [, entries] of session.events) writeAll(session.state, ownOf(entries))
    return 'done'
  }

  delete({ sessionId }: Step): unknown {
    this.#sessions.delete(sessionId)
    return 'done'
  }

  read({ sessionId }: Step): unknown {
    const session = this.#sessions.get(sessionId)
    if (session === undefined) return undefined
    const state = new Map([...session.state, ...this.#app, ...this.#user])
    return {
      events: session.events.map(([id, entries]) => [id, writeAll(new Map(), entries)]),
      state,
    }
  }

  list(): unknown {
    return new Set(this.#sessions.keys())
  }
}

async function takeStep(service: RewindableSessionService, step: Step): Promise<unknown> {
  try {
    return await act(service, step)
  } catch (error) {
    return error instanceof StoreError ? error.code : error
  }
}

async function act(service: RewindableSessionService, step: Step): Promise<unknown> {
  const name = { ...key, sessionId: step.sessionId }
  switch (step.act) {
    case 'create':
      await service.createSession({ ...name, state: step.writes })
      return 'done'
    case 'append': {
      const held = await service.getSession(name)
      const session = held ?? createSession({ ...name, id: step.sessionId })
      await service.appendEvent({ session, event: deltaEvent(step.eventId, step.writes) })
      return 'done'
    }
    case 'rewind':
      await service.rewind({ ...name, eventId: step.eventId })
      return 'done'
    case 'delete':
      await service.deleteSession(name)
      return 'done'
    case 'read':
      return view(service, step)
    case 'list':
      return new Set((await service.listSessions(key)).sessions.map((session) => session.id))
  }
}

async function view(service: RewindableSessionService, { sessionId }: Step): Promise<unknown> {
  const session = await service.getSession({ ...key, sessionId })
  if (session === undefined) return undefined
  return {
    events: session.events.map((event) => [
      event.id,
      new Map(Object.entries(event.actions.stateDelta)),
    ]),
    state: new Map(Object.entries(session.state)),
  }
}

function lasting(writes: Record<string, unknown>): Entries {
  return Object.entries(writes).filter(([name]) => !name.startsWith('temp:'))
}

function ownOf(entries: Entries): Entries {
  return entries.filter(([name]) => !name.includes(':'))
}

function writeAll(state: State, entries: Entries): State {
  for (const [name, value] of entries) {
    if (value === undefined) state.delete(name)
    // JSON has no -0.
    else state.set(name, JSON.parse(JSON.stringify(value)))
  }
  return state
}
