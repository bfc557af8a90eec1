import { MCPToolset, Workflow } from '@google/adk'
import { describe, expect, test } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { assistant } from '../support/agents.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import type { McpFixture } from '../support/mcp-servers.ts'
import { serveHttp } from '../support/mcp-servers.ts'
import { DATABASES } from '../support/store-databases.ts'
import type { ApprovingChat } from './support/approving-chat.ts'
import { approvingClients, liveClient, ourClients } from './support/approving-chat.ts'
import { expectRecord, readWhenEnded } from './support/expect-record.ts'
import { callPayment } from './support/payments.ts'
import type { TestBridgeOptions } from './support/test-bridge.ts'
import { TestBridge } from './support/test-bridge.ts'

const TOOL = 'mcp_elicitation'
const CALL = '[[call files_ask {}]][[then]][[say Done.]]'
const KYOTO = { city: 'Kyoto' }

const asksFor = (field: string, type = 'string') => ({
  message: `Which ${field}?`,
  requestedSchema: { type: 'object', properties: { [field]: { type } }, required: [field] },
})

function serveFiles(...elicit: readonly object[]): Promise<McpFixture> {
  return serveHttp([{ name: 'ask', _meta: { elicit } }])
}

function openBridge(files: McpFixture, options: TestBridgeOptions = {}): Promise<TestBridge> {
  const toolset = new MCPToolset(files.connection, [], 'files')
  return TestBridge.open({
    agent: (model) => assistant(model, { tools: [toolset] }),
    elicitation: true,
    isLive: false,
    ...options,
  })
}

async function give(chat: ApprovingChat, output: unknown): Promise<void> {
  const toolCallId = toolParts(chat.lastMessage).at(-1)?.toolCallId ?? ''
  await chat.give({ tool: TOOL, toolCallId, output })
  await chat.rest()
}

const outputs = (chat: ApprovingChat): unknown[] =>
  toolParts(chat.lastMessage).flatMap(({ type, output }) =>
    type === `tool-${TOOL}` ? [output] : [],
  )

const live = [liveClient, ...ourClients]
const clients = [
  ...[...approvingClients, ...live].map((client) => ({ client, name: client.name, isLive: false })),
  ...live.map((client) => ({ client, name: `${client.name} session`, isLive: true })),
]

describe.each(clients)('$name', ({ client, isLive }) => {
  test('[AP503] the stream ends at the question, and the client answers with addToolOutput', async () => {
    await using files = await serveFiles(asksFor('city'))
    await using bridge = await openBridge(files, { isLive })
    const page = bridge.page()
    const chat = await page.open(client, { autoSend: 'tool-calls' })
    await chat.send(CALL)
    await chat.rest()
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { type: 'tool-files_ask', state: 'input-available' },
      { type: `tool-${TOOL}`, state: 'input-available', input: { message: 'Which city?' } },
    ])
    await expectRecord(page, chat)
    await give(chat, KYOTO)
    await chat.untilShown('Done.')
    await chat.rest()
    expect(outputs(chat)).toEqual([KYOTO])
    await expectRecord(page, chat)
    expect(files.calls()).toEqual(['ask'])
    expect(bridge.errors).toEqual([])
  })
})

describe.each(approvingClients)('$name', (client) => {
  const it = takeTurns({
    group: approvingClients.indexOf(client),
    groups: approvingClients.length,
  })

  it('[AP503] several questions of one call are asked one after the other', async () => {
    await using files = await serveFiles(asksFor('city'), asksFor('days', 'integer'))
    await using bridge = await openBridge(files)
    const page = bridge.page()
    const chat = await page.open(client, { autoSend: 'tool-calls' })
    await chat.send(CALL)
    await give(chat, KYOTO)
    expect(await page.inbox()).toMatchObject([{ hint: 'Which days?' }])
    await expectRecord(page, chat)
    await give(chat, { days: 2 })
    expect(textOf(chat.lastMessage)).toBe('Done.')
    expect(outputs(chat)).toEqual([KYOTO, { days: 2 }])
    await expectRecord(page, chat)
  })

  it('[AP580] questions of calls that run at the same time are asked one after the other', async () => {
    await using files = await serveFiles(asksFor('city'))
    await using bridge = await openBridge(files)
    const page = bridge.page()
    const chat = await page.open(client, { autoSend: 'tool-calls' })
    await chat.send('[[call files_ask {}]][[call files_ask {}]][[then]][[say Done.]]')
    expect(await page.inbox()).toHaveLength(1)
    await give(chat, KYOTO)
    await give(chat, { city: 'Nara' })
    expect(textOf(chat.lastMessage)).toBe('Done.')
    expect(outputs(chat)).toEqual([KYOTO, { city: 'Nara' }])
    await expectRecord(page, chat)
  })

  it('[AP504] a wrong answer is rejected with the name of the field, and the right one counts', async () => {
    await using files = await serveFiles(asksFor('city'))
    await using bridge = await openBridge(files)
    const page = bridge.page()
    const chat = await page.open(client, { autoSend: 'tool-calls' })
    await chat.send(CALL)
    await give(chat, { city: 3 })
    expect(chat.error?.message).toContain('`city`')
    await give(chat, KYOTO)
    expect(textOf(chat.lastMessage)).toBe('Done.')
    await expectRecord(page, chat)
  })

  it('[AP503] a page that is opened at the question can answer it', async () => {
    await using files = await serveFiles(asksFor('city'))
    await using bridge = await openBridge(files)
    const page = bridge.page()
    await (await page.open(client)).send(CALL)
    const chat = await page.open(client, { autoSend: 'tool-calls' })
    await chat.resume()
    expect(chat.status).toBe('ready')
    await give(chat, KYOTO)
    expect(textOf(chat.lastMessage)).toBe('Done.')
    await expectRecord(page, chat)
  })

  it('[AP581] a message instead of an answer cancels the question and stops its call', async () => {
    await using files = await serveFiles(asksFor('city'))
    await using bridge = await openBridge(files)
    const page = bridge.page()
    const chat = await page.open(client, { autoSend: 'tool-calls' })
    await chat.send(CALL)
    const [question] = await page.inbox()
    await chat.send('[[say Another reply.]]')
    expect(textOf(chat.lastMessage)).toBe('Another reply.')
    await page.untilState(question?.id ?? '', 'cancelled')
    const [, asked] = await page.messages()
    expect(asked?.parts.find(({ type }) => type === 'data-approval')).toMatchObject({
      data: { state: 'cancelled' },
    })
    // The model was not asked with a result of the stopped call.
    expect(bridge.asked).toBe(2)
  })

  it('[AP504] an answer that is sent again after a lost connection continues at the next question', async () => {
    await using files = await serveFiles(asksFor('city'), asksFor('days', 'integer'))
    await using bridge = await openBridge(files)
    const page = bridge.page()
    const chat = await page.open(client, { autoSend: 'tool-calls' })
    await chat.send(CALL)
    const [first] = await page.inbox()
    // The answer arrives, and the response does not.
    await page.decide(first?.id ?? '', { approved: true, payload: KYOTO })
    await expect.poll(async () => (await page.inbox())[0]?.['hint']).toBe('Which days?')
    await give(chat, KYOTO)
    expect(chat.error).toBeUndefined()
    await give(chat, { days: 2 })
    expect(textOf(chat.lastMessage)).toBe('Done.')
    await expectRecord(page, chat)
  })
})

