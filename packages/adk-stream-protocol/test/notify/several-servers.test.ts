import { expect, test } from 'vitest'

import { times } from '../../../../test/support/long-run.ts'
import { isRefusal } from '../../src/approvals/approval.ts'
import { Ledger } from '../../src/approvals/ledger.ts'
import { Notifier } from '../../src/modules/notify/notifier.ts'
import { webhook } from '../../src/modules/notify/webhook.ts'
import { chat, hanako, requestOf } from '../../src/store/contract/fixtures.ts'
import type { NoticeStore } from '../../src/store/tables/notices.ts'
import { DATABASES } from '../support/store-databases.ts'
import { SECRET, startReceiver } from './support/receiver.ts'

const COUNT = times(20, 1_000)

/** What is left of a process that was killed: it claims nothing more, and stores no result of what it was sending. */
function killAfter(store: NoticeStore, claims: number): NoticeStore {
  let isAlive = true
  let claimed = 0
  return {
    ...store,
    position: async (appName) => (isAlive ? store.position(appName) : Number.MAX_SAFE_INTEGER),
    claim: async (appName, claim) => {
      if (!isAlive) return []
      const notices = await store.claim(appName, claim)
      claimed += notices.length
      if (claimed >= claims) isAlive = false
      return notices
    },
    settle: async (appName, settled) => {
      if (isAlive) await store.settle(appName, settled)
    },
  }
}

test.each(DATABASES)(
  `[NT1569] ${COUNT} approvals on three servers, of which one is killed, reach a webhook in order, on $name`,
  { timeout: 300_000 },
  async ({ open }) => {
    await using database = await open()
    await using receiver = await startReceiver()
    const channels = {
      ops: webhook({ url: receiver.url, secret: SECRET, allowPrivateNetwork: true }),
    }
    const errors: unknown[] = []
    const servers = await Promise.all(
      [0, 1, 2].map(async (index) => {
        const store = await database.openStore()
        const { notices } = store
        if (!notices) throw new Error('The store has no notices.')
        // What is requested from now on is planned.
        await notices.position(chat.appName)
        const ledger = new Ledger({
          store: store.approvals,
          appName: chat.appName,
          quota: { perChat: COUNT, perPrincipal: COUNT },
          onError: (error) => errors.push(error),
        })
        const notifier = new Notifier({
          channels,
          store: index === 0 ? killAfter(notices, COUNT / 10) : notices,
          ledger,
          refresh: async (approval) => ({ approval, preview: { state: 'none' } }),
          worker: ledger.worker,
          claimMs: 2_000,
          onError: (error) => errors.push(error),
        })
        ledger.onChange(() => notifier.wake())
        const sweeps = setInterval(() => notifier.wake(), 100)
        return { store, ledger, notifier, sweeps }
      }),
    )
    try {
      await Promise.all(
        Array.from({ length: COUNT }, async (_, index) => {
          const id = `approval-${index}`
          const one = servers[index % 3]?.ledger
          const other = servers[(index + 1) % 3]?.ledger
          await one?.request(requestOf({ id, toolCallId: `call-${index}` }))
          const denied = await other?.decide(id, { approved: false, by: hanako })
          if (!denied || isRefusal(denied)) throw new Error(`${id} was not denied.`)
        }),
      )
      const types = (id: string): string =>
        [
          ...new Map(
            receiver.received
              .filter(({ data }) => data['approvalId'] === id)
              .map((one) => [one.id, one.type]),
          ).values(),
        ].join()
      const ids = Array.from({ length: COUNT }, (_, index) => `approval-${index}`)
      await expect
        .poll(() => ids.filter((id) => types(id) !== 'approval.requested,approval.denied'), {
          timeout: 240_000,
        })
        .toEqual([])
      // What the killed server was sending is sent again, and nothing else.
      expect(receiver.received.length).toBeLessThanOrEqual(COUNT * 2 + 4)
      expect(errors).toEqual([])
    } finally {
      for (const { notifier, sweeps } of servers) {
        clearInterval(sweeps)
        await notifier.close()
      }
      for (const { ledger, store } of servers) {
        await ledger.close()
        await store.close()
      }
    }
  },
)
