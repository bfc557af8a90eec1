import { setTimeout as delay } from 'node:timers/promises'

import { expect, test } from 'vitest'

import { isLong, oneOf, shareOf, times } from '../../../../test/support/long-run.ts'
import { AG_UI_VERSIONS, AgUiClient } from '../ag-ui/support/ag-ui-client.ts'
import { bundleChildren, type Child, type Children } from './support/children.ts'
import { POLLING } from './support/crash-pair.ts'
import { databases, type SharedDatabase } from './support/databases.ts'
import { type Folder, makeFolder } from './support/folder.ts'
import { type Asked, Person, readEffects } from './support/person.ts'

const GENERATIONS = times(1, 4)
/**
 * A server waits for a lease before it cancels an approval without a question in the conversation. Only one server runs at a time, so none
 * can lose its lease to another one.
 */
const LEASE = { LEASE_MS: '500' }

/** How a call is decided, and whether it may be repeated. */
type Kind = 'approve' | 'inbox' | 'deny' | 'repeat' | 'ag-ui-1' | 'ag-ui-0'

/** Where the process is killed, in which kind of scenario, the outcome without a further decision, and the total number of payments. */
type KillPoint = readonly [
  moment: string,
  kind: Kind,
  becomes: string,
  effects: number,
  depth?: number,
]

const killPoints: readonly KillPoint[] = [
  ['before-question', 'approve', 'nothing', 0],
  ['after-question', 'inbox', 'requested', 0],
  ['before-decision', 'approve', 'requested', 1],
  ['before-decision', 'inbox', 'requested', 1],
  ['before-decision', 'deny', 'requested', 0],
  ['after-decision', 'approve', 'succeeded', 1],
  ['after-decision', 'inbox', 'succeeded', 1],
  ['after-decision', 'deny', 'denied', 0],
  ['before-claim', 'approve', 'succeeded', 1],
  ['before-claim', 'inbox', 'succeeded', 1],
  ['after-claim', 'approve', 'unknown', 0],
  ['after-claim', 'repeat', 'succeeded', 1],
  ['before-effect', 'approve', 'unknown', 0],
  ['before-effect', 'repeat', 'succeeded', 1],
  ['after-effect', 'approve', 'unknown', 1],
  ['after-effect', 'inbox', 'unknown', 1],
  ['after-effect', 'repeat', 'succeeded', 2],
  ['before-outcome', 'approve', 'unknown', 1],
  ['before-outcome', 'repeat', 'succeeded', 2],
  ['after-outcome', 'approve', 'succeeded', 1],
  ['after-outcome', 'inbox', 'succeeded', 1],
  ['before-response', 'approve', 'succeeded', 1],
  ['before-response', 'deny', 'denied', 0],
  ['after-response', 'approve', 'succeeded', 1],
  ['after-response', 'deny', 'denied', 0],
  ['after-telling', 'approve', 'succeeded', 1],
  ['after-the-end', 'approve', 'succeeded', 1],
  ['before-decision', 'ag-ui-1', 'requested', 1],
  ['after-decision', 'ag-ui-0', 'succeeded', 1],
  ['after-claim', 'ag-ui-1', 'unknown', 0],
  ['after-effect', 'ag-ui-0', 'unknown', 1],
  ['before-response', 'ag-ui-1', 'succeeded', 1],
]

/** The kill points of a call inside agents that are used as tools, and how deep it is. */
const nestedKillPoints: readonly KillPoint[] = [
  ...killPoints.flatMap(([moment, kind, becomes, effects]): KillPoint[] =>
    moment === 'after-telling' ? [] : [[moment, kind, becomes, effects, 2]],
  ),
  ['before-question', 'approve', 'nothing', 0, 1],
  ['before-decision', 'approve', 'requested', 1, 1],
  ['after-claim', 'approve', 'unknown', 0, 1],
  ['after-effect', 'approve', 'unknown', 1, 1],
  ['after-response', 'approve', 'succeeded', 1, 1],
  ['before-desk', 'approve', 'succeeded', 1, 2],
  ['before-desk', 'deny', 'denied', 0, 1],
  ['after-desk', 'approve', 'succeeded', 1, 2],
  ['before-agency', 'inbox', 'succeeded', 1, 2],
  ['after-agency', 'approve', 'succeeded', 1, 2],
]

/** Returns the first scenario of each moment. `npm test` has all decisions at the top level, and half of these. */
function firstOfEach(all: readonly KillPoint[]): readonly KillPoint[] {
  return all.filter(([moment], index) => all.findIndex(([other]) => other === moment) === index)
}

const LOST = ['requested', 'approved', 'started', 'lost']

