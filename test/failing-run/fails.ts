import { expect, test } from 'vitest'

import { createDatabase } from '../../packages/adk-stream-protocol/test/support/postgres.ts'

test('fails while PostgreSQL runs', async () => {
  await using database = await createDatabase()
  expect(await database.run('SELECT 1 AS one')).toEqual([{ one: 2 }])
})
