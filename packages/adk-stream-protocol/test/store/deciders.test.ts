import Database from 'libsql'
import { expect, test } from 'vitest'

import { Ledger } from '../../src/approvals/ledger.ts'
import { openSqliteStore } from '../../src/store/index.ts'
import { listConditions } from '../../src/store/sqlite/approval-sql.ts'
import {
  chat,
  executive,
  executiveStep,
  manager,
  managerStep,
  requestOf,
  taken,
  termsOf,
} from '../ledger/support/fixture.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'

test('[LG25] an approval is pending for those who can act on its current step', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const ledger = new Ledger({ store: store.approvals, appName: chat.appName })
  const terms = termsOf(managerStep, executiveStep)
  for (const id of ['first', 'second'])
    taken(await ledger.request(requestOf({ id, toolCallId: id, terms })))
  taken(await ledger.decide('second', { by: manager, approved: true }))
  const seenBy = async (waitsFor: typeof manager) =>
    (await store.approvals.list({ appName: chat.appName, waitsFor, limit: 10 })).map(({ id }) => id)
  expect(await seenBy(executive)).toEqual(['second'])
  expect(await seenBy({ id: 'other', roles: ['manager'] })).toEqual(['first'])
  // A person who has voted can withdraw the vote.
  expect(await seenBy(manager)).toEqual(['first', 'second'])
})

test('[LG25] the inbox of a person is read by indexes, not by scanning the whole application', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  await (await openSqliteStore({ path })).close()
  const database = new Database(path)
  const { conditions, values } = listConditions({
    appName: chat.appName,
    waitsFor: manager,
    limit: 101,
    after: 'approval-1',
  })
  const plan = database
    .prepare(
      `EXPLAIN QUERY PLAN SELECT asked FROM approvals WHERE ${conditions} ORDER BY seq LIMIT 101`,
    )
    .all(...values) as { detail: string }[]
  database.close()
  const details = plan.map(({ detail }) => detail)
  expect(details).toContainEqual(
    expect.stringContaining('approvals_pending (app_name=? AND principal_id=?)'),
  )
  expect(details.filter((detail) => /^SCAN approvals\b/.test(detail))).toEqual([])
  expect(details.filter((detail) => /app_name=\?\)|rowid>/.test(detail))).toEqual([])
})

test('[LG25] the open questions of MCP servers are read by an index of their own', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  await (await openSqliteStore({ path })).close()
  const database = new Database(path)
  const { conditions, values } = listConditions({
    appName: chat.appName,
    states: ['requested'],
    kind: 'elicitation',
    limit: 101,
    after: 'approval-1',
  })
  const plan = database
    .prepare(
      `EXPLAIN QUERY PLAN SELECT asked FROM approvals WHERE ${conditions} ORDER BY seq LIMIT 101`,
    )
    .all(...values) as { detail: string }[]
  database.close()
  expect(plan[0]?.detail).toContain('approvals_elicitations (app_name=?')
})
