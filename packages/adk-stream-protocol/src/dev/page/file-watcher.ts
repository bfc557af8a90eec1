import { createHash } from 'node:crypto'
import { type FSWatcher, readFileSync, statSync, watch } from 'node:fs'
import path from 'node:path'

/** Watches files, also those that do not exist yet. */
export interface FileWatcher {
  /** Watches these files from now on, in place of those before. */
  readonly watch: (files: readonly string[]) => void
  readonly close: () => void
}

/** How long a change may be followed by others that belong to it, in ms. Editors write a file in several steps. */
const SETTLE_MS = 50

/** Calls `onChange` with the files whose contents have changed. */
export function createFileWatcher(onChange: (files: readonly string[]) => void): FileWatcher {
  /** The files with a digest of their contents. */
  let digests = new Map<string, string>()
  /** Of folders: many editors replace a file, which ends a watch of the file itself. */
  const watchers = new Map<string, FSWatcher>()
  let timer: NodeJS.Timeout | undefined
  const follow = (): void => {
    const folders = new Map([...digests.keys()].map((file) => findFolder(path.dirname(file))))
    for (const [id, watcher] of watchers)
      if (!folders.has(id)) {
        watcher.close()
        watchers.delete(id)
      }
    for (const [id, folder] of folders)
      if (!watchers.has(id)) {
        const watcher = watchFolder(folder, settle)
        if (watcher) watchers.set(id, watcher)
      }
  }
  const compare = (): void => {
    follow()
    const changed = [...digests.keys()].filter((file) => {
      const digest = digestOf(file)
      const isChanged = digest !== digests.get(file)
      digests.set(file, digest)
      return isChanged
    })
    if (changed.length > 0) onChange(changed)
  }
  const settle = (): void => {
    clearTimeout(timer)
    timer = setTimeout(compare, SETTLE_MS)
  }
  return {
    watch(files) {
      // A file that has changed since it was compared is compared with what was loaded.
      digests = new Map(files.map((file) => [file, digests.get(file) ?? digestOf(file)]))
      follow()
    },
    close() {
      clearTimeout(timer)
      for (const watcher of watchers.values()) watcher.close()
      watchers.clear()
    },
  }
}

/** Returns a folder, or the nearest one above it that exists, with its identity: one that was deleted and created again is another one. */
function findFolder(folder: string): [id: string, folder: string] {
  const found = statSync(folder, { throwIfNoEntry: false })
  const above = path.dirname(folder)
  if (!found && above !== folder) return findFolder(above)
  // File systems use the number of a deleted folder again.
  return [`${found?.ino} ${found?.birthtimeMs} ${folder}`, folder]
}

function watchFolder(folder: string, onEvent: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, onEvent)
    // The folder was removed.
    watcher.on('error', () => {
      watcher.close()
      onEvent()
    })
    return watcher
  } catch {
    // The folder cannot be read, or was just removed.
    return undefined
  }
}

function digestOf(file: string): string {
  try {
    return createHash('sha256').update(readFileSync(file)).digest('base64')
  } catch {
    return 'missing'
  }
}
