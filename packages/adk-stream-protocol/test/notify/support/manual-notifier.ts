import { expect, vi } from 'vitest'

import { temporaryDirectory } from '../../../../../test/support/temporary-directory.ts'
import { Ledger } from '../../../src/approvals/ledger.ts'
import type { NotifyOptions } from '../../../src/modules/notify/notice.ts'
import { Notifier } from '../../../src/modules/notify/notifier.ts'
import { chat, hanako, NOON, requestOf } from '../../../src/store/contract/fixtures.ts'
import { openWithClocks } from '../../../src/store/sqlite/sqlite-store.ts'
import type { NoticeStore } from '../../../src/store/tables/notices.ts'
import { CLOCK, moveClock, openWithClock } from '../../ledger/support/subjects.ts'

interface ManualOptions extends NotifyOptions {
  /** How far the clock of the server is ahead of the one of the store, in ms. Default 0. */
  readonly aheadMs?: number
}

/** The most rows that the notifier had at the same time. */
class Sizes {
  /** Notices that were claimed and not settled, by channel. */
  readonly #claimed = new Map<string, Set<string>>()
  sending = 0
  claims = 0
  planned = 0
  entries = 0

  /** How many notices are being sent. */
  get unsettled(): number {
    return [...this.#claimed.values()].reduce((sum, { size }) => sum + size, 0)
  }

  watch(store: NoticeStore): NoticeStore {
    return {
      ...store,
      plan: async (appName, planned) => {
        this.planned = Math.max(this.planned, planned.notices.length)
        return store.plan(appName, planned)
      },
      claim: async (appName, claim) => {
        const notices = await store.claim(appName, claim)
        this.claims += 1
        for (const { channel, id } of notices) {
          const ids = this.#claimed.get(channel) ?? new Set()
          this.#claimed.set(channel, ids.add(id))
          this.sending = Math.max(this.sending, ids.size)
        }
        return notices
      },
      settle: async (appName, settled) => {
        await store.settle(appName, settled)
        for (const ids of this.#claimed.values()) ids.delete(settled.id)
      },
    }
  }
}

/** A notifier on a SQLite file whose clock the test moves. It starts at noon. */
export async function openNotifier({ aheadMs = 0, ...notify }: ManualOptions) {
  const folder = await temporaryDirectory()
  const path = folder.file('store.db')
  const clock = await openWithClock(path)
  let at = NOON
  const setClock = (next: number): void => {
    at = next
    moveClock(clock, next)
    vi.setSystemTime(next + aheadMs)
  }
  vi.useFakeTimers({ toFake: ['Date'] })
  setClock(NOON)
  const store = await openWithClocks({ path }, { clock: CLOCK })
  const { notices } = store
  if (!notices) throw new Error('The store has no notices.')
  await notices.position(chat.appName)
  const errors: unknown[] = []
  const onError = (error: unknown): void => void errors.push(error)
  const quota = { perChat: 100_000, perPrincipal: 100_000 }
  const ledger = new Ledger({ store: store.approvals, appName: chat.appName, quota, onError })
  const sizes = new Sizes()
  const notifier = new Notifier({
    ...notify,
    store: sizes.watch(notices),
    ledger: {
      appName: chat.appName,
      get: ledger.get.bind(ledger),
      lastSeq: ledger.lastSeq.bind(ledger),
      now: ledger.now.bind(ledger),
      audit: async function* countEntries(filter) {
        let count = 0
        for await (const entry of ledger.audit(filter)) {
          count += 1
          yield entry
        }
        sizes.entries = Math.max(sizes.entries, count)
      },
    },
    refresh: async (approval) => ({ approval, preview: { state: 'none' } }),
    worker: ledger.worker,
    onError,
  })
  /** Wakes the notifier until the condition holds. */
  const until = async (
    isDone: () => boolean | Promise<boolean>,
    timeout = 60_000,
  ): Promise<void> => {
    await expect
      .poll(
        async () => {
          notifier.wake()
          return isDone()
        },
        { timeout },
      )
      .toBe(true)
  }
  return {
    ledger,
    errors,
    sizes,
    /** The time of the store. */
    now: () => at,
    /** Moves the clock when nothing is being sent: a later claim would send it again. */
    setClock: async (next: number): Promise<void> => {
      await expect.poll(() => sizes.unsettled, { timeout: 60_000 }).toBe(0)
      setClock(next)
    },
    listNotices: (id: string) => notices.list(chat.appName, id),
    /** Requests an approval with this id. Its chat belongs to the principal. */
    request: async (id: string, principalId = hanako.id, deadlineMs = 24 * 3_600_000) => {
      const owned = { ...chat, principalId }
      await ledger.request(requestOf({ id, toolCallId: id, chat: owned, deadlineMs }))
    },
    until,
    /** Resolves when the notifier has looked for what is due since now. */
    untilLooked: () => {
      // One may have begun before.
      const looked = sizes.claims + 2 * Object.keys(notify.channels).length
      return until(() => sizes.claims >= looked)
    },
    async [Symbol.asyncDispose]() {
      await notifier.close()
      await ledger.close()
      await store.close()
      clock.close()
      vi.useRealTimers()
      await folder[Symbol.asyncDispose]()
    },
  }
}
