import { expect, test } from 'vitest'

import { longTest } from '../../../../test/support/long-test.ts'
import { oneOf } from '../../../../test/support/long-run.ts'
import { textOf } from '../support/chat-probe.ts'
import { bundleChildren } from './support/children.ts'
import { POLLING } from './support/crash-pair.ts'
import { databases } from './support/databases.ts'
import { makeFolder } from './support/folder.ts'
import { type Asked, Person, readEffects } from './support/person.ts'

/** Where the process is killed, what becomes of the approval, and how often money moves. */
const killPoints = [
  ['hold', 'unknown', 0],
  ['before-decision', 'succeeded', 1],
  ['after-decision', 'succeeded', 1],
  ['before-claim', 'succeeded', 1],
  ['after-claim', 'unknown', 0],
  ['after-effect', 'unknown', 1],
  ['after-outcome', 'succeeded', 1],
  ['before-response', 'succeeded', 1],
  ['after-response', 'succeeded', 1],
] as const

type Database = (typeof databases)[number]

/** Kills a server while calls of a first step wait or run, and continues on another one. Returns how many chats have continued. */
async function continueElsewhere(
  kind: 'sequence' | 'workflow' | 'tool',
  { open }: Database,
): Promise<number> {
  await using database = await open()
  await using folder = await makeFolder()
  const env = { ...database.env, IN_STEPS: kind }
  const children = await bundleChildren()
  await using victim = children.start(folder, 'a', env)
  await using heir = children.start(folder, 'b', env)
  const first = await victim.serve()
  const asked = new Map<string, Asked>()
  await Promise.all(
    killPoints.map(async ([moment]) => {
      const chatId = `a.${moment}.steps`
      const person = new Person(first, { user: chatId, chatId })
      const question = await person.ask()
      asked.set(moment, question)
      expect(textOf((await person.messages()).at(-1))).toBe('')
      person.answer(question, { approved: true }).catch(() => undefined)
      await victim.waitForLine((line) => line === `at ${chatId}`)
    }),
  )
  expect(await victim.kill()).toBe('SIGKILL')
  await database.leases(folder).expire()
  const second = await heir.serve()
  await Promise.all(
    killPoints.map(async ([moment, state, effects]) => {
      const chatId = `a.${moment}.steps`
      const person = new Person(second, { user: chatId, chatId })
      const id = asked.get(moment)?.approvalId ?? ''
      if (moment === 'before-decision') await person.decide(id, { approved: true })
      const read = async () => {
        const seen = await person.approval(id)
        const message = (await person.messages()).at(-1)
        return [chatId, seen?.approval.state, textOf(message).split('Second.').length - 1]
      }
      await expect.poll(read, POLLING).toEqual([chatId, state, 1])
      expect([chatId, readEffects(folder.effects, chatId).length]).toEqual([chatId, effects])
    }),
  )
  return asked.size
}

const CASES = (['sequence', 'workflow'] as const).flatMap((kind) =>
  databases.map((database) => ({ name: `${kind} on ${database.name}`, kind, database })),
)

longTest.each(CASES)(
  '[AP413] [AP661] another server continues the steps of one that was killed, each call, step and node once, in a $name',
  async ({ kind, database }) => {
    expect(await continueElsewhere(kind, database)).toBe(killPoints.length)
  },
)

test.each(oneOf(databases, 'SQLite'))(
  '[AP711] [AP413] another server continues a workflow whose payment is a node, and the payment runs once, on $name',
  async (database) => {
    expect(await continueElsewhere('tool', database)).toBe(killPoints.length)
  },
)
