import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'

import create from '../packages/create-adk-stream-protocol/package.json' with { type: 'json' }
import emulator from '../packages/gemini-emulator/package.json' with { type: 'json' }
import library from '../packages/adk-stream-protocol/package.json' with { type: 'json' }
import studio from '../packages/studio/package.json' with { type: 'json' }

/** Commands that run in order. */
interface Task {
  readonly name: 'format' | 'lint' | 'package' | 'page' | 'types' | 'unused'
  readonly commands: readonly string[]
  /** Whether the tests use what the task builds. */
  readonly builds?: boolean
  /** Commands that check what the task has built. The tests do not wait for them. */
  readonly checks?: readonly string[]
}

/** A folder for the packed packages. */
const packed = mkdtempSync(path.join(tmpdir(), 'check-'))
process.on('exit', () => rmSync(packed, { recursive: true }))

/** The files that `npm pack` writes. A shell of Windows does not complete names. */
const [LIBRARY, EMULATOR, STUDIO, CREATE] = [library, emulator, studio, create].map(
  ({ name, version }) => `${name}-${version}.tgz`,
)

/** The tasks to run. Default: all of them. `tests`: all of them, and the tests. */
const names = process.argv.slice(2).filter((name) => name !== 'tests')
const hasTests = process.argv.includes('tests')

/**
 * The compiler, the linter and the bundler are Go programs. They collect garbage less often than by default, and on one thread, which
 * takes a quarter less CPU time. The tests inherit the variables.
 */
process.env['GOGC'] ??= '400'
process.env['GOMAXPROCS'] ??= '1'

/**
 * Checks the types of a project. One thread takes half of the CPU time of several: the tasks use all cores together. What has not
 * changed since the last time is not checked again, which takes a fifth of the time.
 */
function checkTypes(project: string): string {
  const file = `node_modules/.cache/types/${project.replaceAll('/', '-')}.tsbuildinfo`
  return `tsc --singleThreaded -p ${project} --incremental --tsBuildInfoFile ${file}`
}

/**
 * The types of each export, for each way in which TypeScript resolves modules. Only `npm run check:package` runs it: it takes 11 s,
 * and `test/pack/pack.test.ts` compiles and imports the packed packages with both supported versions of TypeScript.
 */
const attw = [
  `attw ${packed}/${LIBRARY} --profile esm-only --exclude-entrypoints react/styles.css -q`,
  `attw ${packed}/${EMULATOR} --profile esm-only -q`,
  // Only this repository can import the sources of the page.
  `attw ${packed}/${STUDIO} --profile esm-only --exclude-entrypoints page -q`,
]

/** The static checks. Tasks are independent of each other. The slowest ones come first. */
const TASKS: readonly Task[] = [
  {
    name: 'package',
    builds: true,
    commands: [
      'tsc -b tsconfig.build.json --singleThreaded',
      'npm run --silent build -w packages/studio',
      `npm pack --ignore-scripts --pack-destination ${packed} ./packages/adk-stream-protocol ./packages/gemini-emulator ./packages/studio ./packages/create-adk-stream-protocol`,
    ],
    checks: [
      `publint ${packed}/${LIBRARY} --strict`,
      `publint ${packed}/${EMULATOR} --strict`,
      `publint ${packed}/${STUDIO} --strict`,
      `publint ${packed}/${CREATE} --strict`,
      ...(names.length > 0 ? attw : []),
    ],
  },
  { name: 'lint', commands: ['oxlint --type-aware'] },
  { name: 'types', commands: [checkTypes('tsconfig.check.json')] },
  { name: 'unused', commands: ['knip --cache'] },
  { name: 'page', builds: true, commands: ['npm run --silent build -w apps/demo'] },
  { name: 'types', commands: [checkTypes('packages/adk-stream-protocol/tsconfig.server.json')] },
  { name: 'types', commands: [checkTypes('apps/demo/tsconfig.page.json')] },
  { name: 'types', commands: [checkTypes('packages/studio/tsconfig.page.json')] },
  { name: 'types', commands: [checkTypes('packages/adk-stream-protocol/tsconfig.browser.json')] },
  { name: 'format', commands: ['oxfmt --check'] },
]

/** The number of cores of the smallest supported machine. */
const AT_ONCE = 2

/** Reports of checks that have ended while the tests print theirs. */
let reports: string[] | undefined

async function run(command: string): Promise<boolean> {
  const startedAt = performance.now()
  // npm adds the workspace's tools to the path. Beside the tests, a check takes only the CPU time that the tests leave.
  const isNice = reports && process.platform !== 'win32'
  const child = spawn(isNice ? `nice -n 19 ${command}` : command, {
    shell: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const [output, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1)
  report(`${code === 0 ? 'ok    ' : 'FAILED'} ${seconds.padStart(5)} s  ${command}`)
  if (code !== 0) report(output + errors)
  return code === 0
}

function report(lines: string): void {
  if (reports) reports.push(lines)
  else console.log(lines)
}

async function runTests(): Promise<boolean> {
  if (tasks.some(({ name }) => name === 'package')) process.env['PACKED_PACKAGES'] = packed
  const child = spawn('vitest run', { shell: true, stdio: 'inherit' })
  return new Promise((resolve) => child.once('close', (code) => resolve(code === 0)))
}

async function runTask({ commands, checks = [] }: Task): Promise<boolean> {
  for (const command of [...commands, ...checks]) if (!(await run(command))) return false
  return true
}

async function runTasks(tasks: readonly Task[], atOnce: number): Promise<boolean[]> {
  const waiting = [...tasks]
  const results: boolean[] = []
  const work = async (): Promise<void> => {
    for (let task = waiting.shift(); task; task = waiting.shift()) results.push(await runTask(task))
  }
  await Promise.all(Array.from({ length: atOnce }, work))
  return results
}

/** Runs the tests beside the checks that build nothing: the tests leave a sixth of the CPU time unused. */
async function runAll(tasks: readonly Task[]): Promise<boolean[]> {
  const building = tasks.filter(({ builds }) => builds)
  const built = await runTasks(
    building.map(({ name, commands }) => ({ name, commands })),
    AT_ONCE,
  )
  if (!built.every(Boolean)) return built
  reports = []
  const rest = [
    ...tasks.filter(({ builds }) => !builds),
    ...building.map(({ name, checks = [] }) => ({ name, commands: checks })),
  ]
  const [tests, checked] = await Promise.all([runTests(), runTasks(rest, 1)])
  for (const lines of reports) console.log(lines)
  return [tests, ...checked]
}

const tasks = TASKS.filter(({ name }) => names.length === 0 || names.includes(name))
const results = await (hasTests ? runAll(tasks) : runTasks(tasks, AT_ONCE))
process.exitCode = results.every(Boolean) ? 0 : 1
