import { afterAll, expect, test } from 'vitest'

import { oneOf, times } from '../../../../test/support/long-run.ts'
import { openSqliteStore } from '../../src/store/index.ts'
import { textOf } from '../support/chat-probe.ts'
import { bundleChildren } from './support/children.ts'
import { databases } from './support/databases.ts'
import { type Folder, makeFolder } from './support/folder.ts'
import { type Answered, type Asked, Person, readEffects } from './support/person.ts'
import { openPaymentServer } from './support/payment-server.ts'

const REQUESTS = 50
const ROUNDS = times(2, 20)
/** Whether the call is approved or denied depends on which request comes first. The rounds go on until both have been seen. */
const MAX_ROUNDS = 40
/** A request waits for a chat for two leases. They are long, so that no request fails on a busy machine. */
const LONG_LEASE = { LEASE_MS: '15000' }

/** Two server processes on one database. */
interface Servers extends AsyncDisposable {
  readonly folder: Folder
  readonly urls: readonly [string, string]
}

const started = new Map<string, Promise<Servers>>()

/** Starts the two processes once for all tests on a kind of database. Each test uses chats of its own. */
function startServers({ name, open }: (typeof databases)[number]): Promise<Servers> {
  const servers = started.get(name) ?? start()
  started.set(name, servers)
  return servers

  async function start(): Promise<Servers> {
    const database = await open()
    const folder = await makeFolder()
    const children = await bundleChildren()
    const env = { ...database.env, ...LONG_LEASE }
    const one = children.start(folder, 'one', env)
    const two = children.start(folder, 'two', env)
    return {
      folder,
      urls: await Promise.all([one.serve(), two.serve()]),
      async [Symbol.asyncDispose]() {
        await Promise.all([one.kill(), two.kill()])
        await folder[Symbol.asyncDispose]()
        await database[Symbol.asyncDispose]()
      },
    }
  }
}

afterAll(async () => {
  for (const servers of started.values()) await (await servers)[Symbol.asyncDispose]()
})

test('[AP13] of fifty concurrent decisions over HTTP one counts, and every request gets a response', async () => {
  await using folder = await makeFolder()
  await using store = await openSqliteStore({ path: folder.database })
  await using paymentServer = await openPaymentServer({ store, effects: folder.effects })
  const ends = await raceUntilBoth({ urls: [paymentServer.url], effects: folder.effects })
  expect(ends).toEqual(new Set(['succeeded', 'denied']))
  expect(paymentServer.errors).toEqual([])
})

// Decisions of several processes on SQLite have tests of their own: `ledger/processes.test.ts`.
test.each(oneOf(databases, 'PostgreSQL'))(
  '[AP13] of fifty concurrent decisions at two server processes on $name one counts, and every request gets a response',
  async (database) => {
    const { folder, urls } = await startServers(database)
    const ends = await raceUntilBoth({ urls, effects: folder.effects })
    expect(ends).toEqual(new Set(['succeeded', 'denied']))
  },
)

test.each(oneOf(databases, 'PostgreSQL'))(
  '[AP13] one process on $name continues a turn while another replies to a new message: each writes its own message',
  async (database) => {
    const {
      folder,
      urls: [first, second],
    } = await startServers(database)
    for (let round = 0; round < times(2, 5); round += 1) {
      const chatId = `both-${round}`
      const writer = new Person(first, { chatId })
      const decider = new Person(second, { chatId })
      const asked = await writer.ask()
      const saying = await writer.begin('[[say One.]][[pause 200]][[say Two.]]')
      await (round % 2 === 0
        ? decider.answer(asked, { approved: true })
        : decider.decide(asked.approvalId, { approved: true }))
      expect(await saying.text()).toContain('Two.')
      await expect.poll(() => readEffects(folder.effects, chatId).length).toBe(1)
      await expect
        .poll(async () => (await decider.messages()).map(textOf))
        .toEqual([
          '[[call pay {"to": "花子", "amount": 50}]]',
          'pay -> {"paid":50,"to":"花子"}',
          '[[say One.]][[pause 200]][[say Two.]]',
          'One.Two.',
        ])
      expect((await writer.say('[[say Fine.]]')).body).toContain('Fine.')
      expect((await decider.say('[[say Fine.]]')).body).toContain('Fine.')
      // The end of the turn is known at the other server a moment later.
      await expect.poll(() => writer.messages()).toHaveLength(8)
    }
  },
)

