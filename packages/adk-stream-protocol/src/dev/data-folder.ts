import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'

/**
 * Creates the folder of a database and returns the path of the database in it. With `isIgnored`, the folder has its own `.gitignore`, so
 * that no commit contains the chats.
 */
export function createDataFolder(
  folder: string,
  { cwd, isIgnored = false }: { readonly cwd: string; readonly isIgnored?: boolean },
): string {
  const target = path.resolve(cwd, folder)
  try {
    mkdirSync(target, { recursive: true })
    if (isIgnored) writeFileSync(path.join(target, '.gitignore'), '*\n')
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException
    throw new Error(
      `Cannot write to the data folder ${folder} (${code}). Choose another one with --data.`,
      { cause },
    )
  }
  return path.join(target, 'chats.db')
}
