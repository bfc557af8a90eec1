import { accessSync, chmodSync, constants, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const SHARED_MEMORY = '/dev/shm'
const GIBI = 1_073_741_824
/** The environment variable with the process that has created the folder. */
const VARIABLE = 'TEST_FOLDER_OF'

/** Creates a temporary folder for the tests and the processes that they start. Returns a function that deletes it. */
export default function setup(): (() => void) | undefined {
  // Each project of the configuration runs the setup. The first one counts.
  if (process.env[VARIABLE] === String(process.pid)) return undefined
  process.env[VARIABLE] = String(process.pid)
  const folder = mkdtempSync(path.join(chooseParent(), 'adk-tests-'))
  // PostgreSQL runs as another user if the tests run as root.
  chmodSync(folder, 0o755)
  process.env['TMPDIR'] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}

/**
 * SQLite waits for the disk at each commit. A file system in memory does not. A small one is not used: a container has 64 MiB by
 * default.
 */
function chooseParent(): string {
  if (process.env['TMPDIR'] !== undefined) return tmpdir()
  try {
    accessSync(SHARED_MEMORY, constants.W_OK)
    const { bavail, bsize } = statfsSync(SHARED_MEMORY)
    return bavail * bsize > GIBI ? SHARED_MEMORY : tmpdir()
  } catch {
    // Not a Linux system.
    return tmpdir()
  }
}
