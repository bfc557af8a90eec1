import * as fc from 'fast-check'
import { afterEach, expect, test, vi } from 'vitest'

import { isLong } from '../../../../test/support/long-run.ts'
import type { Chunk } from '../../src/protocol/chunk.ts'
import type { Relay, TurnUpdate } from '../../src/relay/relay.ts'
import { appendLines } from '../../src/relay/relay.ts'
import { TurnPublisher } from '../../src/relay/turn-publisher.ts'
import { Turn } from '../../src/turns/turn.ts'
import { joinDeltas } from '../support/position-client.ts'
import { CHAT, createTurn, Reading } from './support/relays.ts'

const FLUSH_MS = 50
const LIMITS = { maxLag: 1_000_000, stallTimeoutMs: 60_000, maxReplay: 1_000_000 }

afterEach(() => vi.useRealTimers())

/** A database that loses rows, and the copy of a turn that another server reads from it. */
class LosingDatabase {
  readonly copy: Turn
  hasEnded = false
  /** Whether the acknowledgement of the next write is lost. */
  isSilent = false
  #rows: TurnUpdate[] = []
  #copied = 0

  constructor(turn: Turn) {
    this.copy = new Turn(turn.messageId, LIMITS, { id: turn.id, graceMs: 60_000 })
  }

  readonly write: Relay['write'] = async (updates) => {
    const first = updates[0]?.seq ?? 1
    const added = updates.filter(({ seq }) => seq > this.#rows.length)
    if (first <= this.#rows.length + 1) this.#rows.push(...added)
    this.hasEnded ||= this.#rows.at(-1)?.ended === true
    const isSilent = this.isSilent
    this.isSilent = false
    if (isSilent) throw new Error('The connection was lost.')
    return new Map(updates.map(({ turnId }) => [turnId, this.#rows.length]))
  }

  /** Keeps the oldest rows. The first one was written to the disk. */
  lose(count: number): void {
    this.#rows = this.#rows.slice(0, Math.max(1, this.#rows.length - count))
  }

  /** Reads the rows that the copy does not have. */
  read(): void {
    for (const { lines } of this.#rows.slice(this.#copied)) appendLines(this.copy.log, lines)
    this.#copied = Math.max(this.#copied, this.#rows.length)
  }
}

const ACT = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('say' as const),
      id: fc.constantFrom('t1', 't2'),
      delta: fc.oneof(
        fc.constantFrom('支払い', '\ud83d', '\ude00', '😀'),
        fc.string({ minLength: 1 }),
      ),
    }),
  },
  { weight: 2, arbitrary: fc.constant({ do: 'step' as const }) },
  fc.record({ do: fc.constant('mark' as const), id: fc.constantFrom('a1', 'a2', undefined) }),
  { weight: 4, arbitrary: fc.constant({ do: 'flush' as const }) },
  fc.constant({ do: 'silent' as const }),
  fc.record({ do: fc.constant('lose' as const), count: fc.integer({ min: 1, max: 9 }) }),
  fc.constant({ do: 'read' as const }),
)

test('[RL330] what the database loses of a turn is written again, whenever the loss is noticed and whoever has read it before', async () => {
  vi.useFakeTimers()
  const property = fc.asyncProperty(fc.array(ACT, { maxLength: 60 }), async (acts) => {
    const turn = createTurn()
    const database = new LosingDatabase(turn)
    const publisher = new TurnPublisher({
      relay: { write: database.write, notify: async () => undefined },
      owner: 'one',
      flushMs: FLUSH_MS,
      onError: () => undefined,
    })
    publisher.publish(CHAT, turn)
    const made: Chunk[] = []
    const append = (chunk: Chunk): void => {
      made.push(chunk)
      turn.log.append(chunk)
    }
    append({ type: 'start', messageId: turn.messageId })
    for (const act of acts) {
      if (act.do === 'say') append({ type: 'text-delta', id: act.id, delta: act.delta })
      else if (act.do === 'step') append({ type: 'start-step' })
      else if (act.do === 'mark') turn.log.markPause(act.id)
      else if (act.do === 'silent') database.isSilent = true
      else if (act.do === 'lose') database.lose(act.count)
      else if (act.do === 'read') database.read()
      // Much later than any setting of PostgreSQL keeps a commit in memory.
      else await vi.advanceTimersByTimeAsync(60_000)
    }
    turn.log.end()
    while (!database.hasEnded) await vi.advanceTimersByTimeAsync(FLUSH_MS)
    database.read()
    expect(publisher.busy).toBe(false)
    const { copy } = database
    for (const from of ['start', 'pause', { after: 'a1' }, { after: 'a2' }] as const) {
      const [original, copied] = [new Reading(turn, from), new Reading(copy, from)]
      expect(joinDeltas(copied.chunks as Chunk[])).toEqual(joinDeltas(original.chunks as Chunk[]))
    }
    expect(joinDeltas(new Reading(copy).chunks as Chunk[])).toEqual(joinDeltas(made))
    expect(copy.log.tip).toEqual(turn.log.tip)
  })
  await fc.assert(property, { numRuns: isLong ? 200 : 30 })
})
