import { setTimeout as delay } from 'node:timers/promises'

import { startEmulator } from 'gemini-emulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { oneOf, shareOf } from '../../../../test/support/long-run.ts'
import { LIVE_MODEL, LiveClient } from '../relay/support/live-pair.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { type McpFixture, serveHttp } from '../support/mcp-servers.ts'
import type { Child } from './support/children.ts'
import { openCrashPair } from './support/crash-pair.ts'
import { databases } from './support/databases.ts'
import { Person, readEffects } from './support/person.ts'

const POLLING = { timeout: 120_000, interval: 100 }
const PAY = '[[call pay {"to": "花子", "amount": 50}]][[then]][[say Paid.]]'
const ASK_DESK = `[[call desk ${JSON.stringify({ request: PAY })}]][[then]][[say Told.]]`
const CHARGE = '[[call charge {"to": "花子", "amount": 50}]][[then]][[say Told.]]'
const ASK_FILES = '[[call files_ask {}]][[then]][[say Told.]]'

/** What the model says about a result: its script, or the result as a restored session receives it. */
const REPLY = /Told\.|(?:desk|charge) returned|Result of the call/g

/** Where the process is killed, whether the agent then finishes and the model replies, and how often money moves. */
type AgentKillPoint = readonly [moment: string, expected: AgentEnd]
interface AgentEnd {
  readonly ends: boolean
  readonly replies: boolean
  readonly paid: number
}

const CONTINUED = { ends: true, replies: true, paid: 1 }
const AGENT_KILL_POINTS: readonly AgentKillPoint[] = [
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
  ['after-desk', CONTINUED],
]

/** Where the process is killed, how the approved call that needs a sign-in ends, and how often money moves. */
type SignInKillPoint = readonly [moment: string, ends: 'succeeded' | 'unknown', paid: number]

const SIGN_IN_KILL_POINTS: readonly SignInKillPoint[] = [
  // While the approved call asks for the sign-in, it runs: its outcome is unknown.
  ['before-sign-in-question', 'unknown', 0],
  ['before-outcome', 'unknown', 0],
  ['after-outcome', 'succeeded', 1],
  ['before-sign-in-decision', 'succeeded', 1],
  ['after-sign-in-decision', 'succeeded', 1],
  ['before-sign-in-claim', 'succeeded', 1],
  ['after-sign-in-claim', 'unknown', 0],
  ['after-effect', 'unknown', 1],
  ['before-sign-in-outcome', 'unknown', 1],
  ['after-sign-in-outcome', 'succeeded', 1],
]

const elicit = {
  message: 'Which city?',
  requestedSchema: { type: 'object', properties: { city: { type: 'string' } } },
}

/** Two servers, of which the first was killed, and what they share. */
interface AfterCrash {
  readonly url: string
  readonly effects: string
  readonly files: McpFixture
  /** The calls of the MCP server before the crash. */
  readonly called: readonly string[]
}

describe.each(oneOf(databases, 'SQLite'))('kill -9 in live sessions, on $name', ({ open }) => {
  const agents = shareOf(AGENT_KILL_POINTS, { group: 0, groups: 3 })
  const signIns = shareOf(SIGN_IN_KILL_POINTS, { group: 0, groups: 2 })
  const opened: AsyncDisposable[] = []
  let after: AfterCrash

  beforeAll(async () => {
    const emulator = await startEmulator()
    const files = await serveHttp([{ name: 'ask', _meta: { elicit } }])
    opened.push({ [Symbol.asyncDispose]: () => emulator.close() }, files)
    const { url: mcpUrl = '' } = files.connection as { url?: string }
    const model = { MODEL_URL: emulator.baseUrl, LIVE_MODEL, GRACE_MS: '60000' }
    const pair = await openCrashPair(open, { ...model, MCP_URL: mcpUrl })
    opened.push(pair)
    const { first, url, folder } = pair
    await Promise.all([
      ...agents.map(([moment]) => runUntilKilled(ASK_DESK, personOf(moment, 'desk', url), first)),
      ...signIns.map(([moment]) => runUntilKilled(CHARGE, personOf(moment, 'charge', url), first)),
    ])
    await askFiles(personOf('never', 'files', url))
    after = { url: await pair.crash(), effects: folder.effects, files, called: files.calls() }
  })
  afterAll(async () => {
    for (const part of opened.toReversed()) await part[Symbol.asyncDispose]()
  })

  test('[LV640] [LV490] an agent that ran or waited continues once, in the next live session or in a turn', async () => {
    const checked = await Promise.all(agents.map((point) => checkAgent(point, after)))
    expect(checked).toHaveLength(agents.length)
  })

  test('[AP690] an approved call that asks for a sign-in, or waits for it, loses and repeats nothing', async () => {
    const checked = await Promise.all(signIns.map((point) => checkSignIn(point, after)))
    expect(checked).toHaveLength(signIns.length)
  })

  test('[AP692] the question of an MCP server is cancelled, its call ends once, and a person who answers learns it', async () => {
    const person = personOf('never', 'files', after.url)
    await using client = await join(person)
    await client.status('open')
    await expect.poll(() => person.approvals(), POLLING).toEqual([])
    const reply = async () => (await person.messages()).at(-1)
    const call = async () => JSON.stringify(toolParts(await reply())[0])
    await expect.poll(call, POLLING).toContain('The server stopped while this call was running')
    const question = (await reply())?.parts.find(({ type }) => type === 'data-approval')
    expect(question).toMatchObject({ data: { kind: 'elicitation', state: 'cancelled' } })
    const { approvalId } = (question?.data ?? {}) as { approvalId?: string }
    const answer = { approved: true, payload: { city: 'Kyoto' } }
    expect(await person.decide(approvalId ?? '', answer)).toMatchObject({
      status: 410,
      code: 'approval-cancelled',
    })
    expect(await client.say('[[say And on.]]')).toBe('And on.')
    expect(textOf(await reply())).toBe('And on.')
    expect(after.files.calls()).toEqual(after.called)
  })
})

