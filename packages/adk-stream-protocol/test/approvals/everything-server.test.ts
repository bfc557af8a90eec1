import { createRequire } from 'node:module'

import { MCPToolset } from '@google/adk'
import { expect, test } from 'vitest'

import { assistant } from '../support/agents.ts'
import { TestBridge } from './support/test-bridge.ts'

test('[AP503] the elicitation tool of the reference server asks the person', async () => {
  const { resolve } = createRequire(import.meta.url)
  const program = resolve('@modelcontextprotocol/server-everything/dist/index.js')
  const serverParams = {
    command: process.execPath,
    args: [program, 'stdio'],
    stderr: 'ignore' as const,
  }
  const everything = new MCPToolset({ type: 'StdioConnectionParams', serverParams }, [], 'all')
  await using bridge = await TestBridge.open({
    agent: (model) => assistant(model, { tools: [everything] }),
    elicitation: true,
  })
  const page = bridge.page()
  const text = '[[call all_trigger-elicitation-request {}]][[then]][[say Done.]]'
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text }] }
  await page.post({ id: 'one', messages: [message] })
  const [question] = await page.inbox()
  expect(question).toMatchObject({ kind: 'elicitation', title: 'Question from all' })
  const payload = { name: 'Ada Lovelace', check: true }
  await page.decide(question?.id ?? '', { approved: true, payload })
  await page.untilState(question?.id ?? '', 'succeeded')
  await page.untilMessages((messages) => JSON.stringify(messages.at(-1)).includes('Done.'), 'one')
  expect(JSON.stringify(await page.messages('one'))).toContain('Name: Ada Lovelace')
})
