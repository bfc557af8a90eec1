import { closeSync, fdatasyncSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { median } from './statistics.ts'

/** Returns how long a durable write of one page takes, in ms. The row with a database waits for it before its first chunk. */
export function measureDurableWrite(): number {
  const directory = mkdtempSync(join(tmpdir(), 'adk-stream-protocol-bench-'))
  const file = openSync(join(directory, 'page'), 'w')
  const page = Buffer.alloc(4_096)
  const times: number[] = []
  for (let index = 0; index < 50; index += 1) {
    writeSync(file, page)
    const startedAt = performance.now()
    fdatasyncSync(file)
    times.push(performance.now() - startedAt)
  }
  closeSync(file)
  rmSync(directory, { recursive: true })
  return median(times)
}
