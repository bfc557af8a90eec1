import { readFile, writeFile } from 'node:fs/promises'
import Database from 'libsql'
import { expect, test } from 'vitest'
import type { Approval } from '../../src/approvals/approval.ts'
import { Ledger } from '../../src/approvals/ledger.ts'
import { isRefusal } from '../../src/approvals/approval.ts'
import { openDatabase } from '../../src/store/sqlite/open-database.ts'
import { SqliteApprovalStore } from '../../src/store/sqlite/sqlite-approval-store.ts'
import { chat, collect, hanako, requestOf, taken, termsOf } from './support/fixture.ts'
import { isLong, times } from '../../../../test/support/long-run.ts'
import { bundleChildren, type Children } from './support/children.ts'

function callOf(id: string) {
  return { chat, toolCallId: `call of ${id}`, toolName: 'process_payment', args: { amount: 50 } }
}

async function openLedger(
  path: string,
  leaseMs = 0,
): Promise<AsyncDisposable & { ledger: Ledger }> {
  const connection = await openDatabase(path)
  const store = new SqliteApprovalStore(connection)
  const quota = { perChat: 1_000, perPrincipal: 1_000 }
  return {
    ledger: new Ledger({ store, appName: chat.appName, leaseMs, quota }),
    [Symbol.asyncDispose]: async () => connection.close(),
  }
}

test('[AP13] of fifty concurrent decisions over two connections, one is accepted and the others get the outcome', async () => {
  await using children = await bundleChildren()
  await using one = await openLedger(children.file('s.db'))
  await using two = await openLedger(children.file('s.db'))
  for (let round = 0; round < times(3, 20); round += 1) {
    const id = `approval-${round}`
    taken(await one.ledger.request({ ...requestOf(callOf(id)), id }))
    const results = await Promise.all(
      Array.from({ length: 50 }, (_, number) =>
        (number % 2 ? one : two).ledger.decide(id, {
          by: hanako,
          approved: number % 3 !== round % 3,
        }),
      ),
    )
    const accepted = results.flatMap((result) => (isRefusal(result) ? [] : [result]))
    expect(accepted).toHaveLength(1)
    const end = (await two.ledger.get(id))?.state
    expect(accepted.map(({ state }) => state)).toEqual([end])
    const refused = results.filter(isRefusal)
    expect(refused).toEqual(refused.map(() => ({ refused: 'already-decided', state: end })))
  }
})

test('[AP13] two processes that concurrently decide and claim a hundred approvals get each one once', async () => {
  await using children = await bundleChildren()
  const path = children.file('s.db')
  await using parent = await openLedger(path, 60_000)
  const ids = Array.from({ length: 100 }, (_, number) => `approval-${number}`)
  for (const id of ids) taken(await parent.ledger.request({ ...requestOf(callOf(id)), id }))
  await using one = children.start(['race', path, ...ids])
  await using two = children.start(['race', path, ...ids])
  await Promise.all([one.ready(), two.ready()])
  one.go()
  two.go()
  expect([await one.ended, await two.ended]).toEqual([0, 0])
  const reported = [one, two].map(({ lines }) =>
    lines.slice(1).map((line) => JSON.parse(line) as [id: string, ...results: string[]]),
  )
  for (const id of ids) {
    const results = reported.map((list) => list.find(([own]) => own === id)?.slice(1) ?? [])
    expect(results.filter(([approved]) => approved === 'approved')).toHaveLength(1)
    expect(results.filter(([approved]) => approved === 'already-decided')).toHaveLength(1)
    expect(results.map(([, denied]) => denied)).toEqual(['already-decided', 'already-decided'])
    expect(results.filter(([, , claimed]) => claimed === 'executing')).toHaveLength(1)
    expect(results.filter(([, , claimed]) => claimed === 'already-decided')).toHaveLength(1)
    const audit = await collect(parent.ledger.audit({ approvalId: id }))
    expect(audit.map(({ event }) => event.type)).toEqual(['requested', 'approved', 'started'])
  }
})

