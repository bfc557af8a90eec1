import Database from 'libsql'
import { expect, test } from 'vitest'

import { Ledger } from '../../src/approvals/ledger.ts'
import { openSqliteStore } from '../../src/store/index.ts'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { visibleQuery } from '../../src/store/sqlite/approval-sql.ts'
import type { Store } from '../../src/store/store.ts'
import {
  chat,
  executive,
  executiveStep,
  hanako,
  manager,
  managerStep,
  requestOf,
  taken,
  termsOf,
} from '../ledger/support/fixture.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { createDatabase } from '../support/postgres.ts'

/** Requests two approvals and decides one of them. The arguments contain what PostgreSQL cannot store as text. */
async function request(store: Store): Promise<void> {
  const ledger = new Ledger({ store: store.approvals, appName: chat.appName })
  const terms = termsOf(managerStep, executiveStep)
  for (const id of ['first', 'second'])
    taken(
      await ledger.request(
        requestOf({ id, toolCallId: id, terms, args: { text: '\\\0\ud800\\u0000' } }),
      ),
    )
  taken(await ledger.decide('second', { by: manager, approved: false }))
}

async function listed(store: Store): Promise<string[][]> {
  const { appName } = chat
  return Promise.all(
    [hanako, manager, executive].map(async (reader) =>
      ((await store.approvals.listVisible?.({ appName, reader, limit: 10 })) ?? []).map(
        ({ id }) => id,
      ),
    ),
  )
}

const BOTH = ['second', 'first']

test('[LG450] an approval is listed for those who may see it, on SQLite', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  await request(store)
  expect(await listed(store)).toEqual([BOTH, BOTH, BOTH])
})

test('[LG450] an approval is listed for those who may see it, on PostgreSQL', async () => {
  await using database = await createDatabase()
  await using store = await openPostgresStore({ connectionString: database.url })
  await request(store)
  expect(await listed(store)).toEqual([BOTH, BOTH, BOTH])
})

test('[LG450] the approvals that a person may see are read by indexes, in their order', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  await (await openSqliteStore({ path })).close()
  const database = new Database(path)
  const { conditions, values } = visibleQuery({
    appName: chat.appName,
    reader: manager,
    states: ['denied'],
    toolName: 'pay',
    limit: 21,
    after: 'approval-1',
  })
  const plan = database
    .prepare(`EXPLAIN QUERY PLAN SELECT asked FROM approvals WHERE ${conditions}`)
    .all(...values) as { detail: string }[]
  database.close()
  const details = plan.map(({ detail }) => detail)
  expect(details).toContainEqual(
    expect.stringMatching(
      /^SEARCH reader USING PRIMARY KEY \(app_name=\? AND name=\? AND seq<\?\)/,
    ),
  )
  // Neither table is read as a whole.
  expect(details.filter((detail) => /^SCAN (approvals|reader|listed)\b/.test(detail))).toEqual([])
})
