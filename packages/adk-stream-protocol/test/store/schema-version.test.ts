import { createHash } from 'node:crypto'

import { expect, test } from 'vitest'
import { z } from 'zod'

import { EventNotes } from '../../src/agent/events/event-notes.ts'
import { migrations as postgres } from '../../src/store/postgres/migrations.ts'
import { FIRST_VERSION } from '../../src/store/schema-version.ts'
import { migrations as sqlite } from '../../src/store/sqlite/migrations.ts'

/** If this test fails before the first release, raise `FIRST_VERSION`, and change the digest. After it, add a migration. */
test('[ST28] the tables and the notes of stored events have not changed since their version', () => {
  const notes = z.toJSONSchema(EventNotes, { unrepresentable: 'any' })
  const stored = JSON.stringify([sqlite[0], postgres[0]?.sql, notes])
  const digest = createHash('sha256').update(stored).digest('hex').slice(0, 16)
  expect([FIRST_VERSION, digest]).toEqual([104, 'f30e8ab8a92f0593'])
})
