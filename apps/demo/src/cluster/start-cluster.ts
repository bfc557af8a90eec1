import path from 'node:path'
import { existsSync } from 'node:fs'

import { openHttpServer } from '../server/http-server.ts'
import { createLifetime } from '../server/lifetime.ts'
import { startDemoEmulator } from '../server/model.ts'
import { APPROVER_ADDRESS, createApproverCode, mayChooseRoles } from '../server/roles.ts'
import { type Environment, readSettings } from '../server/settings.ts'
import { type InstancesOptions, startInstances } from './instances.ts'
import { createRoundRobinProxy } from './round-robin-proxy.ts'
import { createEmbeddedPostgres } from './embedded-postgres.ts'

export interface Cluster {
  readonly url: string
  /** The process ids of the instances, by name. */
  readonly pids: () => ReadonlyMap<string, number>
  /** Start-up output for the terminal. */
  readonly summary: readonly string[]
  close(): Promise<void>
}

const NAMES = ['A', 'B']

/**
 * Starts two instances of the demo on one PostgreSQL database, behind a proxy that sends each request to the other instance. The
 * database of `DATABASE_URL` is used if it is set. Otherwise a PostgreSQL from npm starts, with its data in a folder beside `DATA_DIR`.
 */
export async function startCluster(
  env: Environment,
  options: Pick<InstancesOptions, 'program' | 'onChange'>,
): Promise<Cluster> {
  const settings = readSettings(env)
  const lifetime = createLifetime()
  try {
    const databaseUrl =
      settings.databaseUrl ??
      // Next to the data folder, which only this user may enter: as root, PostgreSQL runs as another user.
      lifetime.use(await startDatabase(`${settings.dataDir}-postgres`)).url
    // The instances share an emulator, as they would share Gemini: a live session may resume at another instance.
    const emulator = settings.geminiKey === undefined ? await startDemoEmulator() : undefined
    if (emulator) lifetime.defer(() => emulator.close())
    const code = mayChooseRoles(settings) ? createApproverCode() : undefined
    const instances = await startInstances({
      ...options,
      names: NAMES,
      env: {
        ...process.env,
        ...env,
        HOST: '127.0.0.1',
        DATABASE_URL: databaseUrl,
        ...(emulator && { DEMO_EMULATOR_URL: emulator.baseUrl }),
        ...(code !== undefined && { DEMO_APPROVER_CODE: code }),
      },
    })
    lifetime.defer(() => instances.stop())
    const { url } = lifetime.use(
      await openHttpServer({
        ...settings,
        ...createRoundRobinProxy(instances.accepting),
        drainMs: 0,
      }),
    )
    return {
      url,
      pids: instances.pids,
      summary: [
        `Open ${url}`,
        `Each request goes to another instance: ${[...instances.pids()].map(([name, pid]) => `${name} (process ${pid})`).join(', ')}`,
        `Try: kill -9 ${[...instances.pids().values()][0]} in the middle of a reply`,
        ...(code === undefined
          ? []
          : [
              `Approver ${url}${APPROVER_ADDRESS}&code=${code} makes another browser the second approver`,
            ]),
      ],
      close: () => lifetime.close(),
    }
  } catch (cause) {
    await lifetime.close()
    throw cause
  }
}

interface ClusterDatabase extends AsyncDisposable {
  readonly url: string
}

const DATABASE = 'demo'

/** Starts a real PostgreSQL from npm. Its data stays in `folder`. */
async function startDatabase(folder: string): Promise<ClusterDatabase> {
  const { server, databaseDir, urlOf } = await createEmbeddedPostgres({ folder, persistent: true })
  const isNew = !existsSync(path.join(databaseDir, 'PG_VERSION'))
  if (isNew) await server.initialise()
  await server.start()
  if (isNew) await server.createDatabase(DATABASE)
  return { url: urlOf(DATABASE), [Symbol.asyncDispose]: () => server.stop() }
}
