import { chmod } from 'node:fs/promises'

import { expect } from 'vitest'

import { posixTest } from '../../../../test/support/posix-test.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'

const NOBODY = 65_534

/** Runs as a user without rights of its own: root may write every file. */
async function withoutRights<Result>(run: () => Promise<Result>): Promise<Result> {
  const isRoot = process.geteuid?.() === 0
  if (isRoot) process.seteuid?.(NOBODY)
  try {
    return await run()
  } finally {
    if (isRoot) process.seteuid?.(0)
  }
}

posixTest.for([
  { what: 'the file', file: 0o444, folder: 0o555, says: 'cannot be created or written' },
  { what: 'the folder of the file', file: 0o666, folder: 0o555, says: 'its file and folder' },
  { what: 'the folder of a new file', file: undefined, folder: 0o555, says: 'Check the path' },
])(
  '[ST341] if a process may not write $what, the error is lasting and says what to do',
  async ({ file, folder, says }) => {
    await using directory = await temporaryDirectory()
    const path = directory.file('chats.db')
    if (file !== undefined) {
      await (await openSqliteStore({ path })).close()
      await chmod(path, file)
    }
    await chmod(directory.path, folder)
    try {
      const error = await withoutRights(() =>
        openSqliteStore({ path }).catch((thrown: unknown) => thrown),
      )
      expect(error).toMatchObject({ code: 'read-only', isLasting: true })
      expect(String(error)).toContain(says)
    } finally {
      await chmod(directory.path, 0o700)
    }
  },
)
