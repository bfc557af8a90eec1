import type { CompositeSessionKey } from '@google/adk'
import type { Owner } from './store.ts'
import { StoreError } from './store-error.ts'

export type SessionKey = [appName: string, userId: string, sessionId: string]

/** Validates the three ids of a session, which come from requests, and returns them in column order. */
export function sessionKey({ appName, userId, sessionId }: CompositeSessionKey): SessionKey {
  return [
    checkName('appName', appName),
    checkName('userId', userId),
    checkName('sessionId', sessionId),
  ]
}

/** Validates the two ids of the owner of data, and returns them in column order. */
export function ownerColumns({ appName, principalId }: Owner): [string, string] {
  return [checkName('appName', appName), checkName('principalId', principalId)]
}

/** Throws if a text column would not return the name unchanged. Otherwise two names could become the same. */
export function checkName(what: string, name: unknown): string {
  if (typeof name === 'string' && isStorable(name)) return name
  throw new StoreError(
    'invalid',
    `\`${what}\` must be a string without NUL characters or lone surrogates.`,
  )
}

/** Whether a text column returns a name unchanged. */
export function isStorable(name: string): boolean {
  return !UNSTORABLE.test(name)
}

const UNSTORABLE = /[\0\p{Surrogate}]/u
