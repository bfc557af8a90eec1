import Database from 'libsql'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'

import { openSqliteStore } from '../../src/store/index.ts'
import { textOf } from '../support/chat-probe.ts'
import { bundleChildren, type Child, type Children } from './support/children.ts'
import { type Folder, makeFolder } from './support/folder.ts'
import { JUMP_TABLE } from './support/jumping-store.ts'
import { type Asked, Person, readEffects } from './support/person.ts'

const TIMEOUT_MS = 120_000
const PATIENCE = { timeout: 30_000, interval: 50 }
/** Of the children. */
const LEASE_MS = 500

let children: Children
/** Servers with the default options. Each test uses chats of its own. */
let shared: Servers

beforeAll(async () => {
  children = await bundleChildren()
  shared = await startServers({ BLOCK_MS: String(4 * LEASE_MS) })
}, TIMEOUT_MS)

afterEach(() => shared.a.resume())
afterAll(() => shared[Symbol.asyncDispose]())

/** Two server processes on one database, and the same people at both. */
interface Servers extends AsyncDisposable {
  readonly a: Child
  readonly folder: Folder
  atA(chatId: string): Person
  atB(chatId: string): Person
}

async function startServers(
  env: Readonly<Record<string, string>> = {},
  prepare: (folder: Folder) => Promise<void> = async () => undefined,
): Promise<Servers> {
  const folder = await makeFolder()
  await prepare(folder)
  const [a, b] = [children.start(folder, 'a', env), children.start(folder, 'b')]
  const [urlA, urlB] = [await a.serve(), await b.serve()]
  return {
    a,
    folder,
    atA: (chatId) => new Person(urlA, { user: chatId, chatId }),
    atB: (chatId) => new Person(urlB, { user: chatId, chatId }),
    async [Symbol.asyncDispose]() {
      // One that stands still would never end.
      a.resume()
      await Promise.all([a.kill(), b.kill()])
      await folder[Symbol.asyncDispose]()
    },
  }
}

/** Has the tool of a chat begin at A, by a decision that is read from a stream or given in an inbox. */
async function beginAtA(
  servers: Servers,
  chatId: string,
  by: 'stream' | 'inbox',
): Promise<{ asked: Asked; answer: Promise<Response> }> {
  const tool = chatId.endsWith('top_up') ? 'top_up' : 'pay'
  const person = servers.atA(chatId)
  const asked = await person.ask(`[[call ${tool} {"to": "花子", "amount": 50}]]`)
  const approval = { approved: true }
  const part = { type: `tool-${tool}` }
  const answer =
    by === 'stream'
      ? person.beginAnswer(asked, approval, part)
      : person.decide(asked.approvalId, approval).then(({ body }) => new Response(body))
  await servers.a.said((line) => line === `at ${chatId}`)
  return { asked, answer }
}

async function readLife(person: Person, { approvalId }: Asked): Promise<readonly unknown[]> {
  const { approval, history } = (await person.approval(approvalId)) ?? {}
  return [approval?.state, ...(history ?? []).map(({ type }) => type)]
}

const WHOLE = ['succeeded', 'requested', 'approved', 'started', 'succeeded']

/** Lets as much time pass as a number of leases takes. */
async function passLeases(count: number): Promise<void> {
  const until = performance.now() + count * LEASE_MS
  await expect.poll(() => performance.now(), PATIENCE).toBeGreaterThan(until)
}

test(
  '[LG80] a clock that is set forwards and backwards takes nothing from a process that runs it',
  async () => {
    let clock: Database.Database | undefined
    await using servers = await startServers({}, async ({ database: path }) => {
      await (await openSqliteStore({ path })).close()
      clock = new Database(path, { timeout: 30_000 })
      clock.exec(`CREATE TABLE ${JUMP_TABLE} (ms INTEGER); INSERT INTO ${JUMP_TABLE} VALUES (0)`)
    })
    const chats = [0, 1, 2, 3].flatMap((n) => [`a.hold.${n}.pay`, `a.hold.${n}.top_up`])
    const lives = await Promise.all(chats.map((chatId) => beginAtA(servers, chatId, 'inbox')))
    for (const jump of [60_000, -60_000]) {
      clock?.exec(`UPDATE ${JUMP_TABLE} SET ms = ${jump}`)
      await passLeases(3)
    }
    servers.a.tell('go')
    for (const [index, chatId] of chats.entries()) {
      const asked = lives[index]?.asked ?? { approvalId: '', toolCallId: '', messageId: '' }
      const life = () => readLife(servers.atB(chatId), asked)
      await expect.poll(life, PATIENCE).toEqual(WHOLE)
      expect([chatId, readEffects(servers.folder.effects, chatId).length]).toEqual([chatId, 1])
    }
  },
  TIMEOUT_MS,
)