/** The audit record of each possible outcome. */
const HISTORIES: Readonly<Record<string, readonly string[]>> = {
  succeeded: ['requested', 'approved', 'started', 'succeeded'],
  repeated: [...LOST, 'started', 'succeeded'],
  unknown: LOST,
  denied: ['requested', 'denied'],
  cancelled: ['requested', 'approved', 'cancelled'],
}

// The steps of a call are the same on each kind of database, whose transactions and leases have tests of their own.
test.each(oneOf(databases, 'SQLite'))(
  '[AP42] [AP403] a server killed at any step of an approval, at any level of agents that are used as tools, loses nothing and repeats nothing, on $name',
  async ({ open }) => {
    await using database = await open()
    await using folder = await makeFolder()
    const children = await bundleChildren()
    const groups = isLong
      ? [killPoints, nestedKillPoints]
      : [[...killPoints, ...shareOf(firstOfEach(nestedKillPoints), { group: 0, groups: 2 })]]
    for (const all of groups) {
      const scenarios = await killAndContinue(children, folder, {
        env: database.env,
        killPoints: all,
      })
      expect(scenarios).toBe(all.length * GENERATIONS)
      expect(scenarios).toBeGreaterThan(times(30, 100))
    }
  },
)

/** Kills one server after the other during many scenarios. The next one, which was loaded meanwhile, takes over the database. */
async function killAndContinue(
  children: Children,
  folder: Folder,
  { env, killPoints: all }: { env: SharedDatabase['env']; killPoints: readonly KillPoint[] },
): Promise<number> {
  let scenarios = 0
  const start = (name: string) => children.start(folder, name, { ...env, ...LEASE })
  let standby = start('g0')
  let url = await standby.serve()
  try {
    for (let generation = 0; generation < GENERATIONS; generation += 1) {
      await using victim = standby
      standby = start(`g${generation + 1}`)
      const begun = await Promise.all(all.map((point) => live(point, { victim, url, generation })))
      expect(await victim.kill()).toBe('SIGKILL')
      url = await standby.serve()
      await Promise.all(begun.map((scenario) => continueScenario(scenario, url, folder)))
      scenarios += begun.length
    }
  } finally {
    await standby.kill()
  }
  return scenarios
}

interface Scenario {
  readonly chatId: string
  readonly kind: Kind
  readonly becomes: string
  readonly effects: number
  /** How many agents lead to the one that pays. */
  readonly depth: number
  /** Undefined if the process was killed before the approval was requested. */
  readonly asked: Asked | undefined
}

/** Brings an approval to the point at which its process is killed. */
async function live(
  [moment, kind, becomes, effects, depth = 0]: KillPoint,
  { victim, url, generation }: { victim: Child; url: string; generation: number },
): Promise<Scenario> {
  const chatId = `g${generation}.${moment}.${kind}.${depth}`
  const person = new Person(url, { user: chatId, chatId })
  const scenario = { chatId, kind, becomes, effects, depth }
  const tool = kind === 'repeat' ? 'top_up' : 'pay'
  const call = ['desk', 'agency']
    .slice(0, depth)
    .reduce(
      (request, agent) => `[[call ${agent} ${JSON.stringify({ request })}]]`,
      `[[call ${tool} {"to": "花子", "amount": 50}]]`,
    )
  const asking = person.ask(moment === 'after-telling' ? `${call}[[then]][[pause 5000]]` : call)
  if (moment.endsWith('question')) {
    await diesIn(victim, chatId, asking)
    return { ...scenario, asked: undefined }
  }
  const asked = await asking
  const answering = decide(person, asked, kind)
  if (moment === 'after-the-end') await answering
  else await diesIn(victim, chatId, answering)
  return { ...scenario, asked }
}

/** The request gets no response: its process is killed meanwhile. */
async function diesIn(victim: Child, chatId: string, request: Promise<unknown>): Promise<void> {
  request.catch(() => undefined)
  await victim.waitForLine((line) => line === `at ${chatId}`)
}

async function decide(person: Person, asked: Asked, kind: Kind): Promise<void> {
  const approved = kind !== 'deny'
  const client = openAgUi(person, kind)
  if (client) {
    await client.answer({ [asked.approvalId]: { approved } })
    return
  }
  const { status, body } =
    kind === 'inbox'
      ? await person.decide(asked.approvalId, { approved })
      : await person.answer(asked, { approved })
  expect([status, body]).toEqual([200, body])
}

function openAgUi({ url, chatId }: Person, kind: Kind): AgUiClient | undefined {
  const version = AG_UI_VERSIONS[['ag-ui-1', 'ag-ui-0'].indexOf(kind)]
  const headers = { 'x-user': chatId }
  return version && new AgUiClient(version, { url, threadId: chatId, headers, fetch: fetchWhole })
}

