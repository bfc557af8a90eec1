import { accessSync, constants, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

const SHARED_MEMORY = '/dev/shm'
const GIBI = 1_073_741_824

/** Gives a run of the tests a temporary folder of its own, also for the processes that tests start, and removes it in the end. */
export default function setup(): () => void {
  const folder = mkdtempSync(path.join(chooseParent(), 'adk-tests-'))
  process.env['TMPDIR'] = folder
  return () => rmSync(folder, { recursive: true, force: true })
}

/**
 * SQLite waits for the disk at every commit, which took about half of the time of the tests; a file system in memory has nothing to wait
 * for. A small one (a container has 64 MiB by default) is left alone.
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
