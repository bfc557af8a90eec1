import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'

import type { BasePlugin } from '@google/adk'
import {
  AgentTool,
  BaseAgent,
  BaseNode,
  BaseToolset,
  CONTENT_REQUEST_PROCESSOR,
  createEvent,
  FunctionNode,
  FunctionTool,
  Gemini,
  InMemoryArtifactService,
  LlmAgent,
  MCPTool,
  MCPToolset,
  NodeTool,
  ParallelWorker,
  PluginManager,
  RemoteA2AAgent,
  ToolNode,
  version,
  Workflow,
} from '@google/adk'
import { GoogleGenAI } from '@google/genai'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { QuietPlugin } from '../../src/agent/adk-workarounds/plugin-callbacks.ts'

const SRC = path.join(import.meta.dirname, '../../src')

/** What a file of the library needs of ADK, and ADK does not promise. */
interface Shape {
  /** The file, below `src`. */
  readonly workaround: string
  readonly needs: string
  readonly holds: () => unknown
}

const agent = new LlmAgent({ name: 'agent', model: 'gemini-2.5-flash' })
const parameters = z.object({})
const tool = new FunctionTool({
  name: 'pay',
  description: 'Pays.',
  parameters,
  requireConfirmation: true,
  execute: () => ({}),
})
const node = new FunctionNode('node', () => 'done', { inputSchema: parameters })
const connection = {
  type: 'StreamableHTTPConnectionParams',
  url: 'http://127.0.0.1:1/mcp',
} as const
const toolset = new MCPToolset(connection)
const remote = new RemoteA2AAgent({ name: 'remote', agentCard: 'https://remote.example/' })

const doNothing = () => undefined
const get = (owner: object, name: string): unknown => Reflect.get(owner, name)
const hasMethods = (owner: object, ...names: readonly string[]): boolean =>
  names.every((name) => typeof get(owner, name) === 'function')

const LISTED = { name: 'files_read', inputSchema: { type: 'object' as const } }

/** A tool of an MCP server, as `MCPToolset` lists it with a prefix. */
function mcpTool(): MCPTool {
  // The second parameter of the constructor is not exported.
  const manager = get(toolset, 'mcpSessionManager') as ConstructorParameters<typeof MCPTool>[1]
  return new MCPTool(LISTED, manager, 'read')
}

/** Returns the source of a module of ADK that it does not export. */
function readAdk(file: string): string {
  const entry = createRequire(import.meta.url).resolve('@google/adk')
  const folder = entry.slice(0, entry.lastIndexOf(`${path.sep}dist${path.sep}`))
  const place = path.join(folder, 'dist/esm', file)
  return existsSync(place) ? readFileSync(place, 'utf8') : ''
}

/** Whether a callback of a plugin runs through the private method. */
async function passesRunCallbacks(): Promise<boolean> {
  const plugin: BasePlugin = new (class extends QuietPlugin {
    override async beforeRunCallback(): Promise<undefined> {
      throw new Error('Thrown by the plugin.')
    }
  })('plugin')
  const manager = new PluginManager([plugin])
  const original = get(manager, 'runCallbacks') as (...args: unknown[]) => Promise<unknown>
  let called: readonly unknown[] = []
  Reflect.set(manager, 'runCallbacks', (...args: unknown[]) => {
    called = args
    return original.apply(manager, args)
  })
  const context = {} as Parameters<PluginManager['runBeforeRunCallback']>[0]['invocationContext']
  await manager.runBeforeRunCallback({ invocationContext: context }).catch(() => undefined)
  const [plugins, callback, name] = called
  return plugins !== undefined && typeof callback === 'function' && typeof name === 'string'
}

