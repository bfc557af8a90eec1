import { writeFile } from 'node:fs/promises'

import {
  temporaryDirectory,
  type TemporaryDirectory,
} from '../../../../../test/support/temporary-directory.ts'

/** A folder for a database, with an empty file of effects. */
export interface Folder extends TemporaryDirectory {
  readonly database: string
  readonly effects: string
}

export async function makeFolder(): Promise<Folder> {
  const folder = await temporaryDirectory()
  const effects = folder.file('effects.jsonl')
  await writeFile(effects, '')
  return { ...folder, effects, database: folder.file('store.db') }
}
