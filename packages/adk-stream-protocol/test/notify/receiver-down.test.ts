import { expect } from 'vitest'

import { longTest } from '../../../../test/support/long-test.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { isRefusal } from '../../src/approvals/approval.ts'
import { Ledger } from '../../src/approvals/ledger.ts'
import { Notifier } from '../../src/modules/notify/notifier.ts'
import { webhook } from '../../src/modules/notify/webhook.ts'
import { chat, hanako, NOON, requestOf } from '../../src/store/contract/fixtures.ts'
import { openWithClocks } from '../../src/store/sqlite/sqlite-store.ts'
import { CLOCK, moveClock, openWithClock } from '../ledger/support/subjects.ts'
import { SECRET, startReceiver } from './support/receiver.ts'

const MINUTE = 60_000

longTest(
  '[NT1563] after a receiver was down for an hour, every notice arrives in order, and no decision waited for it',
  async () => {
    await using folder = await temporaryDirectory()
    const path = folder.file('store.db')
    const clock = await openWithClock(path)
    moveClock(clock, NOON)
    const store = await openWithClocks({ path }, { clock: CLOCK })
    const { notices } = store
    if (!notices) throw new Error('The store has no notices.')
    await notices.position(chat.appName)
    let isUp = false
    let refused = 0
    await using receiver = await startReceiver(() => {
      if (!isUp) refused += 1
      return { status: isUp ? 204 : 503 }
    })
    const errors: unknown[] = []
    const onError = (error: unknown): void => void errors.push(error)
    const ledger = new Ledger({ store: store.approvals, appName: chat.appName, onError })
    const notifier = new Notifier({
      channels: { ops: webhook({ url: receiver.url, secret: SECRET, allowPrivateNetwork: true }) },
      store: notices,
      ledger,
      refresh: async (approval) => ({ approval, preview: { state: 'none' } }),
      worker: ledger.worker,
      onError,
    })
    const ids = Array.from({ length: 12 }, (_, index) => `approval-${index}`)
    const logOf = async (id: string) => notices.list(chat.appName, id)
    /** Whether the request to decide each approval was tried and is not being tried now. With another time, an attempt would be given up. */
    const isTried = async (tried: readonly string[], now: number): Promise<boolean> => {
      const logs = await Promise.all(tried.map(logOf))
      return logs.every((log) => log.some(({ attempts, at }) => attempts > 0 && at > now))
    }
    /** Wakes the notifier until the condition holds. */
    const until = async (isDone: () => boolean | Promise<boolean>): Promise<void> => {
      await expect
        .poll(async () => {
          notifier.wake()
          return isDone()
        })
        .toBe(true)
    }
    try {
      // One approval every five minutes, decided at once.
      for (const [index, id] of ids.entries()) {
        const now = NOON + index * 5 * MINUTE
        moveClock(clock, now)
        await ledger.request(requestOf({ id, toolCallId: id, deadlineMs: 24 * 60 * MINUTE }))
        const denied = await ledger.decide(id, { approved: false, by: hanako })
        expect(isRefusal(denied)).toBe(false)
        await until(() => isTried(ids.slice(0, index + 1), now))
      }
      expect(refused).toBeGreaterThanOrEqual(ids.length)
      isUp = true
      // The longest delay until then is that of the fourth failure.
      moveClock(clock, NOON + 180 * MINUTE)
      const states = async (): Promise<string[]> =>
        (await Promise.all(ids.map(logOf))).flat().map(({ state }) => state)
      await until(async () => {
        const all = await states()
        return all.length === ids.length * 2 && all.every((state) => state === 'sent')
      })
      for (const id of ids) {
        const types = receiver.received
          .filter(({ data }) => data['approvalId'] === id)
          .map(({ type }) => type)
        expect([...new Set(types)]).toEqual(['approval.requested', 'approval.denied'])
        expect(types.filter((type) => type === 'approval.denied')).toHaveLength(1)
      }
      expect(errors).toEqual([])
    } finally {
      await notifier.close()
      await ledger.close()
      await store.close()
      clock.close()
    }
  },
)
