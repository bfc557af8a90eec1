import { setTimeout as delay } from 'node:timers/promises'

import { expect } from 'vitest'

import { textOf } from '../../../support/chat-probe.ts'
import type { Child } from '../children.ts'
import { type CrashScenarios, leaveOutRepeated, POLLING } from '../crash-pair.ts'
import type { Folder } from '../folder.ts'
import { Person, readEffects } from '../person.ts'

const POLL_MS = 50
const ASK = '[[call charge {"to": "花子", "amount": 50}]][[then]][[say Charged.]]'

/** Where the process is killed, how the last question ends, and the total number of payments. */
type KillPoint = readonly [moment: string, ends: 'succeeded' | 'unknown', effects: number]

const ALL_KILL_POINTS: readonly KillPoint[] = [
  // While the approved call asks for the sign-in, it runs: its outcome is unknown.
  ['before-sign-in-question', 'unknown', 0],
  ['before-outcome', 'unknown', 0],
  // From here on, the call waits for the sign-in.
  ['after-outcome', 'succeeded', 1],
  ['before-response', 'succeeded', 1],
  ['after-response', 'succeeded', 1],
  ['before-sign-in-decision', 'succeeded', 1],
  ['after-sign-in-decision', 'succeeded', 1],
  ['before-sign-in-claim', 'succeeded', 1],
  ['after-sign-in-claim', 'unknown', 0],
  ['before-effect', 'unknown', 0],
  ['after-effect', 'unknown', 1],
  ['before-sign-in-outcome', 'unknown', 1],
  ['after-sign-in-outcome', 'succeeded', 1],
]
const KILL_POINTS = leaveOutRepeated(ALL_KILL_POINTS, [
  'before-response',
  'before-sign-in-decision',
  'before-sign-in-claim',
  'before-effect',
  'before-sign-in-outcome',
])

/** Approved calls that need a sign-in. */
export function signInScenarios(folder: Folder): CrashScenarios {
  return {
    begin: async (server, url) => {
      await Promise.all(KILL_POINTS.map(([moment]) => runUntilKilled(moment, server, url)))
    },
    expectContinued: async (url) => {
      await Promise.all(KILL_POINTS.map((point) => expectCharged(point, { url, folder })))
    },
  }
}

async function expectCharged(
  [moment, ends, effects]: KillPoint,
  { url, folder }: { readonly url: string; readonly folder: Folder },
): Promise<void> {
  const person = personOf(moment, url)
  await expect.poll(() => settle(person), POLLING).toContain('Charged.')
  expect([moment, readEffects(folder.effects, person.chatId).length]).toEqual([moment, effects])
  const shown = JSON.stringify((await person.messages())[1])
  expect([moment, shown.includes('"state":"unknown"')]).toEqual([moment, ends === 'unknown'])
  expect([moment, await person.approvals()]).toEqual([moment, []])
}

function personOf(moment: string, url: string): Person {
  const chatId = `g0.${moment}.charge`
  return new Person(url, { user: chatId, chatId })
}

/** Approves the call and signs in, until the process stops at the kill point. */
async function runUntilKilled(moment: string, server: Child, url: string): Promise<void> {
  const person = personOf(moment, url)
  await person.say(ASK)
  const killed = new AbortController()
  const deciding = (async () => {
    while (!killed.signal.aborted) {
      await settle(person)
      await delay(POLL_MS)
    }
  })()
  // The last request gets no response.
  deciding.catch(() => undefined)
  await server.waitForLine((line) => line === `at ${person.chatId}`)
  killed.abort()
}

/** Approves and signs in wherever the person is asked. Returns the text of the reply. */
async function settle(person: Person): Promise<string> {
  for (const { id, kind } of await person.approvals())
    await (kind === 'sign-in'
      ? person.post(`/sign-ins/${id}`, { apiKey: 'a key' })
      : person.decide(id, { approved: true }))
  return textOf((await person.messages())[1])
}
