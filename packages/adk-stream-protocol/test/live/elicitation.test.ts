import { MCPToolset } from '@google/adk'
import { describe, expect, test } from 'vitest'

import { FREE_MODEL, type TestBridge } from '../approvals/support/test-bridge.ts'
import { Ledger } from '../../src/approvals/ledger.ts'
import { cancelIfLost } from '../../src/server/chats/recovery/lost-questions.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { assistant } from '../support/agents.ts'
import type { McpFixture } from '../support/mcp-servers.ts'
import { serveHttp } from '../support/mcp-servers.ts'
import type { SocketClient } from '../sockets/support/socket-client.ts'
import {
  joinLive,
  type LiveTestBridgeOptions,
  openLiveTestBridge,
} from './support/live-test-bridge.ts'

const BLOCKING_MODEL = 'gemini-3.1-flash-live-preview'
const elicit = {
  message: 'Which city?',
  requestedSchema: { type: 'object', properties: { city: { type: 'string' } } },
}
const CALL = '[[call files_ask {}]][[then]][[say Done.]]'

const serveFiles = (): Promise<McpFixture> => serveHttp([{ name: 'ask', _meta: { elicit } }])

function openBridge(files: McpFixture, options: LiveTestBridgeOptions = {}): Promise<TestBridge> {
  const toolset = new MCPToolset(files.connection, [], 'files')
  return openLiveTestBridge({
    agent: (model) => assistant(model, { tools: [toolset] }),
    elicitation: true,
    ...options,
  })
}

function isAsked({ type, data }: { type: string; data?: unknown }): boolean {
  return type === 'data-approval' && JSON.stringify(data).includes('"elicitation"')
}

/** Lets the model call the tool, and returns the question when a person is asked. */
async function ask(bridge: TestBridge, client: SocketClient) {
  const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: CALL }] }
  client.send({ type: 'watch', id: 'chat-1' })
  client.send({ type: 'send', requestId: 'r1', id: 'chat-1', messages: [message] })
  await client.next(() => client.chunks('r1').some(isAsked))
  const [question] = await bridge.page().inbox()
  return question?.id ?? ''
}

/** The results that the live model received. */
function resultsOf(bridge: TestBridge): string {
  const received = bridge.emulator.live.sessions.flatMap((session) => session.received)
  return JSON.stringify(received.filter((frame) => 'toolResponse' in frame))
}

/** The data of the question in the stored message, once the call has a result. */
async function untilEnded(bridge: TestBridge): Promise<unknown> {
  const page = bridge.page()
  await page.untilMessages((messages) =>
    JSON.stringify(messages.at(-1)?.parts.find(({ type }) => type === 'tool-files_ask')).includes(
      'output-available',
    ),
  )
  return (await page.messages()).at(-1)?.parts.find(({ type }) => type === 'data-approval')?.data
}

describe.each([
  ['a model that goes on talking', FREE_MODEL],
  ['a model that waits', BLOCKING_MODEL],
])('%s', (_name, liveModel) => {
  test('[AP583] the answer by frame reaches the MCP server, and the model receives the result', async () => {
    await using files = await serveFiles()
    await using bridge = await openBridge(files, { liveModel })
    await using client = await joinLive(bridge)
    const approvalId = await ask(bridge, client)
    const answer = { approvalId, approved: true, payload: { city: 'Kyoto' } }
    client.send({ type: 'decide', decisionId: 'd1', id: 'chat-1', ...answer })
    expect(await untilEnded(bridge)).toMatchObject({ state: 'approved', kind: 'elicitation' })
    await expect.poll(() => resultsOf(bridge)).toContain('Kyoto')
    expect(resultsOf(bridge)).not.toContain('mcp_elicitation')
    expect(files.calls()).toEqual(['ask'])
    expect(bridge.errors).toEqual([])
  })
})

test('[AP583] the question stays open when the person says something else to a model that waits for its calls', async () => {
  await using files = await serveFiles()
  await using bridge = await openBridge(files, { liveModel: BLOCKING_MODEL })
  await using client = await joinLive(bridge)
  const approvalId = await ask(bridge, client)
  const message = { id: 'u2', role: 'user', parts: [{ type: 'text', text: '[[say Yes?]]' }] }
  client.send({ type: 'send', requestId: 'r2', id: 'chat-1', messages: [message] })
  await client.next(() => client.text('r2').includes('Yes?'))
  const page = bridge.page()
  expect((await page.approval(approvalId)).approval.state).toBe('requested')
  await page.decide(approvalId, { approved: true, payload: { city: 'Kyoto' } })
  await page.untilState(approvalId, 'succeeded')
  const received = () =>
    JSON.stringify(bridge.emulator.live.sessions.flatMap((session) => session.received))
  await expect.poll(received).toContain('Kyoto')
})

test('[AP583] a declined question is declined for the MCP server', async () => {
  await using files = await serveFiles()
  await using bridge = await openBridge(files)
  await using client = await joinLive(bridge)
  const approvalId = await ask(bridge, client)
  await bridge.page().decide(approvalId, { approved: false })
  expect(await untilEnded(bridge)).toMatchObject({ state: 'denied' })
  await expect.poll(() => resultsOf(bridge)).toContain('decline')
})

test('[AP583] the deadline of live sessions applies to a question', async () => {
  await using files = await serveFiles()
  await using bridge = await openBridge(files, { live: { approvalDeadlineMs: 1_000 } })
  await using client = await joinLive(bridge)
  await ask(bridge, client)
  expect(await untilEnded(bridge)).toMatchObject({ state: 'expired' })
  await expect.poll(() => resultsOf(bridge)).toContain('cancel')
})

test('[AP583] a question stays open while its live session does, and is cancelled when the session moves to another server', async () => {
  await using files = await serveFiles()
  await using folder = await temporaryDirectory()
  const openStore = () => openSqliteStore({ path: folder.file('shared.db') })
  await using one = await openBridge(files, { openStore })
  await using two = await openBridge(files, { openStore })
  await using client = await joinLive(one)
  const approvalId = await ask(one, client)
  const page = two.page()
  const sweeping = new Ledger({ store: two.store.approvals, appName: 'adk-stream-protocol' })
  const approval = await sweeping.get(approvalId)
  if (approval) await cancelIfLost(sweeping, approval)
  expect((await page.approval(approvalId)).approval.state).toBe('requested')
  await using other = await joinLive(two)
  const message = { id: 'u2', role: 'user', parts: [{ type: 'text', text: '[[say Moved.]]' }] }
  other.send({ type: 'send', requestId: 'r2', id: 'chat-1', messages: [message] })
  await page.untilState(approvalId, 'cancelled')
  await page.untilMessages((messages) => JSON.stringify(messages.at(-1)).includes('Moved.'))
  const parts = (await page.messages())[1]?.parts
  expect(parts?.find(({ type }) => type === 'data-approval')).toMatchObject({
    data: { state: 'cancelled' },
  })
})

test('[AP583] closing the server cancels the question of a live session', async () => {
  await using files = await serveFiles()
  await using bridge = await openBridge(files)
  {
    await using client = await joinLive(bridge)
    await ask(bridge, client)
  }
  await bridge.restart()
  const page = bridge.page()
  expect(await page.inbox()).toEqual([])
})