const SHAPES: readonly Shape[] = [
  {
    workaround: 'agent/tree/agent-tool.ts',
    needs: 'AgentTool keeps its agent in `agent`',
    holds: () => get(new AgentTool({ agent }), 'agent') === agent,
  },
  {
    workaround: 'agent/tree/guard-nested.ts',
    needs: 'LlmAgent takes `beforeToolCallback` when it runs',
    holds: () => {
      const own = new LlmAgent({ name: 'own', model: 'gemini-2.5-flash' })
      own.beforeToolCallback = [doNothing]
      return own.canonicalBeforeToolCallbacks.includes(doNothing)
    },
  },
  {
    workaround: 'agent/adk-workarounds/plugin-callbacks.ts',
    needs: 'PluginManager runs every callback through `runCallbacks(plugins, callback, name)`',
    holds: passesRunCallbacks,
  },
  {
    workaround: 'agent/adk-workarounds/plugin-callbacks.ts',
    needs: 'PluginManager has a method for each kind of callback that the bridge replaces',
    holds: () =>
      hasMethods(
        new PluginManager(),
        'runAfterModelCallback',
        'runOnEventCallback',
        'runOnModelErrorCallback',
        'runBeforeNodeCallback',
        'runAfterNodeCallback',
      ),
  },
  {
    workaround: 'agent/tree/remote-agents.ts',
    needs:
      'RemoteA2AAgent keeps its options in `a2aConfig`, connects in `init`, and runs in `runAsyncImpl`',
    holds: () => {
      const config = get(remote, 'a2aConfig')
      const { agentCard } = Object(config) as { agentCard?: unknown }
      return agentCard === 'https://remote.example/' && hasMethods(remote, 'init', 'runAsyncImpl')
    },
  },
  {
    workaround: 'agent/tree/remote-agents.ts',
    needs:
      'RemoteA2AAgent keeps its client in `client`, and stores metadata under keys that start with a2a:',
    holds: () =>
      readAdk('a2a/a2a_remote_agent.js').includes('this.client') &&
      readAdk('a2a/a2a_remote_agent_run_processor.js').includes('[`a2a:${'),
  },
  {
    workaround: 'agent/tree/run-methods.ts',
    needs: 'agents and nodes run in `runAsync`, `runAsyncImpl`, `runLive`, `run` and `runImpl`',
    holds: () =>
      hasMethods(agent, 'runAsync', 'runAsyncImpl', 'runLive', 'run', 'runImpl') &&
      hasMethods(new ToolNode(tool), 'run', 'runImpl') &&
      hasMethods(Workflow.prototype, 'run', 'runImpl'),
  },
  {
    workaround: 'agent/adk-workarounds/arrange-calls.ts',
    needs:
      'the request processors of an LlmAgent are an array of its own with CONTENT_REQUEST_PROCESSOR',
    holds: () => agent.requestProcessors.includes(CONTENT_REQUEST_PROCESSOR),
  },
  {
    workaround: 'agent/tree/run-nodes.ts',
    needs: 'the channel of a workflow has `push`, `close`, `fail` and `isClosed`',
    holds: () => {
      const source = readAdk('utils/async_queue.js')
      return ['push(', 'close(', 'fail(', 'get isClosed(', '[Symbol.asyncIterator]('].every(
        (name) => source.includes(name),
      )
    },
  },
  {
    workaround: 'agent/tree/workflow-nodes.ts',
    needs:
      'ParallelWorker keeps its node in `inner`, ToolNode its tool in `tool`, and Workflow its nodes and edges in `graph`, from __START__',
    holds: () => {
      const { graph } = new Workflow({ name: 'flow', edges: [['START', node]] })
      return (
        get(new ParallelWorker(node), 'inner') === node &&
        new ToolNode(tool).tool === tool &&
        graph?.nodes.includes(node) === true &&
        graph.edges.some(({ fromNode, toNode }) => fromNode.name === '__START__' && toNode === node)
      )
    },
  },
  {
    workaround: 'agent/tree/workflow-run.ts',
    needs: 'ADK recognises the end of a stopped workflow by the name InvocationAbortedError',
    holds: () => readAdk('workflow/errors.js').includes('InvocationAbortedError'),
  },
  {
    workaround: 'agent/adk-workarounds/session-services.ts',
    needs: 'the artifact service of a session has the methods of a service without its key',
    holds: () =>
      hasMethods(
        new InMemoryArtifactService(),
        'saveArtifact',
        'loadArtifact',
        'listArtifactKeys',
        'deleteArtifact',
        'listVersions',
        'listArtifactVersions',
        'getArtifactVersion',
      ),
  },
  {
    workaround: 'modules/mcp/mcp-sessions.ts',
    needs:
      'MCPToolset keeps its `mcpSessionManager`, with `connectionParams`, `activeSessions`, `createSession` and `closeSession`',
    holds: () => {
      const manager = Object(get(toolset, 'mcpSessionManager')) as object
      return (
        get(manager, 'connectionParams') === connection &&
        get(manager, 'activeSessions') instanceof Set &&
        hasMethods(manager, 'createSession', 'closeSession')
      )
    },
  },
  {
    workaround: 'modules/mcp/mcp-sessions.ts',
    needs: 'MCPTool keeps the name on its server in `originalName`, and its `mcpSessionManager`',
    holds: () =>
      get(mcpTool(), 'originalName') === 'read' &&
      get(mcpTool(), 'mcpSessionManager') === get(toolset, 'mcpSessionManager'),
  },
  {
    workaround: 'dev/agents/report-agent.ts',
    needs: 'MCPToolset keeps its `mcpSessionManager` with `connectionParams`',
    holds: () =>
      get(Object(get(toolset, 'mcpSessionManager')) as object, 'connectionParams') === connection,
  },
  {
    workaround: 'agent/tree/agent-graph.ts',
    needs: 'NodeTool keeps its node in `node`, and AgentTool its agent in `agent`',
    holds: () =>
      get(new NodeTool(node), 'node') === node && get(new AgentTool({ agent }), 'agent') === agent,
  },
  {
    workaround: 'calls/explain-approval.ts',
    needs: 'FunctionTool keeps `requireConfirmation`, and answers `checkRequireConfirmation` by it',
    holds: () =>
      get(tool, 'requireConfirmation') === true &&
      hasMethods(FunctionTool.prototype, 'checkRequireConfirmation'),
  },
  {
    workaround: 'agent/call-responses.ts',
    needs: 'FunctionTool keeps its schema in `parameters`',
    holds: () => get(tool, 'parameters') === parameters,
  },
  {
    workaround: 'calls/arguments-schema.ts',
    needs:
      'FunctionTool keeps its schema in `parameters`, and MCPTool what its server lists in `mcpTool`',
    holds: () => get(tool, 'parameters') === parameters && get(mcpTool(), 'mcpTool') === LISTED,
  },
  {
    workaround: 'calls/call-terms.ts',
    needs: 'MCPTool keeps what its server lists in `mcpTool`, and the name there in `originalName`',
    holds: () => get(mcpTool(), 'mcpTool') === LISTED && get(mcpTool(), 'originalName') === 'read',
  },
  {
    workaround: 'modules/live/gemini/reconnecting-model.ts',
    needs: 'Gemini connects with its `liveApiClient`',
    holds: () =>
      get(new Gemini({ model: 'gemini-2.5-flash', apiKey: 'any' }), 'liveApiClient') instanceof
      GoogleGenAI,
  },
  {
    workaround: 'modules/live/gemini/gemini-socket.ts',
    needs: 'the live client of @google/genai opens sockets with its `webSocketFactory`',
    holds: () => {
      const { live } = new GoogleGenAI({ apiKey: 'any' })
      return hasMethods(Object(get(live, 'webSocketFactory')) as object, 'create')
    },
  },
  {
    workaround: 'store/session-history.ts',
    needs: 'ADK marks events with a symbol, as `createEvent` sets it',
    holds: () => Object.getOwnPropertySymbols(createEvent()).length > 0,
  },
  {
    workaround: 'agent/tree/adk-copies.ts',
    needs: 'ADK marks agents, nodes, tools and toolsets with its symbols',
    holds: () => {
      const marks = [
        [agent, BaseAgent, 'google.adk.baseAgent'],
        [node, BaseNode, 'google.adk.workflow.baseNode'],
        [tool, FunctionTool, 'google.adk.baseTool'],
        [toolset, BaseToolset, 'google.adk.baseToolset'],
      ] as const
      return marks.every(
        ([value, Base, mark]) =>
          value instanceof Base && Reflect.get(value, Symbol.for(mark)) === true,
      )
    },
  },
  {
    workaround: 'server/open-bridge.ts',
    needs: 'ADK leaves prompts out of its spans if ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS is `false`',
    holds: () => readAdk('telemetry/tracing.js').includes('ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS'),
  },
]

