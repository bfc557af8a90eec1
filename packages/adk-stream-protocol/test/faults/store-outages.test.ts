import { expect, test } from 'vitest'

import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { isLong } from '../../../../test/support/long-run.ts'
import { defer } from '../support/agents.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { makeFolder } from './support/folder.ts'
import { openPaymentServer } from './support/payment-server.ts'
import { Person, readEffects } from './support/person.ts'

type Ranges = readonly (readonly [from: number, to: number])[]

const PAY = '[[call pay {"to": "花子", "amount": 50}]][[then]][[say Paid.]]'
const POLLING = { timeout: 60_000, interval: 20 }

/** Makes the operations of a store fail whose number, counted from `start`, is in one of the ranges. */
class Outages {
  #count = Infinity
  #ranges: Ranges = []

  constructor({ approvals, sessions }: Store) {
    this.#fail(approvals, [
      'get',
      'getWithTime',
      'findByCall',
      'replace',
      'replaceAll',
      'lockChat',
      'unlockChat',
      'findLockHolder',
      'unreported',
      'markReported',
    ])
    this.#fail(sessions, ['getSession', 'appendEvent'])
  }

  start(ranges: Ranges): void {
    this.#ranges = ranges
    this.#count = 0
  }

  get isOver(): boolean {
    return this.#ranges.every(([, to]) => to <= this.#count)
  }

  #fail<Part extends object>(part: Part, names: readonly (keyof Part)[]): void {
    for (const name of names) {
      const original = part[name]
      if (typeof original !== 'function') continue
      const replaced = async (...given: unknown[]): Promise<unknown> => {
        const index = this.#count
        this.#count += 1
        if (this.#ranges.some(([from, to]) => index >= from && index < to))
          throw new StoreError('unavailable', 'The database is away.')
        return Reflect.apply(original, part, given)
      }
      Reflect.set(part, name, replaced)
    }
  }
}

/** How many operations fail in the first outage. */
const LENGTHS = isLong ? [1, 3, 8] : [1]

/** A first outage after the tool has run, and a second one while the server continues. */
const OUTAGES = Array.from({ length: 16 }, (_, first) =>
  LENGTHS.map((length, index) => {
    const end = first + length
    const second = end + 2 * index + (first % 5)
    return [
      [first, end],
      [second, second + 1 + (first % 3)],
    ] as const
  }),
).flat()

test('[AP825] a call that has run gets its reply without a lease, however the store fails after it', async () => {
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database })
  const outages = new Outages(store)
  let ranges: Ranges = []
  await using server = await openPaymentServer({
    store,
    effects: folder.effects,
    // No lease expires during the test.
    limits: { leaseMs: 600_000, sweepMs: 20 },
    reached: async (moment) => {
      if (moment === 'after effect') outages.start(ranges)
    },
  })
  for (const [index, each] of OUTAGES.entries()) {
    const chatId = `chat-${index}`
    const person = new Person(server.url, { chatId })
    ranges = []
    const { approvalId } = await person.ask(PAY)
    ranges = each
    await person.decide(approvalId, { approved: true })
    const last = async () => (await person.messages()).at(-1)
    const text = async () => (outages.isOver ? textOf(await last()) : 'away')
    await expect.poll(text, { ...POLLING, message: JSON.stringify(each) }).toBe('Paid.')
    expect(toolParts(await last()).map(({ state }) => state)).toEqual(['output-available'])
    expect(readEffects(folder.effects, chatId)).toHaveLength(1)
  }
})

/** In the second one, the run that was stopped loses the outcome of its call. Each stop takes a second. */
const AFTER_OUTCOME: readonly Ranges[] = isLong
  ? OUTAGES
  : [
      ...OUTAGES.slice(3, 4),
      [
        [1, 9],
        [14, 16],
      ],
    ]

test.each(['ADK waits for it', 'ADK has not collected it'])(
  '[AP825] the result of a call whose turn was stopped is stored without a lease, however the store fails after the call; %s',
  async (moment) => {
    await using folder = await makeFolder()
    await using store = await openSqliteStore({ path: folder.database })
    const outages = new Outages(store)
    const getSession = store.sessions.getSession.bind(store.sessions)
    let ranges: Ranges = []
    let [read, started, ended] = [defer(), defer(), defer()]
    read.resolve()
    store.sessions.getSession = async (request) => {
      await read.promise
      return getSession(request)
    }
    await using server = await openPaymentServer({
      store,
      effects: folder.effects,
      limits: { leaseMs: 600_000, sweepMs: 20 },
      reached: async (reached) => {
        if (reached === 'before effect') {
          started.resolve()
          await ended.promise
        } else if (reached === 'after effect') outages.start(ranges)
      },
    })
    for (const [index, each] of AFTER_OUTCOME.entries()) {
      const chatId = `chat-${index}`
      const person = new Person(server.url, { chatId })
      ranges = []
      const { approvalId } = await person.ask(PAY)
      ;[started, ended] = [defer(), defer()]
      ranges = each
      if (moment === 'ADK has not collected it') read = defer()
      const decided = person.decide(approvalId, { approved: true })
      await started.promise
      const stopped = person.post(`/chats/${chatId}/stop`, {})
      read.resolve()
      await stopped
      await decided
      ended.resolve()
      const last = async () => (await person.messages()).at(-1)
      const states = async () => {
        const parts = toolParts(await last())
        return outages.isOver ? parts.map(({ state }) => state) : []
      }
      await expect
        .poll(states, { ...POLLING, message: JSON.stringify(each) })
        .toEqual(['output-available'])
      expect(readEffects(folder.effects, chatId)).toHaveLength(1)
    }
  },
)