interface TestSetup {
  readonly urls: readonly string[]
  readonly effects: string
}

/** Reports how the races ended. */
async function raceUntilBoth(setup: TestSetup): Promise<Set<string>> {
  const ends = new Set<string>()
  for (let round = 0; round < ROUNDS || (ends.size < 2 && round < MAX_ROUNDS); round += 1) {
    ends.add(await race(round, setup))
  }
  return ends
}

/** Decides one approval fifty times concurrently, in every form of request. Returns the outcome. */
async function race(round: number, { urls, effects }: TestSetup): Promise<string> {
  const chatId = `race-${round}`
  const people = urls.map((url) => new Person(url, { chatId }))
  const person = at(people, round)
  const asked = await person.ask()
  const answers = await Promise.all(
    Array.from({ length: REQUESTS }, (_, number) =>
      decideSomehow(at(people, number >> 1), asked, number + round),
    ),
  )
  for (const answer of answers) expectAnswered(answer)

  const state = await endOf(person, asked)
  const seen = await person.approval(asked.approvalId)
  expect(seen?.history.map(({ type }) => type)).toEqual(HISTORIES[state])
  const ran = readEffects(effects, chatId).map(({ key }) => key)
  expect(ran).toEqual(state === 'denied' ? [] : [asked.toolCallId])
  await expectToldOnce(person, asked, state)
  return state
}

const HISTORIES: Readonly<Record<string, readonly string[]>> = {
  denied: ['requested', 'denied'],
  succeeded: ['requested', 'approved', 'started', 'succeeded'],
}

function decideSomehow(person: Person, asked: Asked, number: number): Promise<Answered> {
  const approved = number % 3 !== 0
  return number % 2 === 0
    ? person.answer(asked, { approved })
    : person.decide(asked.approvalId, { approved })
}

/** Expects a stream that ends properly, the accepted decision, or the rejection of a late one. */
function expectAnswered({ status, code, chunks, body }: Answered): void {
  const isStream = chunks.at(-1)?.type === 'finish'
  const isDecision = status === 200 && body.startsWith('{"approval":{')
  const isRefusal = status === 409 && code === 'approval-decided'
  expect([isStream || isDecision || isRefusal, body]).toEqual([true, body])
}

/** A decision in the inbox gets its response before the call has run. */
async function endOf(person: Person, { approvalId }: Asked): Promise<string> {
  await expect
    .poll(async () => (await person.approval(approvalId))?.approval.state)
    .toMatch(/^(?:succeeded|denied)$/)
  return (await person.approval(approvalId))?.approval.state ?? ''
}

/** The conversation shows one call with one result and one reply of the model. */
async function expectToldOnce(person: Person, asked: Asked, state: string): Promise<void> {
  await expect.poll(async () => (await person.messages()).at(-1)?.parts.at(-1)?.type).toBe('text')
  const messages = await person.messages()
  expect(messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
  const parts = messages.at(-1)?.parts ?? []
  expect(parts.filter(({ type }) => type === 'text')).toHaveLength(1)
  const calls = parts.filter(({ toolCallId }) => toolCallId !== undefined)
  expect(calls.map(({ toolCallId }) => toolCallId)).toEqual([asked.toolCallId])
  expect(calls[0]?.state).toMatch(
    state === 'denied' ? /^output-(?:denied|error)$/ : /^output-available$/,
  )
}

function at<Item>(items: readonly Item[], index: number): Item {
  const item = items[index % items.length]
  if (item === undefined) throw new Error('there is nothing to choose from')
  return item
}
