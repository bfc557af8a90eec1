import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { isLong } from '../../../../test/support/long-run.ts'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { startBusyProcesses } from '../support/busy-processes.ts'
import { createDatabase } from '../support/postgres.ts'
import { type Program, programs } from './support/sync-program.ts'
import { runProgram, type SyncOptions } from './support/sync-world.ts'

// Random programs of what a person does in tabs, what the network does to them, what an operator does to the servers, and of writes and
// connections to the model that fail. At the end every tab shows what is stored, and nothing was done twice or without a decision. A failure prints the seed, the path
// and the shortest program that was found. `SYNC_MODEL_MINUTES=20` runs each mode for that time, `SYNC_MODEL_PRESSURE=4` keeps the machine
// busy with four processes, and `SYNC_MODEL_SEED` and `SYNC_MODEL_PATH` repeat a failure.

interface Where {
  readonly servers: number
  readonly database: 'SQLite' | 'PostgreSQL'
}

interface Mode extends Where {
  readonly name: string
  readonly live: boolean
  readonly seed: number
  /** The number of programs in `npm test`. 0: the mode runs only for some minutes or with a given seed. */
  readonly runs: number
}

const ONE = { live: false, servers: 1, database: 'SQLite' } as const
const TWO = { live: false, servers: 2, database: 'PostgreSQL' } as const
const MODES: readonly Mode[] = [
  { name: 'one server', ...ONE, seed: 33, runs: 4 },
  { name: 'live sessions', ...ONE, live: true, seed: 11, runs: 3 },
  { name: 'two servers', ...TWO, seed: 23, runs: 0 },
  { name: 'two servers, live', ...TWO, live: true, seed: 24, runs: 0 },
]

interface Example {
  readonly mode: Where
  readonly program: Program
}

/** Programs after which a page once showed something else than what was stored. */
const EXAMPLES: readonly Example[] = [
  {
    mode: ONE,
    program: {
      live: false,
      tabs: [
        { version: 6, transport: 'socket', server: 1 },
        { version: 6, transport: 'socket', server: 1 },
      ],
      commands: [
        { act: 'send', tab: 1, kind: 'locate', pace: 'now' },
        { act: 'delay', tab: 1, what: 'streams', pace: 'now' },
        { act: 'continue', pace: 'rest' },
      ],
      approves: true,
    },
  },
  {
    mode: ONE,
    program: {
      live: false,
      tabs: [{ version: 6, transport: 'socket', server: 0 }],
      commands: [
        { act: 'send', tab: 0, kind: 'select', pace: 'rest' },
        { act: 'decide', tab: 2, approved: true, by: 'api', pace: 'soon' },
      ],
      approves: false,
    },
  },
  {
    mode: { ...TWO, database: 'SQLite' },
    program: {
      live: false,
      tabs: [
        { version: 7, transport: 'socket', server: 0 },
        { version: 7, transport: 'sse', server: 1 },
      ],
      commands: [{ act: 'send', tab: 0, kind: 'talk', pace: 'rest' }],
      approves: true,
    },
  },
  {
    mode: ONE,
    program: {
      live: false,
      tabs: [{ version: 7, transport: 'socket', server: 0 }],
      commands: [
        { act: 'send', tab: 0, kind: 'talk', pace: 'rest' },
        { act: 'replace', server: 0, pace: 'rest' },
        { act: 'reload', tab: 0, pace: 'rest' },
      ],
      approves: true,
    },
  },
  {
    mode: ONE,
    program: {
      live: true,
      tabs: [{ version: 7, transport: 'held', server: 0 }],
      commands: [
        { act: 'send', tab: 0, kind: 'ask', pace: 'rest' },
        { act: 'delay', tab: 1, what: 'requests', pace: 'now' },
        { act: 'decide', tab: 0, approved: false, by: 'api', pace: 'soon' },
        { act: 'reload', tab: 1, pace: 'rest' },
        { act: 'send', tab: 0, kind: 'pay', pace: 'rest' },
      ],
      approves: true,
    },
  },
  {
    mode: ONE,
    program: {
      live: true,
      tabs: [
        { version: 7, transport: 'held', server: 1 },
        { version: 7, transport: 'held', server: 0 },
      ],
      commands: [
        { act: 'send', tab: 0, kind: 'select', pace: 'rest' },
        { act: 'stop', tab: 0, pace: 'rest' },
        { act: 'repeat-event', tab: 1, pace: 'now' },
        { act: 'send', tab: 1, kind: 'pays', pace: 'rest' },
        { act: 'decide', tab: 1, approved: true, by: 'api', pace: 'soon' },
        { act: 'cut', tab: 0, pace: 'soon' },
        { act: 'offline', tab: 0, pace: 'soon' },
        { act: 'lose-answer', tab: 1, pace: 'now' },
        { act: 'cut', tab: 0, pace: 'soon' },
        { act: 'send', tab: 1, kind: 'select', pace: 'rest' },
      ],
      approves: false,
    },
  },
  {
    mode: ONE,
    program: {
      live: true,
      tabs: [{ version: 7, transport: 'socket', server: 0 }],
      commands: [
        { act: 'send', tab: 0, kind: 'talk', pace: 'rest' },
        { act: 'continue', pace: 'rest' },
        { act: 'continue', pace: 'rest' },
        { act: 'lose-model', count: 3, pace: 'now' },
        { act: 'regenerate', tab: 0, pace: 'rest' },
        { act: 'reload', tab: 0, pace: 'rest' },
      ],
      approves: true,
    },
  },
]

/** How long nothing may happen before a tab counts as wrong, and how long while a failing program is being shortened. */
const [MAX_WAIT_MS, SHORT_WAIT_MS] = [30_000, 8_000]
const LONG_RUNS = 40

const minutes = Number(process.env['SYNC_MODEL_MINUTES'] ?? 0)
const isChosen = minutes > 0 || process.env['SYNC_MODEL_SEED'] !== undefined

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
            numRuns: isChosen || isLong ? LONG_RUNS : mode.runs,
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

test.each(EXAMPLES)(
  '[CL903] the tabs come to show what is stored: %#',
  async ({ mode, program }) => {
    await using stores = await openStores(mode)
    const options = { ...stores.options, maxWaitMs: MAX_WAIT_MS }
    expect((await runProgram(program, options)).violations).toEqual([])
  },
)

async function check(
  mode: Where & Pick<Mode, 'live'>,
  parameters: fc.Parameters<[Program]>,
): Promise<void> {
  await using stores = await openStores(mode)
  let hasFailed = false
  const run = async (program: Program): Promise<void> => {
    const maxWaitMs = hasFailed ? SHORT_WAIT_MS : MAX_WAIT_MS
    const { violations, log } = await runProgram(program, { ...stores.options, maxWaitMs })
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
}: Where): Promise<AsyncDisposable & { readonly options: Omit<SyncOptions, 'maxWaitMs'> }> {
  if (database === 'SQLite')
    return { options: { servers }, [Symbol.asyncDispose]: async () => undefined }
  const { url: connectionString, [Symbol.asyncDispose]: drop } = await createDatabase()
  const openStore = (program: string) =>
    openPostgresStore({ connectionString, schema: program, busyTimeoutMs: MAX_WAIT_MS })
  return { options: { servers, openStore }, [Symbol.asyncDispose]: drop }
}
