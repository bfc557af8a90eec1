import type { CompositeSessionKey } from '@google/adk'
import { StoreError } from './store-error.ts'

export type SessionKey = [appName: string, userId: string, sessionId: string]

/** Checks the three names of a session, which come from requests, and puts them in the order of the columns. */
export function sessionKey({ appName, userId, sessionId }: CompositeSessionKey): SessionKey {
  return [
    checkName('appName', appName),
    checkName('userId', userId),
    checkName('sessionId', sessionId),
  ]
}

/** Refuses what a text column would not give back unchanged, so that two names can never become one. */
export function checkName(what: string, name: unknown): string {
  if (typeof name === 'string' && isStorable(name)) return name
  throw new StoreError(
    'invalid',
    `\`${what}\` must be a string without NUL characters and lone surrogates.`,
  )
}

/** Tells whether a text column gives a name back unchanged. */
export function isStorable(name: string): boolean {
  return !UNSTORABLE.test(name)
}

const UNSTORABLE = /[\0\p{Surrogate}]/u
