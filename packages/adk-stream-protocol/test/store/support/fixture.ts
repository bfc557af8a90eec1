import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export * from '../../../src/store/contract/fixtures.ts'

export interface TemporaryFolder extends AsyncDisposable {
  readonly path: (name: string) => string
}

/** Creates a folder for one test and removes it when the test ends. */
export async function temporaryFolder(): Promise<TemporaryFolder> {
  const folder = await mkdtemp(join(tmpdir(), 'store-'))
  return {
    path: (name) => join(folder, name),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  }
}
