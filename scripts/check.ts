import { spawn } from 'node:child_process'
import { text } from 'node:stream/consumers'

/** Commands that run in order. */
interface Task {
  readonly name: 'format' | 'lint' | 'package' | 'page' | 'types' | 'unused'
  readonly commands: readonly string[]
}

/** The static checks. Tasks are independent of each other. The slowest ones come first. */
const TASKS: readonly Task[] = [
  {
    name: 'package',
    commands: [
      'tsc -b tsconfig.build.json',
      'publint packages/adk-stream-protocol --strict',
      'publint packages/gemini-emulator --strict',
      'attw --pack packages/adk-stream-protocol --profile esm-only --exclude-entrypoints react/styles.css -q',
      'attw --pack packages/gemini-emulator --profile esm-only -q',
    ],
  },
  { name: 'lint', commands: ['oxlint --type-aware'] },
  { name: 'types', commands: ['tsc -p packages/adk-stream-protocol'] },
  { name: 'page', commands: ['npm run --silent build -w apps/demo'] },
  { name: 'types', commands: ['tsc -p .'] },
  { name: 'types', commands: ['tsc -p apps/demo'] },
  { name: 'unused', commands: ['knip'] },
  { name: 'types', commands: ['tsc -p packages/gemini-emulator'] },
  { name: 'types', commands: ['tsc -p packages/adk-stream-protocol/tsconfig.server.json'] },
  { name: 'types', commands: ['tsc -p apps/demo/tsconfig.page.json'] },
  { name: 'types', commands: ['tsc -p packages/adk-stream-protocol/tsconfig.browser.json'] },
  { name: 'format', commands: ['oxfmt --check'] },
]

/** The tasks to run. Default: all of them. */
const names = process.argv.slice(2)

/** The number of cores of the smallest supported machine. */
const AT_ONCE = 2

async function run(command: string): Promise<boolean> {
  const startedAt = performance.now()
  // npm adds the workspace's tools to the path.
  const child = spawn(command, { shell: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const [output, errors, code] = await Promise.all([text(child.stdout), text(child.stderr), ended])
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(1)
  console.log(`${code === 0 ? 'ok    ' : 'FAILED'} ${seconds.padStart(5)} s  ${command}`)
  if (code !== 0) console.log(output + errors)
  return code === 0
}

async function runTask({ commands }: Task): Promise<boolean> {
  for (const command of commands) if (!(await run(command))) return false
  return true
}

const waiting = TASKS.filter(({ name }) => names.length === 0 || names.includes(name))
const results: boolean[] = []
async function work(): Promise<void> {
  for (let task = waiting.shift(); task; task = waiting.shift()) results.push(await runTask(task))
}
await Promise.all(Array.from({ length: AT_ONCE }, work))
process.exitCode = results.every(Boolean) ? 0 : 1
