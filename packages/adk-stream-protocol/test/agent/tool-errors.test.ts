import {
  AgentTool,
  BasePlugin,
  BaseTool,
  createRestApiTool,
  FunctionNode,
  FunctionTool,
  NodeTool,
} from '@google/adk'
import { scriptResponder } from 'gemini-emulator'
import { describe, expect, test } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { z } from 'zod'

import { approvingClients, liveClient } from '../approvals/support/approving-chat.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { assistant } from '../support/agents.ts'
import { toolParts } from '../support/chat-probe.ts'

const SECRET = 'postgres://admin:hunter2@10.0.0.5/db'

function fail(): never {
  throw new Error(`connect ECONNREFUSED ${SECRET}`)
}

class Failing extends BaseTool {
  readonly #fail: () => unknown

  constructor(throwing: () => unknown = fail) {
    super({ name: 'fail', description: 'Fails.' })
    this.#fail = throwing
  }

  override _getDeclaration() {
    return { name: this.name, description: this.description }
  }

  override async runAsync() {
    return this.#fail()
  }
}

const TOOLS: readonly [name: string, make: () => BaseTool][] = [
  ['a BaseTool', () => new Failing()],
  ['a FunctionTool', () => new FunctionTool({ name: 'fail', description: '', execute: fail })],
  ['a node', () => new NodeTool(new FunctionNode('fail', fail, { inputSchema: z.object({}) }))],
  [
    'an OpenAPI tool',
    () =>
      createRestApiTool({
        name: 'fail',
        description: 'Fails.',
        // fetch refuses an address with a password, and repeats it.
        endpoint: { baseUrl: 'http://admin:hunter2@127.0.0.1:1', path: '/', method: 'GET' },
        operation: { responses: {} },
      }),
  ],
]

/** What is not an error, and may be thrown nevertheless. */
const THROWN: readonly [name: string, thrown: unknown][] = [
  ['a string', SECRET],
  ['an object', { code: 1 }],
  ['an object without a prototype', Object.create(null)],
  ['undefined', undefined],
]

const CALL = '[[call fail {}]][[then]][[say Sorry.]]'
/** The arguments of an agent that is used as a tool. */
function requestOf(text: string): string {
  return JSON.stringify({ request: text })
}

