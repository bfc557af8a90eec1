/**
 * Runs the tests with other versions of Node: `npm run test:node -- 22 24`. With paths after the versions, it runs only the tests below
 * these: `npm run test:node -- 22 packages/adk-stream-protocol/test/client`.
 */
import { spawn } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const args = process.argv.slice(2)
const versions = args.filter(isVersion)
const paths = args.filter((arg) => !isVersion(arg))
if (versions.length === 0) throw new Error('Name the versions of Node: npm run test:node -- 22 24')

const npm = process.env['npm_execpath']
if (npm === undefined) throw new Error('Start this script with npm: npm run test:node -- 22 24')

// The packages that npm's `node` consists of. They are installed directly, so that no install script has to run.
const platform = process.platform === 'win32' ? 'win' : process.platform
const packageName = `node-${platform}-${process.arch}`

const results: { readonly version: string; readonly minutes: string; readonly passed: boolean }[] =
  []
for (const version of versions) {
  const node = await install(version)
  const startedAt = performance.now()
  const passed = await runTests(node)
  const minutes = ((performance.now() - startedAt) / 60_000).toFixed(1)
  results.push({ version, minutes, passed })
}
for (const { version, minutes, passed } of results)
  console.log(`${passed ? 'ok    ' : 'FAILED'} Node ${version}, ${minutes} min`)
process.exitCode = results.every(({ passed }) => passed) ? 0 : 1

/** A number with or without minor and patch version, such as 22 or 24.1. */
function isVersion(arg: string): boolean {
  return /^\d+(?:\.\d+){0,2}$/.test(arg)
}

/** Installs a version of Node outside the project. Returns the path of its program. */
async function install(version: string): Promise<string> {
  const folder = path.join(tmpdir(), 'adk-stream-protocol-node', version)
  mkdirSync(folder, { recursive: true })
  const command = ['install', '--no-audit', '--no-fund', '--ignore-scripts', '--prefix', folder]
  if (!(await runNpm(process.execPath, [...command, `${packageName}@${version}`])))
    throw new Error(`Node ${version} cannot be installed from npm's package ${packageName}.`)
  const program = process.platform === 'win32' ? 'node.exe' : 'node'
  return path.join(folder, 'node_modules', packageName, 'bin', program)
}

function runTests(node: string): Promise<boolean> {
  return runNpm(node, paths.length === 0 ? ['test'] : ['exec', '--', 'vitest', 'run', ...paths])
}

/** Runs npm with a version of Node, which is also the one of all programs that npm starts. */
function runNpm(node: string, command: readonly string[]): Promise<boolean> {
  const PATH = [path.dirname(node), process.env['PATH']].join(path.delimiter)
  const child = spawn(node, [npm ?? '', ...command], {
    stdio: 'inherit',
    env: { ...process.env, PATH },
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve(code === 0))
  })
}
