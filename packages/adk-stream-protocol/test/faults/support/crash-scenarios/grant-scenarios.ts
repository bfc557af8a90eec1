import { expect } from 'vitest'

import { textOf } from '../../../support/chat-probe.ts'
import { type CrashScenarios, leaveOutRepeated, POLLING } from '../crash-pair.ts'
import type { Folder } from '../folder.ts'
import { Person, readEffects } from '../person.ts'

const TIP = '[[call tip {"to": "花子", "amount": 10}]][[then]][[say Thanked.]]'

/** Where the process is killed, how the covered call ends, and whether its effect has happened. */
type KillPoint = readonly [moment: string, ends: 'succeeded' | 'unknown', effects: number]

const KILL_POINTS = leaveOutRepeated<KillPoint>(
  [
    ['after-question', 'unknown', 0],
    ['before-effect', 'unknown', 0],
    ['after-effect', 'unknown', 1],
    ['before-outcome', 'unknown', 1],
    ['after-outcome', 'succeeded', 1],
  ],
  ['before-outcome'],
)

/** Calls that a grant covers. The grant was given in another chat. */
export function grantScenarios(folder: Folder): CrashScenarios {
  return {
    begin: async (server, url) => {
      await Promise.all(
        KILL_POINTS.map(async ([moment]) => {
          await giveGrant(personOf(moment, url, `first.${moment}`))
          const person = personOf(moment, url)
          // The request gets no response.
          person.say(TIP).catch(() => undefined)
          await server.waitForLine((line) => line === `at ${person.chatId}`)
        }),
      )
    },
    expectContinued: async (url) => {
      await Promise.all(KILL_POINTS.map((point) => expectTipped(point, { url, folder })))
    },
  }
}

async function expectTipped(
  [moment, ends, effects]: KillPoint,
  { url, folder }: { readonly url: string; readonly folder: Folder },
): Promise<void> {
  const person = personOf(moment, url)
  const isShown = ends === 'unknown' ? '"state":"unknown"' : '"outcome":"succeeded"'
  const readReply = async (): Promise<string> => JSON.stringify((await person.messages())[1])
  // The card of a call whose approval the conversation did not contain yet has only its error.
  const expected = moment === 'after-question' ? 'may or may not have taken effect' : isShown
  await expect.poll(readReply, POLLING).toContain(expected)
  expect([moment, readEffects(folder.effects, person.chatId).length]).toEqual([moment, effects])
  expect([moment, await person.approvals()]).toEqual([moment, []])
  // The use stays spent, whatever became of the call.
  expect([moment, await readUses(person)]).toEqual([moment, [{ uses: 1, spent: 10 }]])
  await person.say(TIP)
  const last = (await person.messages()).at(-1)
  expect([moment, last && textOf(last)]).toEqual([moment, 'Thanked.'])
  expect(readEffects(folder.effects, person.chatId)).toHaveLength(effects + 1)
}

const TIPS = TIP.replace('[[then]]', '[[then]][[call tip {"to": "花子", "amount": 20}]][[then]]')

/** Calls that wait when the process is killed, in two chats of a person. The turns call again when they continue. */
export function waitingScenarios(folder: Folder): CrashScenarios {
  return {
    begin: async (_server, url) => {
      for (const chat of ['one', 'two']) await waitingIn(chat, url).say(TIPS)
    },
    expectContinued: async (url) => {
      const [one, two] = [waitingIn('one', url), waitingIn('two', url)]
      const countEffects = (): number[] =>
        [one, two].map(({ chatId }) => readEffects(folder.effects, chatId).length)
      await decideWithGrant(one)
      // Nobody reads the turn.
      await expect.poll(() => readText(one), POLLING).toBe('Thanked.')
      expect([countEffects(), await readUses(one)]).toEqual([[2, 0], [{ uses: 1, spent: 20 }]])
      // A grant is for calls that follow: the one that waited since before still waits.
      const [waiting] = await two.approvalsOfChat()
      expect(await two.decide(waiting?.id ?? '', { approved: true })).toMatchObject({ status: 200 })
      await expect.poll(() => readText(two), POLLING).toBe('Thanked.')
      expect([countEffects(), await readUses(two)]).toEqual([[2, 2], [{ uses: 2, spent: 40 }]])
      expect(await two.approvals()).toEqual([])
    },
  }
}

const STEP = { tool: 'tip', args: { to: '花子', amount: 10 } }
const PLAN = `[[call propose_plan ${JSON.stringify({ steps: [STEP, STEP] })}]][[then]][[say Planned.]]`

/** Where the process is killed, what the conversation then shows, and how many calls of the plan run. */
const PLAN_POINTS = [
  ['after-claim', '"state":"unknown"', 0],
  ['before-outcome', '"state":"unknown"', 2],
  ['after-outcome', 'Planned.', 2],
] as const

function planOf(moment: string, url: string): Person {
  return new Person(url, { user: `g0.${moment}.plan`, chatId: `g0.${moment}.plan` })
}

/** Plans that were just approved. */
export function planScenarios(folder: Folder): CrashScenarios {
  return {
    begin: async (server, url) => {
      await Promise.all(
        PLAN_POINTS.map(async ([moment]) => {
          const person = planOf(moment, url)
          await person.say(PLAN)
          const [plan] = await person.approvals()
          // The request gets no response.
          person.decide(plan?.id ?? '', { approved: true }).catch(() => undefined)
          await server.waitForLine((line) => line === `at ${person.chatId}`)
        }),
      )
    },
    expectContinued: async (url) => {
      for (const [moment, shown, covered] of PLAN_POINTS) {
        const person = planOf(moment, url)
        const read = async (): Promise<string> => JSON.stringify(await person.messages())
        await expect.poll(read, POLLING).toContain(shown)
        const calls = Array.from({ length: 3 }, () => '[[call tip {"to": "花子", "amount": 10}]]')
        await person.say(`${calls.join('')}[[then]][[say Thanked.]]`)
        expect([moment, readEffects(folder.effects, person.chatId).length]).toEqual([
          moment,
          covered,
        ])
        expect([moment, (await person.approvals()).length]).toEqual([moment, 3 - covered])
      }
    },
  }
}

function waitingIn(chat: string, url: string): Person {
  return personOf('waiting', url, `${chat}.waiting`)
}

/** Returns the text of the first reply. */
async function readText(person: Person): Promise<string> {
  const [, reply] = await person.messages()
  return reply ? textOf(reply) : ''
}

function personOf(moment: string, url: string, chatId = `g0.${moment}.tip`): Person {
  return new Person(url, { user: `g0.${moment}.tip`, chatId })
}

async function giveGrant(person: Person): Promise<void> {
  await person.say(TIP)
  await decideWithGrant(person)
}

/** Approves the call that waits in a chat, with the grant that it offers. */
async function decideWithGrant(person: Person): Promise<void> {
  const [approval] = await person.approvalsOfChat()
  const { body } = await person.get(`/approvals/${approval?.id}`)
  const { offers } = (JSON.parse(body) as { approval: { offers: { id: string }[] } }).approval
  const decided = { approved: true, offer: offers[0]?.id }
  expect(await person.decide(approval?.id ?? '', decided)).toMatchObject({ status: 200 })
}

async function readUses(person: Person): Promise<unknown[]> {
  const { body } = await person.get('/grants')
  const { grants } = JSON.parse(body) as { grants: { uses: number; spent: number }[] }
  return grants.map(({ uses, spent }) => ({ uses, spent }))
}
