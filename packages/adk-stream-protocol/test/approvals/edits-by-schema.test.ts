import { existsSync, readFileSync } from 'node:fs'

import type { BaseTool } from '@google/adk'
import { FunctionTool, MCPToolset } from '@google/adk'
import { Type } from '@google/genai'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { bundleProgram } from '../../../../test/support/bundle-program.ts'
import { readArgumentsSchema } from '../../src/calls/arguments-schema.ts'
import { checkEdit } from '../../src/server/chats/host/policy-checks.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { assistant, tool } from '../support/agents.ts'
import { toolParts } from '../support/chat-probe.ts'
import type { TestBridgeOptions } from './support/test-bridge.ts'
import { TestBridge } from './support/test-bridge.ts'

/** ADK starts the server for every listing of its tools. A bundle starts in a fraction of the time. */
async function toBank(file: string): Promise<MCPToolset> {
  const server = await bundleProgram(new URL('../support/mcp-server.mjs', import.meta.url))
  const serverParams = { command: process.execPath, args: [server, file] }
  return new MCPToolset({ type: 'StdioConnectionParams', serverParams })
}

/** A test bridge whose agent has the tools of an MCP server in its own process. */
async function openBank(options: TestBridgeOptions = {}) {
  const folder = await temporaryDirectory()
  const file = folder.file('calls.jsonl')
  const bank = await toBank(file)
  const testBridge = await TestBridge.open({
    agent: (model) => assistant(model, { tools: [bank] }),
    approvals: { transfer: true, transfer_by_rule: true },
    ...options,
  })
  return {
    testBridge,
    calls: (): unknown[] =>
      existsSync(file)
        ? readFileSync(file, 'utf8')
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line) as unknown)
        : [],
    async [Symbol.asyncDispose]() {
      await testBridge[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}

async function ask(testBridge: TestBridge, text: string): Promise<string> {
  const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }
  const page = testBridge.page()
  await page.post({ id: 'chat-1', messages: [message] })
  const [{ id } = { id: '' }] = await page.inbox()
  return id
}

test.each([
  ['cannot ask people', false],
  ['may ask people', true],
])(
  '[AP5] arguments of an MCP tool are edited within the schema of a server that %s',
  async (_case, elicitation) => {
    await using bank = await openBank({ elicitation })
    const page = bank.testBridge.page()
    const id = await ask(
      bank.testBridge,
      '[[call transfer {"amount":900,"to":"Bob"}]][[then]][[say Done.]]',
    )
    const args = { amount: 5, to: 'Bob', memo: null }
    expect(await page.decide(id, { approved: true, args })).toMatchObject({ status: 200 })
    await page.untilMessages((messages) => toolParts(messages[1])[0]?.output !== undefined)
    expect(bank.calls()).toEqual([{ name: 'transfer', arguments: args }])
  },
)

test('[AP5] arguments can be edited only if the whole schema of the MCP server can be checked', async () => {
  const bank = await toBank('unused')
  const [transfer, byRule] = await bank.getTools()
  await bank.close()
  if (!transfer || !byRule) throw new Error('There are two tools.')
  const schema = readArgumentsSchema(transfer)
  expect(schema?.safeParse({ amount: 5, to: 'Bob', memo: null }).success).toBe(true)
  for (const args of [
    { amount: 0, to: 'Bob' },
    { amount: '5', to: 'Bob' },
    { amount: 5 },
    { amount: 5, to: '' },
    { amount: 5, to: 'Bob', admin: true },
  ])
    expect(schema?.safeParse(args).success).toBe(false)
  // A schema that zod cannot check completely is not checked at all.
  expect(readArgumentsSchema(byRule)).toBeUndefined()
  const unchecked = (): void => checkEdit(byRule, { amount: 6, to: 'Bob' })
  expect(unchecked).toThrow('no schema by which they can be checked')
})

/** A tool that declares Gemini's form of a schema, as tools of ADK may. */
const declared = new FunctionTool({
  name: 'book',
  description: 'Books seats.',
  parameters: {
    type: Type.OBJECT,
    properties: {
      seats: { type: Type.INTEGER, minimum: 1, maximum: 4 },
      row: { type: Type.STRING, enum: ['A', 'B'], nullable: true },
      names: { type: Type.ARRAY, items: { type: Type.STRING }, maxItems: '2' },
      class: { type: Type.INTEGER, enum: ['1', '2'] },
    },
    required: ['seats'],
  },
  execute: () => ({ ok: true }),
})

test.each([
  [{ seats: 2 }, true],
  [{ seats: 2, row: 'A', names: ['x'], class: 1 }, true],
  [{ seats: 2, row: null }, true],
  [{ seats: 5 }, false],
  [{ seats: 1.5 }, false],
  [{ row: 'A' }, false],
  [{ seats: 2, row: 'C' }, false],
  [{ seats: 2, names: ['x', 'y', 'z'] }, false],
  [{ seats: 2, class: 3 }, false],
  [{ seats: 2, other: 1 }, false],
])('[AP5] %j by the schema that a tool declares to the model: %s', (args, fits) => {
  expect(readArgumentsSchema(declared)?.safeParse(args).success).toBe(fits)
})

test('[AP5] a tool that declares no arguments has none to edit', () => {
  const bare: BaseTool = tool('bare', () => ({ ok: true }))
  expect(readArgumentsSchema(bare)?.safeParse({}).success ?? true).toBe(true)
  expect(readArgumentsSchema(bare)?.safeParse({ a: 1 }).success ?? false).toBe(false)
})

test.each([
  [z.object({ amount: z.number() }), false],
  [z.object({ amount: z.number() }).refine(({ amount }) => amount < 9), false],
  [z.looseObject({ amount: z.number() }), true],
])(
  '[AP5] the zod schema of a tool allows other properties only if it says so',
  (parameters, allows) => {
    const pay = new FunctionTool({
      name: 'pay',
      description: 'Pays.',
      parameters,
      execute: () => ({}),
    })
    const schema = readArgumentsSchema(pay)
    expect(schema?.safeParse({ amount: 5 }).success).toBe(true)
    expect(schema?.safeParse({ amount: '5' }).success).toBe(false)
    expect(schema?.safeParse({ amount: 5, other: 1 }).success).toBe(allows)
  },
)
