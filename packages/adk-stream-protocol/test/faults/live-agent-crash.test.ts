import { setTimeout as delay } from 'node:timers/promises'

import { startEmulator } from 'gemini-emulator'
import { expect, test } from 'vitest'

import { oneOf, shareOf } from '../../../../test/support/long-run.ts'
import { LIVE_MODEL, LiveClient } from '../relay/support/live-pair.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import type { Child } from './support/children.ts'
import { openCrashPair } from './support/crash-pair.ts'
import { databases } from './support/databases.ts'
import { Person, readEffects } from './support/person.ts'

const PATIENCE = { timeout: 120_000, interval: 100 }
const PAY = '[[call pay {"to": "花子", "amount": 50}]][[then]][[say Paid.]]'
const ASK_DESK = `[[call desk ${JSON.stringify({ request: PAY })}]][[then]][[say Told.]]`

/** What the model says about the result of the agent: its script, or the result as a restored session receives it. */
const REPLY = /Told\.|desk returned|Result of the call/g

/** Where the process dies, whether the agent then finishes and the model replies, and how often money moves. */
type Death = readonly [moment: string, expected: { ends: boolean; replies: boolean; paid: number }]

const CONTINUED = { ends: true, replies: true, paid: 1 }
const DEATHS: readonly Death[] = [
  ['before-question', { ends: false, replies: false, paid: 0 }],
  ['after-question', { ends: false, replies: false, paid: 0 }],
  ['before-decision', CONTINUED],
  ['after-decision', CONTINUED],
  ['before-effect', { ...CONTINUED, paid: 0 }],
  ['after-effect', CONTINUED],
  ['before-outcome', CONTINUED],
  ['after-outcome', CONTINUED],
  ['before-response', CONTINUED],
  ['after-response', CONTINUED],
  ['before-desk', CONTINUED],
  // The conversation has the result. The model learns of it with the next input.
  ['after-desk', { ...CONTINUED, replies: false }],
]

test.each(oneOf(databases, 'SQLite'))(
  '[LV640] [LV491] after kill -9 while an agent runs or waits in a live session, the agent continues once, in the next live session or in a turn, on $name',
  async ({ open }) => {
    await using emulator = await openEmulator()
    const env = { MODEL_URL: emulator.baseUrl, LIVE_MODEL, GRACE_MS: '60000' }
    await using pair = await openCrashPair(open, env)
    const { first, second, url, folder } = pair
    const deaths = shareOf(DEATHS, { group: 0, groups: 3 })
    await Promise.all(deaths.map(([moment]) => liveUntil(moment, first, url)))
    expect(await first.kill()).toBe('SIGKILL')
    const next = await second.serve()
    await Promise.all(
      deaths.map(async ([moment, { ends, replies, paid }]) => {
        const chatId = chatOf(moment)
        const person = new Person(next, { chatId })
        // It starts while the server recovers the calls of the killed one.
        await using client = await LiveClient.join(next, chatId)
        await client.status('open')
        await expect.poll(() => settle(person), PATIENCE).toMatch(/^output-/)
        const reply = async () => textOf((await person.messages())[1])
        await expect.poll(reply, PATIENCE).toMatch(replies ? REPLY : /^$/)
        expect(await client.say('[[say And on.]]')).toBe('And on.')
        const messages = await person.messages()
        const [desk] = toolParts(messages[1])
        expect([moment, messages.map(({ role }) => role), textOf(messages[3])]).toEqual([
          moment,
          ['user', 'assistant', 'user', 'assistant'],
          'And on.',
        ])
        expect([moment, JSON.stringify(desk).includes('"Paid."')]).toEqual([moment, ends])
        const told = (await reply()).match(REPLY) ?? []
        expect([moment, told.length]).toEqual([moment, replies ? 1 : 0])
        expect([moment, readEffects(folder.effects, chatId).length]).toEqual([moment, paid])
      }),
    )
  },
)

async function openEmulator() {
  const emulator = await startEmulator()
  return { baseUrl: emulator.baseUrl, [Symbol.asyncDispose]: () => emulator.close() }
}

function chatOf(moment: string): string {
  return `g0.${moment}.desk`
}

/** Approves the call of the agent, until the process stops for good at the moment. */
async function liveUntil(moment: string, server: Child, url: string): Promise<void> {
  const chatId = chatOf(moment)
  const person = new Person(url, { chatId })
  const client = await LiveClient.join(url, chatId)
  client.begin(ASK_DESK)
  const stopped = new AbortController()
  const reached = server.said((line) => line === `at ${chatId}`).then(() => stopped.abort())
  while (!stopped.signal.aborted) {
    // A decision at which the process stops is never answered.
    await Promise.race([reached, settle(person).catch(() => undefined)])
    await Promise.race([reached, delay(PATIENCE.interval)])
  }
}

/** Approves wherever the person is asked. Returns the state of the call of the agent. */
async function settle(person: Person): Promise<string> {
  for (const { id, chatId } of await person.approvals())
    if (chatId === person.chatId) await person.decide(id, { approved: true })
  const [desk] = toolParts((await person.messages())[1])
  return String(desk?.['state'])
}
