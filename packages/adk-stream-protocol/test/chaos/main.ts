import { parseArgs } from 'node:util'

import { z } from 'zod'

import setUpTestRunFolder from '../../../../test/support/test-run-folder.ts'
import { Plant } from '../faults/support/plants.ts'
import { runChaos } from './support/run-chaos.ts'

// `npm run chaos -- --minutes 20 --seed 7`: several real servers on one PostgreSQL, clients that change servers while they read, people
// with the client library in their tabs, and random faults. Ends with code 1 if anything was lost or done twice, or if a tab does not
// show what is stored. The sockets of the pages have live sessions, and every other person uses none. `--live`: all people also use
// sockets. `--no-live`: sockets have no live sessions. `--voice`: the people also speak. `--calm`: only the networks of the people fail.
// `--store sqlite`: one server on a SQLite file, and the next one beside it when it is replaced. `--pressure 4`: four processes keep the machine busy. `--plant run-twice`: the servers have a fault that the run should find.

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    store: { type: 'string', default: 'postgres' },
    servers: { type: 'string' },
    clients: { type: 'string', default: '6' },
    pages: { type: 'string', default: '4' },
    live: { type: 'boolean', default: false },
    'no-live': { type: 'boolean', default: false },
    pressure: { type: 'string', default: '0' },
    plant: { type: 'string' },
    voice: { type: 'boolean', default: false },
    calm: { type: 'boolean', default: false },
    'keep-history': { type: 'boolean', default: false },
  },
})

const seed = Number(values.seed)
const store = z.enum(['postgres', 'sqlite']).parse(values.store)
const startedAt = Date.now()
const folder = process.cwd()
const removeFolder = setUpTestRunFolder()
print(`chaos: ${values.minutes} minutes, seed ${seed}`)
try {
  const { violations, file } = await runChaos({
    seed,
    ms: Number(values.minutes) * 60_000,
    roundMs: 60_000,
    leaseMs: 4_000,
    store,
    servers: Number(values.servers ?? (store === 'sqlite' ? 1 : 3)),
    clients: Number(values.clients),
    pages: Number(values.pages),
    live: values.live || values.voice || (values['no-live'] ? false : 'some'),
    pressure: Number(values.pressure),
    plant: Plant.optional().parse(values.plant),
    voice: values.voice,
    ...(values.calm && { faults: [[]] }),
    everyMs: [500, 5_000],
    folder,
    keepHistory: values['keep-history'],
    print: (line) => print(`${Math.round((Date.now() - startedAt) / 1_000)} s: ${line}`),
  })
  for (const violation of violations) print(`violation: ${violation}`)
  if (violations.length === 0) print('The run has ended without a violation.')
  if (file !== undefined)
    print(
      `The history is in ${file}, the log of the servers beside it. Repeat with --seed ${seed}.`,
    )
  process.exitCode = violations.length > 0 ? 1 : 0
} catch (error) {
  print(String(error))
  process.exitCode = 2
} finally {
  removeFolder?.()
}
// After a server has ended by itself, clients may still try to reach it.
process.stdout.write('', () => process.exit())

function print(line: string): void {
  process.stdout.write(`${line}\n`)
}
