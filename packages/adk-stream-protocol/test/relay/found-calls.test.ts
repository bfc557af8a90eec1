import { afterEach, expect, test, vi } from 'vitest'

import { Ledger } from '../../src/approvals/ledger.ts'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { PostgresApprovalStore } from '../../src/store/postgres/postgres-approval-store.ts'
import { defer } from '../support/agents.ts'
import { createRelayDatabase, SCHEMA } from './support/relays.ts'
import { openRelayPair } from './support/servers.ts'

afterEach(() => void vi.restoreAllMocks())

test('[AP70] a call that two servers find approved is continued by one of them, and the other one starts no turn', async () => {
  await using database = await createRelayDatabase()
  await using pair = await openRelayPair(database, 'found')
  const { approvalId, messageId } = await pair.atOne.ask()
  await using store = await openPostgresStore({ connectionString: database.url, schema: SCHEMA })
  const chat = { appName: 'adk-stream-protocol', principalId: 'hanako', chatId: 'found' }
  const ledger = new Ledger({ store: store.approvals, appName: chat.appName, leaseMs: 15_000 })
  const { prototype } = PostgresApprovalStore
  const lock = Reflect.get(prototype, 'lockChat')
  const found = new Set<string>()
  const bothFound = defer()
  const locked: string[] = []
  vi.spyOn(prototype, 'lockChat').mockImplementation(async function (
    this: PostgresApprovalStore,
    ...given
  ) {
    const [, { worker }] = given
    if (found.add(worker).size === 2) bothFound.resolve()
    await bothFound.promise
    const isLocked = await lock.apply(this, given)
    if (isLocked) locked.push(worker)
    return isLocked
  })
  await ledger.decide(approvalId, { by: { id: 'hanako', roles: [] }, approved: true })
  await expect.poll(() => new Set(locked).size).toBe(2)
  // What a server has to write to the relay, it writes in one go.
  const next = [await pair.atOne.say('[[say Next.]]'), await pair.atTwo.say('[[say Next.]]')]
  const nextIds = next.map(({ chunks }) => String(chunks[0]?.['messageId']))
  const turns = async (ids: readonly string[]) =>
    database.run(`SELECT FROM ${SCHEMA}.relay_turns WHERE message_id = ANY ($1)`, [ids])
  await expect.poll(() => turns(nextIds)).toHaveLength(2)
  // The turn that asked, and the one that continued.
  expect(await turns([messageId])).toHaveLength(2)
  expect(pair.effects()).toHaveLength(1)
})
