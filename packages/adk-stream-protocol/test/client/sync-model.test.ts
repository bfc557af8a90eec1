import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { isLong } from '../../../../test/support/long-run.ts'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { startBusyProcesses } from '../support/busy-processes.ts'
import { createDatabase } from '../support/postgres.ts'
import { type Program, programs } from './support/sync-program.ts'
import { runProgram, type SyncOptions } from './support/sync-world.ts'

// Random programs of what a person does in tabs, what the network does to them, and what an operator does to the servers. At the end every
// tab shows what is stored, and nothing was done twice or without a decision. A failure prints the seed, the path and the shortest
// program that was found. `SYNC_MODEL_MINUTES=20` runs each mode for that time, `SYNC_MODEL_PRESSURE=4` keeps the machine busy with four
// processes, and `SYNC_MODEL_SEED` and `SYNC_MODEL_PATH` repeat a failure.

interface Mode {
  readonly name: string
  readonly live: boolean
  readonly servers: number
  readonly database: 'SQLite' | 'PostgreSQL'
  readonly seed: number
  /** The number of programs in `npm test`. */
  readonly runs: number
}

const ONE = { live: false, servers: 1, database: 'SQLite' } as const
const TWO = { live: false, servers: 2, database: 'PostgreSQL' } as const
const MODES: readonly Mode[] = [
  { name: 'one server', ...ONE, seed: 14, runs: 4 },
  { name: 'live sessions', ...ONE, live: true, seed: 11, runs: 3 },
  { name: 'two servers', ...TWO, seed: 23, runs: 0 },
  { name: 'two servers, live', ...TWO, live: true, seed: 12, runs: 0 },
]

/** Programs that fail. `SYNC_MODEL_KNOWN=1` runs them. */
const KNOWN: readonly (Omit<Mode, 'name' | 'runs'> & { readonly path: string })[] = [
  { ...ONE, seed: 2, path: '34' },
  { ...ONE, seed: 21, path: '7' },
  { ...ONE, seed: 21, path: '104' },
  { ...ONE, live: true, seed: 11, path: '2' },
  { ...ONE, live: true, seed: 11, path: '48' },
  { ...ONE, live: true, seed: 22, path: '28' },
  { ...ONE, live: true, seed: 22, path: '52' },
  { ...TWO, live: true, seed: 24, path: '54' },
  { ...TWO, database: 'SQLite', seed: 13, path: '0' },
]

/** How long nothing may happen before a tab counts as wrong, and how long while a failing program is being shortened. */
const [PATIENCE_MS, SHORT_PATIENCE_MS] = [30_000, 8_000]
const LONG_RUNS = 60

const minutes = Number(process.env['SYNC_MODEL_MINUTES'] ?? 0)
const isChosen = isLong || minutes > 0 || process.env['SYNC_MODEL_SEED'] !== undefined

test.each(MODES.filter(({ runs }) => isChosen || runs > 0))(
  '[CL903] whatever happens to servers, connections and tabs, the tabs come to show what is stored; $name',
  async (mode) => {
    const { SYNC_MODEL_SEED: seed, SYNC_MODEL_PATH: path } = process.env
    const endPressure = startBusyProcesses(Number(process.env['SYNC_MODEL_PRESSURE'] ?? 0))
    const until = Date.now() + minutes * 60_000
    try {
      do
        await expect(
          check(mode, {
            numRuns: isChosen ? LONG_RUNS : mode.runs,
            ...(minutes === 0 && { seed: seed === undefined ? mode.seed : Number(seed) }),
            ...(path !== undefined && { path }),
          }),
        ).resolves.toBeUndefined()
      while (Date.now() < until)
    } finally {
      endPressure()
    }
  },
  minutes > 0 ? 2 * minutes * 60_000 + 600_000 : undefined,
)

test.skipIf(process.env['SYNC_MODEL_KNOWN'] !== '1').each(KNOWN)(
  '[CL903] the tabs come to show what is stored; seed $seed, path $path',
  async ({ seed, path, ...mode }) => {
    await expect(check(mode, { seed, path, endOnFailure: true })).resolves.toBeUndefined()
  },
)

async function check(
  mode: Pick<Mode, 'live' | 'servers' | 'database'>,
  parameters: fc.Parameters<[Program]>,
): Promise<void> {
  await using stores = await openStores(mode)
  let hasFailed = false
  const run = async (program: Program): Promise<void> => {
    const patienceMs = hasFailed ? SHORT_PATIENCE_MS : PATIENCE_MS
    const { violations, log } = await runProgram(program, { ...stores.options, patienceMs })
    hasFailed ||= violations.length > 0
    if (violations.length > 0) throw new Error([...violations, ...log].join('\n'))
  }
  const property = fc.asyncProperty(fc.noBias(programs(fc.constant(mode.live))), run)
  await fc.assert(property, parameters)
}

/** The stores of the servers. Each program has a SQLite file, or a schema of the database. */
async function openStores({
  servers,
  database,
}: Pick<Mode, 'servers' | 'database'>): Promise<
  AsyncDisposable & { readonly options: Omit<SyncOptions, 'patienceMs'> }
> {
  if (database === 'SQLite')
    return { options: { servers }, [Symbol.asyncDispose]: async () => undefined }
  const { url: connectionString, [Symbol.asyncDispose]: drop } = await createDatabase()
  const openStore = (program: string) =>
    openPostgresStore({ connectionString, schema: program, busyTimeoutMs: PATIENCE_MS })
  return { options: { servers, openStore }, [Symbol.asyncDispose]: drop }
}
