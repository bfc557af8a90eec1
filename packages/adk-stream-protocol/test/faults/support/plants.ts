import { appendFileSync, readFileSync } from 'node:fs'

import { z } from 'zod'

import type { Store } from '../../../src/store/index.ts'

/**
 * A fault of a server that a test should find:
 * - `claim-twice`: a claim also succeeds if another one was first
 * - `repeat-lost`: a payment whose server crashed runs again, as if it could be repeated
 * - `run-twice`: one in twenty tools has its effect twice
 * - `exit`: the process ends by itself after some seconds
 */
export const Plant = z.enum(['claim-twice', 'repeat-lost', 'run-twice', 'exit'])
export type Plant = z.infer<typeof Plant>

/** How long a process with the fault `exit` serves. */
export const EXIT_MS = 3_000

/** Plants a fault in a store. */
export function plantInStore(store: Store, plant: Plant): Store {
  const { approvals } = store
  if (plant === 'repeat-lost') {
    const insert = approvals.insert.bind(approvals)
    // The audit record says what was promised.
    approvals.insert = (approval, ...rest) =>
      insert({ ...approval, terms: { ...approval.terms, idempotent: true } }, ...rest)
  }
  if (plant === 'claim-twice') {
    const replaceAll = approvals.replaceAll.bind(approvals)
    approvals.replaceAll = async (transitions) => {
      const isClaim = transitions.some(({ entry }) => entry.event.type === 'started')
      return (await replaceAll(transitions)) || isClaim
    }
  }
  return store
}

const REPEATED_SHARE = 0.05

/** Repeats the last effect in a chat, once in a while. */
export function repeatSometimes(effects: string, chatId: string): void {
  if (Math.random() >= REPEATED_SHARE) return
  const lines = readFileSync(effects, 'utf8').split('\n')
  const last = lines.findLast((line) => line.includes(JSON.stringify(chatId)))
  if (last !== undefined) appendFileSync(effects, `${last}\n`)
}
