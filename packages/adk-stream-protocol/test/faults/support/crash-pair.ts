import { expect } from 'vitest'

import { isLong } from '../../../../../test/support/long-run.ts'
import { bundleChildren, type Child } from './children.ts'
import type { SharedDatabase } from './databases.ts'
import { type Folder, makeFolder } from './folder.ts'

/** Many chats poll at the same time. A shorter interval would keep the servers busy. */
export const POLLING = { timeout: 120_000, interval: 200 }

/** What people do until their server is killed, and what they find on the next one. */
export interface CrashScenarios {
  /** Brings each chat to its kill point. */
  begin(server: Child, url: string): Promise<void>
  /** Checks the outcome of each chat on the next server. */
  expectContinued(url: string): Promise<void>
}

/**
 * Leaves out moments in `npm test` at which nothing was stored since the moment before, so that the next server finds the same.
 * `npm run test:long` has all of them.
 */
export function leaveOutRepeated<Point extends readonly [moment: string, ...unknown[]]>(
  points: readonly Point[],
  repeated: readonly string[],
): readonly Point[] {
  return isLong ? points : points.filter(([moment]) => !repeated.includes(moment))
}

/** Two server processes on one database: one that serves and will be killed, and one that is ready to serve after it. */
export interface CrashPair extends AsyncDisposable {
  readonly folder: Folder
  readonly first: Child
  readonly second: Child
  /** The URL of the first one. */
  readonly url: string
  /** Kills the first one, ends its lease, and lets the second one serve. Returns its URL. */
  crash(): Promise<string>
}

/** Each server is the only one that runs, so no other one takes over its chats. Some waits of the second one end after two leases. */
const LEASE = { LEASE_MS: '15000' }

export async function openCrashPair(
  open: () => Promise<SharedDatabase>,
  env: Readonly<Record<string, string>> = {},
): Promise<CrashPair> {
  const database = await open()
  const folder = await makeFolder()
  const children = await bundleChildren()
  const start = (name: string) =>
    children.start(folder, name, { ...database.env, ...LEASE, ...env })
  const [first, second] = [start('g0'), start('g1')]
  return {
    folder,
    first,
    second,
    url: await first.serve(),
    async crash() {
      expect(await first.kill()).toBe('SIGKILL')
      await database.leases(folder).expire()
      return second.serve()
    },
    async [Symbol.asyncDispose]() {
      for (const part of [second, first, folder, database]) await part[Symbol.asyncDispose]()
    },
  }
}
