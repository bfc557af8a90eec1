import { expect, test } from 'vitest'

import { longTest } from '../../../../test/support/long-test.ts'
import { times } from '../../../../test/support/long-run.ts'
import { isRefusal } from '../../src/approvals/approval.ts'
import type { Notice, NoticeChannel } from '../../src/modules/notify/notice.ts'
import { webhook } from '../../src/modules/notify/webhook.ts'
import { hanako, NOON } from '../../src/store/contract/fixtures.ts'
import { openNotifier } from './support/manual-notifier.ts'
import { SECRET, startReceiver } from './support/receiver.ts'

const MINUTE = 60_000
const HOUR = 60 * MINUTE

/** How many notices a channel sends at the same time. */
const SENT_TOGETHER = 4
/** How many entries of the audit record are read together. */
const READ_TOGETHER = 200

function toReceiver({ url }: { readonly url: string }): NoticeChannel {
  return webhook({ url, secret: SECRET, allowPrivateNetwork: true })
}

/** Returns the names of many approvals. */
const idsOf = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => `approval-${index}`)

longTest(
  '[NT1563] after a receiver was down for an hour, every notice arrives in order, and no decision waited for it',
  async () => {
    let isUp = false
    let refused = 0
    await using receiver = await startReceiver(() => {
      if (!isUp) refused += 1
      return { status: isUp ? 204 : 503 }
    })
    await using opened = await openNotifier({ channels: { ops: toReceiver(receiver) } })
    const { ledger, until, listNotices } = opened
    const ids = idsOf(12)
    /** Whether the request to decide each approval was tried and is not being tried now. With another time, an attempt would be given up. */
    const isTried = async (tried: readonly string[]): Promise<boolean> => {
      const logs = await Promise.all(tried.map(listNotices))
      return logs.every((log) => log.some(({ attempts, at }) => attempts > 0 && at > opened.now()))
    }
    // One approval every five minutes, decided at once.
    for (const [index, id] of ids.entries()) {
      await opened.setClock(NOON + index * 5 * MINUTE)
      await opened.request(id)
      expect(isRefusal(await ledger.decide(id, { approved: false, by: hanako }))).toBe(false)
      await until(() => isTried(ids.slice(0, index + 1)))
    }
    expect(refused).toBeGreaterThanOrEqual(ids.length)
    isUp = true
    // The longest delay until then is that of the fourth failure.
    await opened.setClock(NOON + 3 * HOUR)
    await until(async () => {
      const all = (await Promise.all(ids.map(listNotices))).flat()
      return all.length === ids.length * 2 && all.every(({ state }) => state === 'sent')
    })
    for (const id of ids) {
      const types = receiver.received
        .filter(({ data }) => data['approvalId'] === id)
        .map(({ type }) => type)
      expect([...new Set(types)]).toEqual(['approval.requested', 'approval.denied'])
      expect(types.filter((type) => type === 'approval.denied')).toHaveLength(1)
    }
    expect(opened.errors).toEqual([])
  },
)

test('[NT1563] a notice that does not arrive in ten attempts within about three days is given up and reported, and the next one is tried', async () => {
  await using receiver = await startReceiver(() => ({ status: 503 }))
  await using opened = await openNotifier({ channels: { ops: toReceiver(receiver) } })
  await opened.request('approval-1', hanako.id, 1_000 * HOUR)
  await opened.ledger.decide('approval-1', { approved: false, by: hanako })
  const read = async () =>
    (await opened.listNotices('approval-1')).find(({ body }) => body.includes('requested'))
  for (let count = 1; count < 10; count += 1) {
    await opened.until(async () => {
      const { attempts = 0, at = 0 } = (await read()) ?? {}
      return attempts === count && at > opened.now()
    })
    await opened.setClock((await read())?.at ?? 0)
  }
  expect(new Set(receiver.types())).toEqual(new Set(['approval.requested']))
  await opened.until(() => receiver.types().includes('approval.denied'))
  expect(receiver.types().filter((type) => type === 'approval.requested')).toHaveLength(10)
  const days = (opened.now() - NOON) / (24 * HOUR)
  expect(days).toBeGreaterThan(3)
  expect(days).toBeLessThan(3.5)
  const { state, answer } = (await read()) ?? {}
  expect([state, answer]).toEqual(['failed', 'The webhook answered HTTP 503.'])
  expect(opened.errors.map(String)).toEqual([expect.stringContaining('did not reach')])
})

const FLOOD = times(60, 2_000)