const [sse] = approvingClients
const clients = [...(sse ? [sse] : []), liveClient]

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  test.each(TOOLS)(
    '[ER3] the message of an error of %s stays on the server',
    async (name, make) => {
      // ADK runs nodes only turn by turn.
      if (client.live && name === 'a node') return
      await using testBridge = await TestBridge.open({ tools: () => [make()] })
      const page = testBridge.page()
      const chat = await page.open(client)
      await chat.send(CALL)
      expect(chat.text).toBe('Sorry.')
      expect(toolParts(chat.lastMessage)).toMatchObject([
        { state: 'output-error', errorText: 'The tool fail failed.' },
      ])
      expect(testBridge.results).toEqual([{ error: 'The tool fail failed.' }])
      expect(
        JSON.stringify([chat.messages, await page.messages(), testBridge.lastPrompt]),
      ).not.toContain('hunter2')
      expect(testBridge.errors.map(String).join()).toContain('admin:hunter2@')
    },
  )

  describe.each(THROWN)('a tool that throws %s', (_name, thrown) => {
    it.each([
      ['runs without approval', false, 1],
      ['was approved', true, 1],
      // The call is not started at the decision, and ADK runs it.
      ['was approved beside another one', true, 2],
    ])('[ER3] has failed if it %s', async (_how, gated, count) => {
      await using testBridge = await TestBridge.open({
        tools: () => [new Failing(() => Promise.reject(thrown))],
        approvals: { fail: gated },
      })
      const page = testBridge.page()
      const chat = await page.open(client)
      const calls = Array.from({ length: count }, () => '[[call fail {}]]')
      await chat.send(`${calls.join('')}[[then]][[say Sorry.]]`)
      const asked = [...chat.asked]
      expect(asked).toHaveLength(gated ? count : 0)
      if (gated) await chat.decide(true)
      expect(chat.text).toBe('Sorry.')
      const failed = { state: 'output-error', errorText: 'The tool fail failed.' }
      expect(toolParts(chat.lastMessage)).toMatchObject(calls.map(() => failed))
      expect(testBridge.results).toEqual(calls.map(() => ({ error: failed.errorText })))
      for (const id of asked)
        expect(await page.history(id)).toEqual(['requested', 'approved', 'started', 'failed'])
      expect(testBridge.errors).toHaveLength(count)
    })
  })

  test.each([false, true])(
    '[ER3] with exposeToolErrors the model receives the message, and no client does (approval: %s)',
    async (gated) => {
      await using testBridge = await TestBridge.open({
        tools: () => [new Failing()],
        approvals: { fail: gated },
        exposeToolErrors: true,
      })
      const page = testBridge.page()
      const chat = await page.open(client)
      await chat.send(CALL)
      if (gated) await chat.decide(true)
      expect(chat.text).toBe('Sorry.')
      expect(JSON.stringify(testBridge.results)).toContain(SECRET)
      expect(toolParts(chat.lastMessage)).toMatchObject([{ errorText: 'The tool fail failed.' }])
      expect(JSON.stringify([chat.messages, await page.messages()])).not.toContain('hunter2')
    },
  )

  // ADK ends the run of an agent that is used as a tool without a word when a node fails.
  test.each(TOOLS.filter(([name]) => name !== 'a node'))(
    '[ER3] the model of an agent that is used as a tool does not read the error of %s',
    async (_name, make) => {
      const failing = make()
      const prompts: string[] = []
      await using testBridge = await TestBridge.open({
        agent: (model, tools) => {
          const inner = assistant(model, { name: 'inner', tools: [failing] })
          const outer = assistant(model, {
            name: 'outer',
            tools: [new AgentTool({ agent: inner })],
          })
          return assistant(model, { tools: [...tools, new AgentTool({ agent: outer })] })
        },
        respond: (prompt) => {
          prompts.push(JSON.stringify(prompt))
          return scriptResponder(prompt)
        },
      })
      const page = testBridge.page()
      const chat = await page.open(client)
      const innermost = requestOf(CALL)
      const nested = requestOf(`[[call inner ${innermost}]][[then]][[say Outer.]]`)
      await chat.send(`[[call outer ${nested}]][[then]][[say Sorry.]]`)
      expect(chat.text).toBe('Sorry.')
      const [failure = ''] = prompts.filter((prompt) => prompt.includes('The tool fail failed.'))
      expect(failure).not.toBe('')
      expect(prompts.join()).not.toContain('hunter2')
      expect(JSON.stringify([chat.messages, await page.messages()])).not.toContain('hunter2')
      expect(testBridge.errors.map(String).join()).toContain('admin:hunter2@')
    },
  )

  test('[ER3] the model receives which arguments do not match the schema', async () => {
    const parameters = z.object({ amount: z.number() })
    await using testBridge = await TestBridge.open({
      tools: () => [new FunctionTool({ name: 'fail', description: '', parameters, execute: fail })],
    })
    const chat = await testBridge.page().open(client)
    await chat.send('[[call fail {"amount":"much"}]][[then]][[say Sorry.]]')
    expect(JSON.stringify(testBridge.results)).toMatch(
      /Not run: the arguments do not match.*amount: /,
    )
  })

  test('[ER3] a plugin of the application may replace the error of a tool', async () => {
    class Rescue extends BasePlugin {
      override async onToolErrorCallback() {
        return { rescued: true }
      }
    }
    await using testBridge = await TestBridge.open({
      tools: () => [new Failing()],
      plugins: [new Rescue('rescue')],
    })
    const chat = await testBridge.page().open(client)
    await chat.send(CALL)
    expect(testBridge.results).toEqual([{ rescued: true }])
    expect(toolParts(chat.lastMessage)).toMatchObject([{ state: 'output-available' }])
  })
})