test(
  '[LG81] a process whose event loop is blocked for some leases keeps what it runs',
  async () => {
    const chatId = 'a.block.pay'
    const { asked, answer } = await beginAtA(shared, chatId, 'stream')
    expect(await (await answer).text()).toContain('"type":"tool-output-available"')
    expect(await readLife(shared.atB(chatId), asked)).toEqual(WHOLE)
    expect(readEffects(shared.folder.effects, chatId)).toHaveLength(1)
  },
  TIMEOUT_MS,
)

test(
  '[LG81] a process whose event loop does not come back in time loses what it runs',
  async () => {
    const env = { BLOCK_MS: String(12 * LEASE_MS), MAX_BLOCKED_MS: String(2 * LEASE_MS) }
    await using servers = await startServers(env)
    const chatId = 'a.block.pay'
    const { asked, answer } = await beginAtA(servers, chatId, 'stream')
    const lost = ['unknown', 'requested', 'approved', 'started', 'lost']
    const life = () => readLife(servers.atB(chatId), asked)
    await expect.poll(life, PATIENCE).toEqual(lost)
    // It reads what the other one wrote, or is refused to write beside it; the call that it ran is no success in either case.
    const body = await (await answer).text()
    expect(body).not.toContain('"type":"tool-output-available"')
    expect(body).toMatch(/"code":"turn-lost"|"state":"unknown"/)
    expect(await life()).toEqual(lost)
  },
  TIMEOUT_MS,
)

/** The stream of a process that lost the call tells that, and nothing of what came of the call. */
async function expectLost(answer: Response): Promise<void> {
  const body = await answer.text()
  expect(body).not.toContain('"type":"tool-output-available"')
  expect(body).not.toContain('"type":"finish"')
  expect(body).toContain('"code":"turn-lost"')
}

test(
  '[AP80] a process that stood still past its lease tells no success, and writes nothing beside the one that took over',
  async () => {
    const chatId = 'a.hold.pay'
    const { asked, ...begun } = await beginAtA(shared, chatId, 'stream')
    // The stream is open.
    const answer = await begun.answer
    shared.a.pause()
    const atB = shared.atB(chatId)
    const life = () => readLife(atB, asked)
    const lost = ['unknown', 'requested', 'approved', 'started', 'lost']
    await expect.poll(life, PATIENCE).toEqual(lost)
    const told = async () => (await atB.calls()).map(({ state }) => state)
    await expect.poll(told, PATIENCE).toEqual(['output-error'])
    expect((await atB.say('[[say Next.]]')).body).toContain('Next.')
    const before = await atB.messages()
    shared.a.resume()
    shared.a.tell('go')
    await expectLost(answer)
    // The tool ran, and nobody could know it: that is what `unknown` says.
    await expect.poll(() => readEffects(shared.folder.effects, chatId), PATIENCE).toHaveLength(1)
    expect(await life()).toEqual(lost)
    expect(await shared.atA(chatId).messages()).toEqual(before)
    expect((await shared.atA(chatId).say('[[say Again.]]')).body).toContain('Again.')
  },
  TIMEOUT_MS,
)

test(
  '[AP80] an idempotent call of a process that stood still is told as the one that took over ran it',
  async () => {
    const chatId = 'a.hold.top_up'
    const { asked, ...begun } = await beginAtA(shared, chatId, 'stream')
    // The stream is open.
    const answer = await begun.answer
    shared.a.pause()
    const atB = shared.atB(chatId)
    const life = () => readLife(atB, asked)
    const again = ['succeeded', 'requested', 'approved', 'started', 'lost', 'started', 'succeeded']
    await expect.poll(life, PATIENCE).toEqual(again)
    const told = async () => (await atB.calls()).map(({ state }) => state)
    await expect.poll(told, PATIENCE).toEqual(['output-available'])
    const before = await atB.messages()
    shared.a.resume()
    shared.a.tell('go')
    await expectLost(answer)
    const keys = () => readEffects(shared.folder.effects, chatId).map(({ key }) => key)
    await expect.poll(keys, PATIENCE).toHaveLength(2)
    expect(new Set(keys()).size).toBe(1)
    expect(await life()).toEqual(again)
    expect(await shared.atA(chatId).messages()).toEqual(before)
  },
  TIMEOUT_MS,
)

test(
  '[TU80] an answer of a process that stood still is not written into the conversation that went on without it',
  async () => {
    const chatId = 'streamed'
    const [atA, atB] = [shared.atA(chatId), shared.atB(chatId)]
    const script = '[[say One.]][[wait gate]][[say Two.]]'
    const answer = await atA.begin(script)
    shared.a.pause()
    // The first one who asks waits for the lease, or is told to come again.
    const next = async () => (await atB.say('[[say Next.]]')).body
    await expect.poll(next, PATIENCE).toContain('Next.')
    const before = await atB.messages()
    shared.a.resume()
    shared.a.tell('release gate')
    const body = await answer.text()
    expect(body).toContain('turn-lost')
    expect(body).not.toContain('"type":"finish"')
    expect(await atB.messages()).toEqual(before)
    expect(before.map(textOf)).not.toContain('One.Two.')
  },
  TIMEOUT_MS,
)