/** Ends the body of a response if its server is killed. The clients leave a rejected promise behind when a body fails. */
async function fetchWhole(...request: Parameters<typeof fetch>): Promise<Response> {
  const { status, headers, body } = await fetch(...request)
  const chunks: Uint8Array[] = []
  try {
    for await (const chunk of body ?? []) chunks.push(chunk)
  } catch {
    // The server was killed.
  }
  return new Response(Buffer.concat(chunks), { status, headers })
}

/** Checks what a person finds who returns, and continues as that person would. */
async function continueScenario(scenario: Scenario, url: string, folder: Folder): Promise<void> {
  const { chatId, becomes, effects } = scenario
  const person = new Person(url, { user: chatId, chatId })
  const asked = scenario.asked ?? (await findAsked(person))
  expect([chatId, asked === undefined]).toEqual([chatId, becomes === 'nothing'])
  if (asked) await expectEnd(scenario, person, asked)
  const { chunks, body } = await sayWhenFree(person)
  expect([chatId, body, chunks.at(-1)?.type]).toEqual([chatId, body, 'finish'])
  expect(body).toContain('Fine.')
  const done = readEffects(folder.effects, chatId)
  expect([chatId, done.length]).toEqual([chatId, effects])
  // Repeated calls had the same idempotency key.
  expect(new Set(done.map(({ key }) => key)).size).toBe(Math.min(1, effects))
}

/** Sends a message after the lease of the killed process has expired. */
async function sayWhenFree(person: Person): Promise<Awaited<ReturnType<Person['say']>>> {
  for (;;) {
    const answered = await person.say('[[say Fine.]]')
    if (answered.code !== 'turn-running') return answered
    await delay(POLLING.interval)
  }
}

/** The approval as the inbox shows it, if the chat does not show it. */
async function findAsked(person: Person): Promise<Asked | undefined> {
  const [approval] = await person.approvals()
  if (!approval) return undefined
  const { messageId = '', toolCallId = '' } = approval
  return { approvalId: approval.id, messageId, toolCallId }
}

async function expectEnd(scenario: Scenario, person: Person, asked: Asked): Promise<void> {
  const { chatId, kind, becomes } = scenario
  const read = async () => [chatId, (await person.approval(asked.approvalId))?.approval.state]
  await expect.poll(read, POLLING).toEqual([chatId, becomes])
  if (becomes === 'requested') await decide(person, asked, kind)
  const end = endOf(scenario)
  await expect.poll(read, POLLING).toEqual([chatId, end])
  // A call inside another agent is shown only when its approval is requested.
  const isShown = scenario.depth === 0 || scenario.asked !== undefined
  if (isShown) await expectTold(person, asked)
  if (isShown && scenario.depth > 0) await expectReplied(person)
  // The page sends its answer again, in several tabs.
  const tabs = [1, 2, 3].map(() => openAgUi(person, kind))
  for (const refused of await Promise.all(tabs.map((tab) => repeat(tab, asked.approvalId))))
    expect(refused ?? ['approval-decided']).toEqual(['approval-decided'])
  // A second decision from another tab has no effect.
  const again = await person.decide(asked.approvalId, { approved: true })
  expect(again.code).toBe(end === 'cancelled' ? 'approval-cancelled' : 'approval-decided')
  const { history } = (await person.approval(asked.approvalId)) ?? {}
  const types = history?.map(({ type }) => type)
  expect([chatId, types]).toEqual([chatId, HISTORIES[kind === 'repeat' ? 'repeated' : end]])
}

async function repeat(tab: AgUiClient | undefined, id: string): Promise<string[] | undefined> {
  await tab?.answer({ [id]: { approved: true } })
  return tab?.refused
}

/** The outcome after the person has decided everything that was open. */
function endOf({ becomes, kind, asked }: Scenario): string {
  if (becomes !== 'requested') return becomes
  // The conversation does not contain the approval request, so no turn can resume.
  if (!asked) return 'cancelled'
  return kind === 'deny' ? 'denied' : 'succeeded'
}

/** The stored conversation shows the call with its outcome. */
async function expectTold(person: Person, { toolCallId }: Asked): Promise<void> {
  const read = async () => {
    const calls = (await person.calls()).filter((call) => call.toolCallId === toolCallId)
    return [person.chatId, ...calls.map(({ state }) => state)]
  }
  const ended = expect.stringMatching(/^output-/) as unknown
  await expect.poll(read, POLLING).toEqual([person.chatId, ended])
}

/** The agent that the chat uses as a tool has finished: its call has a result that is not preliminary. */
async function expectReplied(person: Person): Promise<void> {
  const read = async () => {
    const [call] = await person.calls()
    return [
      person.chatId,
      call?.type,
      call?.state,
      JSON.stringify(call?.output).includes('pending'),
    ]
  }
  const type = expect.stringMatching(/^tool-(?:desk|agency)$/) as unknown
  await expect.poll(read, POLLING).toEqual([person.chatId, type, 'output-available', false])
}
