import { expect, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import type { Child } from './support/children.ts'
import { openCrashPair, POLLING } from './support/crash-pair.ts'
import { databases } from './support/databases.ts'
import { Person, readEffects } from './support/person.ts'

const PAY = '[[call pay {"to": "花子", "amount": 50}]][[then]][[say Paid.]]'
const ASK_DESK = `[[call desk ${JSON.stringify({ request: PAY })}]][[then]][[say Told.]]`

/** Where the process is killed, whether the approved call of the agent has an unknown outcome, and how often money moves. */
type KillPoint = readonly [moment: string, isUnknown: boolean, effects: number]

const KILL_POINTS: readonly KillPoint[] = [
  ['before-outcome', true, 0],
  ['after-outcome', false, 1],
  ['before-response', false, 1],
  ['after-response', false, 1],
]

test.each(oneOf(databases, 'SQLite'))(
  '[AP404] a server killed while an approved call of an agent begins to wait loses and repeats nothing, on $name',
  async ({ open }) => {
    await using pair = await openCrashPair(open, { GATED_DESK: 'yes' })
    const { first, url, folder } = pair
    await Promise.all(KILL_POINTS.map(([moment]) => runUntilKilled(moment, first, url)))
    const next = await pair.crash()
    await Promise.all(
      KILL_POINTS.map(async ([moment, isUnknown, effects]) => {
        const person = personOf(moment, next)
        await expect.poll(() => settle(person), POLLING).toContain('Told.')
        // The server may look once more for something to continue. The message of a running turn is not in the list.
        const desks = async () => toolParts((await person.messages())[1])
        await expect.poll(async () => (await desks()).length, POLLING).toBeGreaterThan(0)
        const [desk] = await desks()
        const output = JSON.stringify(desk)
        expect([moment, output.includes('"Paid."')]).toEqual([moment, !isUnknown])
        expect([moment, output.includes('"pending"')]).toEqual([moment, false])
        expect([moment, readEffects(folder.effects, person.chatId).length]).toEqual([
          moment,
          effects,
        ])
      }),
    )
  },
)

function personOf(moment: string, url: string): Person {
  const chatId = `g0.${moment}.desk`
  return new Person(url, { user: chatId, chatId })
}

/** Approves the call of the agent, until the process stops at its kill point. */
async function runUntilKilled(moment: string, server: Child, url: string): Promise<void> {
  const person = personOf(moment, url)
  await person.say(ASK_DESK)
  // The request gets no response.
  settle(person).catch(() => undefined)
  await server.waitForLine((line) => line === `at ${person.chatId}`)
}

/** Approves wherever the person is asked. Returns the text of the reply. */
async function settle(person: Person): Promise<string> {
  for (const { id } of await person.approvals()) await person.decide(id, { approved: true })
  return textOf((await person.messages())[1])
}
