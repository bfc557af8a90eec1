import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A folder for a database, with an empty file of effects. */
export interface Folder extends AsyncDisposable {
  readonly database: string
  readonly effects: string
  readonly path: string
}

export async function makeFolder(): Promise<Folder> {
  const path = await mkdtemp(join(tmpdir(), 'faults-'))
  const effects = join(path, 'effects.jsonl')
  await writeFile(effects, '')
  return {
    path,
    effects,
    database: join(path, 'store.db'),
    [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }),
  }
}