test.each(SHAPES)('[DV1510] $workaround: $needs', async ({ workaround, needs, holds }) => {
  const failure = `@google/adk ${version} has another shape than src/${workaround} works with: it needs that ${needs}.`
  expect((await holds()) === true ? 'as expected' : failure).toBe('as expected')
})

/** Files that read members by name of what is not ADK's, or is public there. */
const NOT_PRIVATE = new Set([
  'agent/tree/describe-graph.ts',
  'approvals/digest.ts',
  'dev/load/load-module.ts',
  'dev/page/dev-artifacts.ts',
  'dev/page/dev-child.ts',
  'modules/live/gemini/reconnecting-session.ts',
  'modules/developer/session-file.ts',
  'protocol/timeline.ts',
  'server/dialects/ag-ui/run-writer.ts',
  'server/sockets/socket-connection.ts',
  'store/postgres/postgres-errors.ts',
])

test('[DV1510] every file that reads members by name has a test of their shape', () => {
  const files = readdirSync(SRC, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => path.join(entry.parentPath, entry.name))
  const reading = files
    .filter((file) => /Reflect\.(?:get|set)\(|as unknown as/.test(readFileSync(file, 'utf8')))
    .map((file) => path.relative(SRC, file).split(path.sep).join('/'))
    .filter(
      (file) => !/^(?:client|react|shared|store\/contract)\//.test(file) && !NOT_PRIVATE.has(file),
    )
  const covered = new Set(SHAPES.map(({ workaround }) => workaround))
  expect(reading.filter((file) => !covered.has(file))).toEqual([])
})
