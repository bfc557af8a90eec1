import { MCPToolset } from '@google/adk'
import type { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { expect, test } from 'vitest'

import { defer } from '../../src/shared/async.ts'
import { assistant } from '../support/agents.ts'
import { serveHttp } from '../support/mcp-servers.ts'
import type { McpFixture } from '../support/mcp-servers.ts'
import type { Page } from './support/page.ts'
import { TestBridge } from './support/test-bridge.ts'

function openFiles(files: McpFixture): Promise<TestBridge> {
  const toolset = new MCPToolset(files.connection, [], 'files')
  return TestBridge.open({
    agent: (model) => assistant(model, { tools: [toolset] }),
    approvals: { 'files_*': true },
  })
}

async function say(page: Page, id: string, text: string): Promise<void> {
  const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }
  await page.post({ id, messages: [message] })
}

test('[AP770] an MCP call of one chat is not interrupted by the end of a turn of another chat', async () => {
  const [started, released] = [defer(), defer()]
  await using files = await serveHttp([{ name: 'slow' }], async () => {
    started.resolve()
    await released.promise
  })
  await using bridge = await openFiles(files)
  const page = bridge.page()
  await say(page, 'one', '[[call files_slow {}]][[then]][[say Done.]]')
  const [asked] = await page.inbox()
  const id = asked?.id ?? ''
  await page.decide(id, { approved: true })
  await started.promise
  await say(page, 'two', '[[say Hi.]]')
  released.resolve()
  await page.untilMessages((messages) => JSON.stringify(messages).includes('Done.'), 'one')
  expect((await page.approval(id)).approval.state).toBe('succeeded')
  expect(files.calls()).toEqual(['slow'])
})

test('[AP770] listings share one session, also across chats, calls have their own, and a lost session is replaced', async () => {
  const [listed, called] = [new Set<McpServer>(), new Set<McpServer>()]
  await using files = await serveHttp(
    [{ name: 'read', annotations: { readOnlyHint: true } }],
    (mcp) => called.add(mcp),
    (mcp) => listed.add(mcp),
  )
  const toolset = new MCPToolset(files.connection, [], 'files')
  await using bridge = await TestBridge.open({
    agent: (model) => assistant(model, { tools: [toolset] }),
  })
  const page = bridge.page()
  const read = '[[call files_read {}]][[then]][[call files_read {}]][[then]][[say Done.]]'
  await say(page, 'one', read)
  await say(page, 'two', read)
  expect(files.calls()).toHaveLength(4)
  expect([listed.size, called.size]).toEqual([1, 4])
  expect([...called].filter((mcp) => listed.has(mcp))).toEqual([])

  for (const mcp of listed) await mcp.close()
  await say(page, 'three', read)
  expect(files.calls()).toHaveLength(6)
  expect(listed.size).toBe(2)
})

test('[AP446] a server that elicits during a call is refused, nobody is asked, and the call fails', async () => {
  const answers: unknown[] = []
  await using files = await serveHttp([{ name: 'ask' }], async (mcp) => {
    const requestedSchema = { type: 'object', properties: { city: { type: 'string' } } } as const
    answers.push(await mcp.server.elicitInput({ message: 'Which city?', requestedSchema }))
  })
  await using bridge = await openFiles(files)
  const page = bridge.page()
  await say(page, 'one', '[[call files_ask {}]][[then]][[say Done.]]')
  const [asked] = await page.inbox()
  const id = asked?.id ?? ''
  await page.decide(id, { approved: true })
  await page.untilState(id, 'failed')
  expect(await page.inbox()).toEqual([])
  expect(answers).toEqual([])
})