test('[AP581] an approval of an earlier message is recorded, and its call runs after the question', async () => {
  await using files = await serveFiles(asksFor('city'))
  const toolset = new MCPToolset(files.connection, [], 'files')
  await using bridge = await openBridge(files, {
    agent: (model, tools) => assistant(model, { tools: [...tools, toolset] }),
  })
  const page = bridge.page()
  const [client = liveClient] = approvingClients
  const chat = await page.open(client)
  await chat.send(callPayment(1))
  const [, first] = await page.messages()
  await chat.send(CALL)
  const inbox = await page.inbox()
  const question = inbox.find(({ kind }) => kind === 'elicitation')
  const approval = inbox.find(({ kind }) => kind !== 'elicitation')
  const parts = first?.parts.map((part) =>
    'approval' in part
      ? { ...part, state: 'approval-responded', approval: { id: approval?.id, approved: true } }
      : part,
  )
  const refused = await page.post({ id: 'chat-1', messages: [{ ...first, parts }] })
  expect(refused).toMatchObject({ status: 409, body: { error: { code: 'turn-running' } } })
  expect((await page.approval(approval?.id ?? '')).approval.state).toBe('approved')
  await page.decide(question?.id ?? '', { approved: false })
  await page.untilState(approval?.id ?? '', 'succeeded')
})

test.each(['an agent', 'a workflow'])(
  '[AP661] in %s, a reply that a closing server cuts off after an answer during a call is shown as stopped',
  async (place) => {
    await using files = await serveFiles(asksFor('city'))
    await using bridge = await openBridge(files, {
      agent: (model) => {
        const toolset = new MCPToolset(files.connection, [], 'files')
        const agent = assistant(model, { tools: [toolset] })
        if (place === 'an agent') return agent
        return new Workflow({ name: 'flow', edges: [['START', agent]] })
      },
    })
    const page = bridge.page()
    const [client = liveClient] = approvingClients
    await (await page.open(client)).send('[[call files_ask {}]][[then]][[wait never]]')
    const [question] = await page.inbox()
    await page.decide(question?.id ?? '', { approved: true, payload: KYOTO })
    await bridge.untilAsked('accept')
    await bridge.restart()
    expect((await page.messages()).at(-1)).toMatchObject({ metadata: { stopped: true } })
  },
)

describe.each(DATABASES)('two servers on $name', ({ name, open }) => {
  const it = takeTurns({ group: name === 'SQLite' ? 0 : 1, groups: 2 })

  it('[AP503] a client that answers at another server reads the rest of the turn there', async () => {
    await using files = await serveFiles(asksFor('city'), asksFor('days', 'integer'))
    await using database = await open()
    await using one = await openBridge(files, { openStore: database.openStore })
    await using two = await openBridge(files, { openStore: database.openStore })
    const [client = liveClient] = approvingClients
    await (await one.page().open(client)).send(CALL)
    const page = two.page()
    // A page that is opened while the turn runs would have to resume it.
    await readWhenEnded(page)
    const chat = await page.open(client, { autoSend: 'tool-calls' })
    await give(chat, KYOTO)
    await expectRecord(page, chat)
    await give(chat, { days: 2 })
    expect(textOf(chat.lastMessage)).toBe('Done.')
    await expectRecord(page, chat)
    expect(files.calls()).toEqual(['ask'])
    expect([...one.errors, ...two.errors]).toEqual([])
  })

  it('[AP581] a message at another server cancels the question and stops its call', async () => {
    await using files = await serveFiles(asksFor('city'))
    await using database = await open()
    await using one = await openBridge(files, { openStore: database.openStore })
    await using two = await openBridge(files, { openStore: database.openStore })
    const [client = liveClient] = approvingClients
    await (await one.page().open(client)).send(CALL)
    const page = two.page()
    const [question] = await page.inbox()
    const chat = await page.open(client)
    await chat.send('[[say Another reply.]]')
    expect(textOf(chat.lastMessage)).toBe('Another reply.')
    await page.untilState(question?.id ?? '', 'cancelled')
    expect(one.asked).toBe(1)
  })
})
