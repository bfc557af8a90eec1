// oxlint-disable typescript/no-deprecated -- Some of these agents are deprecated in favour of Workflow, and in use.
import { createRequire } from 'node:module'

import * as adk from '@google/adk'
import { expect, test } from 'vitest'

import type { AnyBridgeOptions } from '../../src/server/options.ts'
import { createBridge } from '../../src/server/index.ts'

/** ADK once more: its CommonJS files have classes of their own. */
const other = createRequire(import.meta.url)('@google/adk') as typeof adk

const model = 'gemini-2.5-flash'
const execute = () => ({})
const toolOf = ({ FunctionTool }: typeof adk) =>
  new FunctionTool({ name: 'pay', description: 'Pays.', execute })
const agentOf = ({ LlmAgent }: typeof adk, config: object = {}) =>
  new LlmAgent({ name: 'payer', model, ...config })
const toolsetOf = ({ MCPToolset }: typeof adk) =>
  new MCPToolset({ type: 'StreamableHTTPConnectionParams', url: 'http://127.0.0.1:1/mcp' })
const withTool = (tool: unknown) => agentOf(adk, { tools: [tool] })
const steps = (subAgents: adk.BaseAgent[]) => ({ name: 'steps', subAgents })

class OwnPlugin extends other.BasePlugin {}

test.each<[name: string, create: (copy: typeof adk) => AnyBridgeOptions]>([
  ['LlmAgent', (copy) => ({ agent: agentOf(copy) })],
  ['SequentialAgent', (copy) => ({ agent: new copy.SequentialAgent(steps([agentOf(copy)])) })],
  ['LoopAgent', (copy) => ({ agent: new copy.LoopAgent(steps([agentOf(copy)])) })],
  ['ParallelAgent', (copy) => ({ agent: new copy.ParallelAgent(steps([agentOf(copy)])) })],
  [
    'RoutedAgent',
    (copy) => ({
      agent: new copy.RoutedAgent({ name: 'a', agents: [agentOf(copy)], router: () => 'payer' }),
    }),
  ],
  [
    'RemoteA2AAgent',
    (copy) => ({ agent: new copy.RemoteA2AAgent({ name: 'a', agentCard: 'http://127.0.0.1:1' }) }),
  ],
  [
    'Workflow',
    (copy) => ({ agent: new copy.Workflow({ name: 'a', edges: [['START', agentOf(copy)]] }) }),
  ],
  [
    'FunctionNode',
    (copy) => ({
      agent: new adk.Workflow({
        name: 'a',
        edges: [['START', new copy.FunctionNode('greet', () => 'Hello.')]],
      }),
    }),
  ],
  ['LlmAgent', (copy) => ({ agent: agentOf(adk, { subAgents: [agentOf(copy)] }) })],
  ['LlmAgent', (copy) => ({ agents: { pay: agentOf(copy) } })],
  ['FunctionTool', (copy) => ({ agent: withTool(toolOf(copy)) })],
  ['AgentTool', (copy) => ({ agent: withTool(new copy.AgentTool({ agent: agentOf(copy) })) })],
  ['LlmAgent', (copy) => ({ agent: withTool(new adk.AgentTool({ agent: agentOf(copy) })) })],
  ['MCPToolset', (copy) => ({ agent: withTool(toolsetOf(copy)) })],
  ['LoggingPlugin', (copy) => ({ agent: agentOf(adk), plugins: [new copy.LoggingPlugin()] })],
  [
    'InMemorySessionService',
    (copy) => ({ agent: agentOf(adk), sessionService: new copy.InMemorySessionService() }),
  ],
])('[AP1062] %s of another copy of ADK is refused', async (name, optionsOf) => {
  const create = () => createBridge(optionsOf(other))
  expect(create).toThrow(TypeError)
  expect(create).toThrow('two copies of @google/adk')
  expect(create).toThrow(`The ${name}`)
  // Both paths, on any system.
  expect(create).toThrow(
    /is of \S*.google.adk.dist.cjs, and the bridge uses \S*.google.adk.dist.esm\./,
  )
  await using bridge = createBridge(optionsOf(adk))
  expect(bridge.handles('/stream')).toBe(true)
})

test('[AP1062] a class of the application is named', () => {
  const plugin = new OwnPlugin('mine')
  const create = () => createBridge({ agent: agentOf(adk), plugins: [plugin] })
  expect(create).toThrow(/The OwnPlugin mine in `plugins` is of \S*.google.adk.dist.cjs,/)
})
