import { mkdtempSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer as createTcpServer, type AddressInfo, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

import { createEmbeddedPostgres } from '../../apps/demo/src/cluster/embedded-postgres.ts'

/** The environment variable with the port on which tests request the URL of the PostgreSQL server. */
const VARIABLE = 'TEST_POSTGRES_BROKER'

/**
 * Provides one PostgreSQL server for the whole test run. It starts when the first test needs it, so a run without such
 * tests does not start it. Returns a function that stops it.
 */
export default async function setup(): Promise<(() => Promise<void>) | undefined> {
  // Each project of the configuration runs the setup. The first one counts.
  if (process.env[VARIABLE] !== undefined) return undefined
  let running: Promise<RunningPostgres> | undefined
  const broker = createTcpServer((socket) => {
    socket.on('error', () => undefined)
    running ??= startPostgres()
    running.then(
      ({ url }) => socket.end(JSON.stringify({ url })),
      (error: unknown) => socket.end(JSON.stringify({ error: String(error) })),
    )
  })
  process.env[VARIABLE] = String(await listen(broker))
  return async () => {
    delete process.env[VARIABLE]
    broker.close()
    await (await running?.catch(() => undefined))?.stop()
  }
}

export interface RunningPostgres {
  /** The URL of its maintenance database, with the rights of a superuser. */
  readonly url: string
  /** The folder of its data. */
  readonly folder: string
  readonly port: number
  readonly stop: () => Promise<void>
  /** Stops the server, waits, and starts it again. With `immediate` it stops as in a crash. */
  readonly restart: (mode: ShutdownMode, downMs?: number) => Promise<void>
}

/** How PostgreSQL stops: it ends all connections and stops in order, or it stops at once and recovers at its next start. */
export type ShutdownMode = 'fast' | 'immediate'

const SIGNALS = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

/**
 * Starts a real PostgreSQL from npm, on a port and in a folder of its own. It does not wait for the disk unless `settings`
 * say so. Tests that stop or restart a server start one of their own.
 */
export async function startPostgres(settings: readonly string[] = []): Promise<RunningPostgres> {
  const { server, databaseDir, port, urlOf } = await createEmbeddedPostgres({
    folder: mkdtempSync(path.join(tmpdir(), 'postgres-')),
    persistent: false,
    // By default, the password of each connection is hashed 4096 times, which takes half of the CPU time of a connection.
    initdbFlags: ['--no-sync', '--set=scram_iterations=1'],
    settings: [...SETTINGS, ...settings],
  })
  await server.initialise()
  await server.start()
  return {
    url: urlOf('postgres'),
    folder: databaseDir,
    port,
    stop: () => server.stop(),
    restart: async (mode, downMs = 0) => {
      const [pid] = (await readFile(path.join(databaseDir, 'postmaster.pid'), 'utf8')).split('\n')
      process.kill(Number(pid), SIGNALS[mode])
      while (isRunning(Number(pid))) await delay(10)
      await delay(downMs)
      await server.start()
    },
  }
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

const SETTINGS = [
  'fsync=off',
  'full_page_writes=off',
  'autovacuum=off',
  'max_connections=200',
  'shared_buffers=32MB',
]

/** Listens on a free port of this machine. Returns the port. */
function listen(server: Server): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    // A server that listens on a port has such an address.
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port))
  })
}