/** Where a process is killed, the state that it leaves, and whether its tool had run. */
const deaths = [
  ['before request', 'nothing', 0],
  ['in request', 'nothing', 0],
  ['after request', 'requested', 0],
  ['before decide', 'requested', 0],
  ['in decide', 'requested', 0],
  ['after decide', 'approved', 0],
  ['before claim', 'approved', 0],
  ['in claim', 'approved', 0],
  ['after claim', 'executing', 0],
  ['before the tool', 'executing', 0],
  ['after the tool', 'executing', 1],
  ['before succeed', 'executing', 1],
  ['in succeed', 'executing', 1],
  ['after succeed', 'succeeded', 1],
] as const

const LANES = 2
const ROUNDS = times(1, 4)

test.each([false, true])(
  '[AP42] a process killed at any step loses nothing and repeats nothing but an idempotent tool (idempotent: %s)',
  async (idempotent) => {
    await using children = await bundleChildren()
    const lanes = Array.from({ length: LANES }, (_, lane) => runLane(children, lane, idempotent))
    const kills = (await Promise.all(lanes)).reduce((sum, count) => sum + count, 0)
    expect(kills).toBe(deathsOf(idempotent).length * ROUNDS)
  },
)

/** Only a call that ran is repeated or not. `npm run test:long` kills an idempotent one at the other steps too. */
function deathsOf(idempotent: boolean) {
  return deaths.filter(([, left]) => isLong || !idempotent || left === 'executing')
}

/** Every lane has its own database and takes every other death: one process at a time, each killed at its own point. */
async function runLane(children: Children, lane: number, idempotent: boolean): Promise<number> {
  const path = children.file(`${lane}.db`)
  const effects = children.file(`${lane}.effects`)
  await writeFile(effects, '')
  await using survivor = await openLedger(path)
  let kills = 0
  const own = deathsOf(idempotent).filter((_, index) => index % LANES === lane)
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [point, left, ran] of own) {
      const id = `${point} ${round}`
      const env = { DIE_AT: point, EFFECTS: effects, IDEMPOTENT: String(idempotent) }
      await using child = children.start(['live', path, id], env)
      expect(await child.ended).toBe('SIGKILL')
      kills += 1
      const found = await survivor.ledger.get(id)
      expect([point, found?.state.name ?? 'nothing']).toEqual([point, left])
      expect([point, await countEffects(effects, id)]).toEqual([point, ran])
      expectAcknowledged(child.lines, found)
      const runs = ran + (await repeat(survivor.ledger, id, idempotent))
      const isLost = left === 'executing' && !idempotent
      const end = isLost ? ['unknown', ran] : ['succeeded', left === 'executing' ? ran + 1 : 1]
      expect([(await survivor.ledger.get(id))?.state.name, runs]).toEqual(end)
      await expectWholeAudit(survivor.ledger, id)
    }
  }
  expect(new Database(path).pragma('integrity_check')).toEqual([{ integrity_check: 'ok' }])
  return kills
}

/** Everything that was acknowledged before the kill is stored. */
function expectAcknowledged(lines: readonly string[], found: Approval | undefined): void {
  const reported = lines.map((line) => line.split(' ')[0])
  const order = ['asked', 'decided', 'claimed', 'succeeded']
  const stored = ['requested', 'approved', 'executing', 'succeeded']
  const reached = stored.indexOf(found?.state.name ?? '')
  for (const word of reported) expect(order.indexOf(word ?? '')).toBeLessThanOrEqual(reached)
}

/** Repeats everything, like a new process without any state. Returns how often it ran the tool. */
async function repeat(ledger: Ledger, id: string, idempotent: boolean): Promise<number> {
  await ledger.recover()
  const terms = { ...termsOf(), idempotent }
  taken(await ledger.request({ ...requestOf(callOf(id)), id, terms }))
  await ledger.decide(id, { by: hanako, approved: true })
  const claimed = await ledger.claim(id, callOf(id))
  if (isRefusal(claimed)) return 0
  taken(await ledger.succeed(id, { ok: true }))
  return 1
}

async function expectWholeAudit(ledger: Ledger, id: string): Promise<void> {
  const audit = await collect(ledger.audit({ approvalId: id }))
  expect(audit.map(({ version }) => version)).toEqual(audit.map((_, index) => index))
  expect(audit.at(-1)?.version).toBe((await ledger.get(id))?.version)
}

async function countEffects(file: string, id: string): Promise<number> {
  return (await readFile(file, 'utf8')).split('\n').filter((line) => line === id).length
}
