import { createHash } from 'node:crypto'
import { type FSWatcher, readFileSync, watch } from 'node:fs'
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
  const compare = (): void => {
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
      const folders = new Set(files.map((file) => path.dirname(file)))
      for (const [folder, watcher] of watchers)
        if (!folders.has(folder)) {
          watcher.close()
          watchers.delete(folder)
        }
      for (const folder of folders)
        if (!watchers.has(folder)) {
          const watcher = watchFolder(folder, settle)
          if (watcher) watchers.set(folder, watcher)
        }
    },
    close() {
      clearTimeout(timer)
      for (const watcher of watchers.values()) watcher.close()
      watchers.clear()
    },
  }
}

function watchFolder(folder: string, onEvent: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(folder, onEvent)
    // The folder was removed.
    watcher.on('error', () => watcher.close())
    return watcher
  } catch {
    // A folder that does not exist has no files to watch.
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
