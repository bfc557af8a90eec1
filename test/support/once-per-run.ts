import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'

const results = new Map<string, Promise<string>>()

/**
 * Does a piece of work, such as a build, once for all workers of a test run, and returns its result. Other workers wait for it.
 * Outside of a test run, the work is done once by this process.
 */
export function oncePerRun(name: string, work: () => Promise<string>): Promise<string> {
  const known = results.get(name) ?? (isOneRun ? shareResult(name, work) : work())
  results.set(name, known)
  return known
}

/** Whether this process belongs to one run of the tests, with a temporary folder of its own, in which no source is edited. */
const isOneRun = process.env['VITEST_MODE'] === 'RUN' && process.env['TEST_FOLDER_OF'] !== undefined

/** The worker that creates the folder does the work. The result is deleted with the temporary folder of the test run. */
async function shareResult(name: string, work: () => Promise<string>): Promise<string> {
  const shared = path.join(tmpdir(), `once-${name}`)
  const result = path.join(shared, 'result')
  while (!createFolder(shared)) {
    if (existsSync(result)) return readFileSync(result, 'utf8')
    await delay(20)
  }
  try {
    writeFileSync(`${result}.new`, await work())
    renameSync(`${result}.new`, result)
    return readFileSync(result, 'utf8')
  } catch (error) {
    // Another worker tries, and reports its error.
    rmSync(shared, { recursive: true })
    throw error
  }
}

/** Returns whether the folder did not exist. */
function createFolder(folder: string): boolean {
  try {
    mkdirSync(folder)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}