test(
  `[NT1945] while one receiver is down, ${FLOOD} approvals of a person reach another one in order, those of others do not wait, and none is lost`,
  { timeout: 300_000 },
  async () => {
    let isUp = false
    await using down = await startReceiver(() => ({ status: isUp ? 204 : 503 }))
    await using up = await startReceiver()
    await using opened = await openNotifier({
      channels: { down: toReceiver(down), up: toReceiver(up) },
    })
    const { ledger, until, sizes } = opened
    const ids = idsOf(FLOOD)
    for (const id of ids) {
      await opened.request(id)
      await ledger.decide(id, { approved: false, by: hanako })
    }
    await opened.request('of another', 'taro')
    const arrivals = ({ received }: typeof up): Map<unknown, string> => {
      const types = new Map<unknown, string>()
      for (const { type, data } of new Map(received.map((one) => [one.id, one])).values()) {
        const before = types.get(data['approvalId'])
        types.set(data['approvalId'], before === undefined ? type : `${before} ${type}`)
      }
      return types
    }
    const BOTH = 'approval.requested approval.denied'
    const hasAll = (receiver: typeof up): boolean => {
      const arrived = arrivals(receiver)
      return arrived.has('of another') && ids.every((id) => arrived.get(id) === BOTH)
    }
    await until(() => hasAll(up), 200_000)
    expect(isUp).toBe(false)
    // Principals take turns.
    const place = up.received.findIndex(({ data }) => data['approvalId'] === 'of another')
    expect(place).toBeLessThan(SENT_TOGETHER * 2)
    // Each was tried once, and its denial waits for it.
    await until(() => new Set(down.received.map(({ id }) => id)).size === FLOOD + 1, 200_000)
    expect(new Set(down.types())).toEqual(new Set(['approval.requested']))
    isUp = true
    down.received.length = 0
    await opened.setClock(NOON + MINUTE)
    await until(() => hasAll(down), 200_000)
    expect(sizes.sending).toBe(SENT_TOGETHER)
    expect(sizes.entries).toBeLessThanOrEqual(READ_TOGETHER)
    expect(opened.errors).toEqual([])
  },
)

const PENDING = times(250, 2_000)

test(
  `[NT1946] of ${PENDING} approvals that wait, reminders and expiry are read in pages, and nothing is read until they are due`,
  { timeout: 300_000 },
  async () => {
    const notices: Notice[] = []
    const chat: NoticeChannel = { send: async (notice) => void notices.push(notice) }
    await using opened = await openNotifier({
      channels: { chat },
      plan: () => [{ tell: 'chat' }, { tell: 'chat', after: 10 * MINUTE, to: 'backup' }],
    })
    const { ledger, until, sizes } = opened
    for (const id of idsOf(PENDING)) await opened.request(id, hanako.id, 30 * MINUTE)
    const count = (type: string): number =>
      notices.filter((notice) => notice.type === `approval.${type}`).length
    await until(() => count('requested') === PENDING, 200_000)
    await opened.setClock(NOON + 9 * MINUTE)
    await opened.untilLooked()
    expect(count('reminder')).toBe(0)
    await opened.setClock(NOON + 10 * MINUTE)
    await until(() => count('reminder') === PENDING, 200_000)
    expect(new Set(notices.map(({ to }) => to))).toEqual(new Set([undefined, 'backup']))
    await opened.setClock(NOON + 31 * MINUTE)
    const pages: number[] = []
    for (;;) {
      const expired = await ledger.expireDue()
      if (expired.length === 0) break
      pages.push(expired.length)
    }
    expect(Math.max(...pages)).toBe(100)
    await until(() => count('expired') === PENDING, 200_000)
    expect(sizes).toMatchObject({ sending: SENT_TOGETHER, entries: READ_TOGETHER })
    expect(sizes.planned).toBeLessThanOrEqual(READ_TOGETHER * 2)
    expect(notices).toHaveLength(PENDING * 3)
    expect(opened.errors).toEqual([])
  },
)

test('[NT1561] a reminder is not sent if the decision came when it was due', async () => {
  const types: string[] = []
  const chat: NoticeChannel = { send: async ({ type }) => void types.push(type) }
  await using opened = await openNotifier({
    channels: { chat },
    plan: () => [{ tell: 'chat' }, { tell: 'chat', after: MINUTE }],
  })
  await opened.request('approval-1')
  await opened.until(() => types.length === 1)
  await opened.setClock(NOON + MINUTE)
  await opened.ledger.decide('approval-1', { approved: false, by: hanako })
  await opened.until(() => types.includes('approval.denied'))
  await opened.untilLooked()
  expect(types).toEqual(['approval.requested', 'approval.denied'])
  const log = await opened.listNotices('approval-1')
  expect(log.map(({ state }) => state).toSorted()).toEqual(['ended', 'sent', 'sent'])
})

test.each([HOUR, -HOUR])(
  '[NT1947] notices of a server whose clock is wrong by %i ms are on time, and receivers accept them',
  async (aheadMs) => {
    let now = NOON
    await using receiver = await startReceiver(undefined, SECRET, () => now)
    await using opened = await openNotifier({
      aheadMs,
      channels: { ops: toReceiver(receiver) },
      plan: () => [{ tell: 'ops' }, { tell: 'ops', after: 10 * MINUTE }],
    })
    await opened.request('approval-1')
    await opened.until(() => receiver.received.length === 1)
    now = NOON + 9 * MINUTE
    await opened.setClock(now)
    await opened.untilLooked()
    expect(receiver.received).toHaveLength(1)
    now = NOON + 10 * MINUTE
    await opened.setClock(now)
    await opened.until(() => receiver.received.length === 2)
    expect(receiver.types()).toEqual(['approval.requested', 'approval.reminder'])
    expect(opened.errors).toEqual([])
  },
)
