import { randomBytes } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'

import { DemoError } from './demo-error.ts'

/** The secret that signs the cookie: made once, kept in a file only its owner can read, so that chats outlive a restart. */
export async function loadSecret(path: string): Promise<string> {
  const fresh = randomBytes(32).toString('base64url')
  try {
    await writeFile(path, fresh, { mode: 0o600, flag: 'wx' })
    return fresh
  } catch (cause) {
    // Another start, or another process at this moment, has made it.
    if (isFileExists(cause)) return readSecret(path)
    throw cause
  }
}

async function readSecret(path: string): Promise<string> {
  const secret = (await readFile(path, 'utf8')).trim()
  // Signing with less would let anybody forge a cookie.
  if (secret.length >= 32) return secret
  throw new DemoError('bad-data', `The file ${path} is damaged. Delete it and start again.`)
}

function isFileExists(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'EEXIST'
}
