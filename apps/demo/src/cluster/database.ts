import { existsSync } from 'node:fs'
import path from 'node:path'

import { createEmbeddedPostgres } from './embedded-postgres.ts'

export interface ClusterDatabase extends AsyncDisposable {
  readonly url: string
}

const DATABASE = 'demo'

/** Starts a real PostgreSQL from npm. Its data stays in `folder`. */
export async function startDatabase(folder: string): Promise<ClusterDatabase> {
  const { server, databaseDir, urlOf } = await createEmbeddedPostgres({ folder, persistent: true })
  const isNew = !existsSync(path.join(databaseDir, 'PG_VERSION'))
  if (isNew) await server.initialise()
  await server.start()
  if (isNew) await server.createDatabase(DATABASE)
  return { url: urlOf(DATABASE), [Symbol.asyncDispose]: () => server.stop() }
}