async function checkAgent(
  [moment, { ends, replies, paid }]: AgentKillPoint,
  { url, effects }: AfterCrash,
): Promise<void> {
  const person = personOf(moment, 'desk', url)
  // It starts while the server recovers the calls of the killed one.
  await using client = await join(person)
  await client.status('open')
  await expect.poll(() => settle(person), POLLING).toMatch(/^output-/)
  const reply = async () => textOf((await person.messages())[1])
  await expect.poll(reply, POLLING).toMatch(replies ? REPLY : /^$/)
  expect(await client.say('[[say And on.]]')).toBe('And on.')
  await expectTwoTurns(person, moment)
  const [desk] = toolParts((await person.messages())[1])
  expect([moment, JSON.stringify(desk).includes('"Paid."')]).toEqual([moment, ends])
  const repliesFound = (await reply()).match(REPLY) ?? []
  expect([moment, repliesFound.length]).toEqual([moment, replies ? 1 : 0])
  expect([moment, readEffects(effects, person.chatId).length]).toEqual([moment, paid])
}

async function checkSignIn(
  [moment, ends, paid]: SignInKillPoint,
  { url, effects }: AfterCrash,
): Promise<void> {
  const person = personOf(moment, 'charge', url)
  await using client = await join(person)
  await client.status('open')
  const shown = async () => {
    await settle(person)
    return JSON.stringify((await person.messages())[1])
  }
  const end = ends === 'unknown' ? '"state":"unknown"' : '"charged":50'
  await expect.poll(shown, POLLING).toContain(end)
  expect(await client.say('[[say And on.]]')).toBe('And on.')
  await expectTwoTurns(person, moment)
  const calls = toolParts((await person.messages())[1])
  expect([moment, calls.every(({ state }) => state?.startsWith('output-'))]).toEqual([moment, true])
  expect([moment, readEffects(effects, person.chatId).length]).toEqual([moment, paid])
  expect([moment, await person.approvals()]).toEqual([moment, []])
}

/** Each person has one chat, because a sign-in counts for all chats of a person. */
function personOf(moment: string, tool: string, url: string): Person {
  const chatId = `g0.${moment}.${tool}`
  return new Person(url, { user: chatId, chatId })
}

function join({ url, user, chatId }: Person): Promise<LiveClient> {
  return LiveClient.join(url, chatId, undefined, { 'x-user': user })
}

/** Approves and signs in wherever the person is asked, until the process stops at the kill point of the chat. */
async function runUntilKilled(text: string, person: Person, server: Child): Promise<void> {
  const client = await join(person)
  client.begin(text)
  const stopped = new AbortController()
  const reached = server
    .waitForLine((line) => line === `at ${person.chatId}`)
    .then(() => stopped.abort())
  while (!stopped.signal.aborted) {
    // A decision at which the process stops gets no response.
    await Promise.race([reached, settle(person).catch(() => undefined)])
    await Promise.race([reached, delay(POLLING.interval)])
  }
}

/** Lets the model call the tool of the MCP server until a person is asked. The stream ends at the question. */
async function askFiles(person: Person): Promise<void> {
  const client = await join(person)
  do await client.whole(client.begin(ASK_FILES))
  while ((await person.approvals()).length === 0)
}

/** Approves and signs in wherever the person is asked. Returns the state of the call. */
async function settle(person: Person): Promise<string> {
  for (const { id, kind } of await person.approvals())
    await (kind === 'sign-in'
      ? person.post(`/sign-ins/${id}`, { apiKey: 'a key' })
      : person.decide(id, { approved: true }))
  const [call] = toolParts((await person.messages())[1])
  return String(call?.['state'])
}

/** The chat has the turn that the crash interrupted, and one after it. */
async function expectTwoTurns(person: Person, moment: string): Promise<void> {
  const messages = await person.messages()
  const turn = ['user', 'assistant']
  const roles = messages.map(({ role }) => role)
  expect([moment, roles, textOf(messages[3])]).toEqual([moment, [...turn, ...turn], 'And on.'])
}
