import { openSqliteStore, type Store } from '../../../src/store/index.ts'
import { type LeaseTimes, sqliteLeaseTimes } from '../../support/lease-times.ts'
import { makeFolder } from './folder.ts'
import { Person, readEffects } from './person.ts'
import {
  openPaymentServer,
  type PaymentServer,
  type PaymentServerOptions,
} from './payment-server.ts'

/** Two servers on one database: each has a connection, a ledger and a model of its own, as two processes have. */
export interface Pair extends AsyncDisposable {
  readonly one: PaymentServer
  readonly two: PaymentServer
  /** A third connection to the database. */
  readonly store: Store
  /** The leases in the SQLite file. */
  readonly leases: LeaseTimes
  /** The same person at both. */
  readonly atOne: Person
  readonly atTwo: Person
  /** Resolves when the second server has found the chat locked this many more times. */
  untilTaken(times?: number): Promise<void>
  /** The approvals as the first server reads and writes them. */
  readonly ofFirst: Store['approvals']
  /** The approvals as the second server reads and writes them. */
  readonly ofSecond: Store['approvals']
  /** From now on, a server, by default the first one, reads no new audit entries. Returns a function that ends this. */
  deafen(approvals?: Store['approvals']): () => void
  effects(): ReturnType<typeof readEffects>
}

export async function openPair(
  options: Partial<PaymentServerOptions> & {
    readonly ofOne?: Partial<PaymentServerOptions>
    /** Opens the database of a server. Default: a SQLite file. */
    readonly openStore?: () => Promise<Store>
  } = {},
): Promise<Pair> {
  const folder = await makeFolder()
  const {
    ofOne = {},
    openStore = () => openSqliteStore({ path: folder.database }),
    ...common
  } = options
  const [store, first, second] = await Promise.all([1, 2, 3].map(() => openStore()))
  if (!store || !first || !second) throw new Error('There are three stores.')
  const refusals = countRefusals(second)
  const base = { effects: folder.effects, limits: { leaseMs: 15_000, sweepMs: 100 }, ...common }
  const one = await openPaymentServer({ ...base, ...ofOne, store: first })
  const two = await openPaymentServer({ ...base, store: second })
  return {
    one,
    two,
    store,
    leases: sqliteLeaseTimes(folder.database),
    atOne: new Person(one.url),
    atTwo: new Person(two.url),
    untilTaken: (times = 1) => refusals.untilMore(times),
    ofFirst: first.approvals,
    ofSecond: second.approvals,
    deafen: (approvals = first.approvals) => {
      const original = approvals.lastSeq.bind(approvals)
      const last = original()
      approvals.lastSeq = () => last
      return () => {
        approvals.lastSeq = original
      }
    },
    effects: () => readEffects(folder.effects),
    async [Symbol.asyncDispose]() {
      await one[Symbol.asyncDispose]()
      await two[Symbol.asyncDispose]()
      for (const open of [store, first, second]) await open.close()
      await folder[Symbol.asyncDispose]()
    },
  }
}

/** Counts how often a store finds a chat locked by another server. */
function countRefusals({ approvals }: Store): { untilMore: (times: number) => Promise<void> } {
  let count = 0
  let waiting: { readonly count: number; readonly resolve: () => void }[] = []
  const lockChat = approvals.lockChat.bind(approvals)
  approvals.lockChat = async (...given) => {
    const isLocked = await lockChat(...given)
    if (!isLocked) count += 1
    const ready = waiting.filter((waiter) => waiter.count <= count)
    waiting = waiting.filter((waiter) => waiter.count > count)
    for (const { resolve } of ready) resolve()
    return isLocked
  }
  return {
    untilMore: (times) =>
      new Promise((resolve) => {
        waiting.push({ count: count + times, resolve })
      }),
  }
}
