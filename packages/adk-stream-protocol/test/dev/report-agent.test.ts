import { pathToFileURL } from 'node:url'

import { FunctionTool, LlmAgent, MCPToolset, App } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'

import type { ApprovalPolicy } from '../../src/approvals/policy.ts'
import { describeLoadError } from '../../src/dev/load/describe-load-error.ts'
import { describeReport } from '../../src/dev/describe-report.ts'
import { readExports } from '../../src/dev/agents/read-exports.ts'
import { reportAgent } from '../../src/dev/agents/report-agent.ts'
import { browserTool, createBridge } from '../../src/server/index.ts'
import { serveHttp } from '../support/mcp-servers.ts'

const model = 'gemini-2.5-flash'
const agentOf = (name: string) => new LlmAgent({ name, model })
const one = agentOf('one')
const two = agentOf('two')
const options = { agent: one, approvals: {} }

test.each<[name: string, exports: Record<string, unknown>, found: string, kind: string]>([
  ['rootAgent before others', { two, rootAgent: one }, 'rootAgent', 'agent'],
  [
    'an app before rootAgent',
    { rootAgent: one, app: new App({ name: 'a', rootAgent: two }) },
    'app',
    'app',
  ],
  ['options before an agent', { rootAgent: two, options }, 'options', 'options'],
  ['a default export', { default: one }, 'default', 'agent'],
  ['the only agent, exported twice', { one, same: one, port: 3000 }, 'one', 'agent'],
  ['the object of a CommonJS module', { default: { rootAgent: one } }, 'rootAgent', 'agent'],
])('[DV1250] a file exports %s', (_name, exports, exportName, kind) => {
  expect(readExports(exports, { file: 'agent.ts' })).toMatchObject({ exportName, kind })
})

test('[DV1250] a file exports a bridge', async () => {
  await using bridge = createBridge({ agent: one, approvals: () => true })
  const found = readExports({ rootAgent: two, bridge }, { file: 'agent.ts' })
  expect(found).toMatchObject({ kind: 'bridge', settings: { agents: new Map([['', one]]) } })
})

test.each<
  [name: string, exports: Record<string, unknown>, exportName: string | undefined, message: string]
>([
  [
    'two agents',
    { one, two },
    undefined,
    'agent.ts: exports 2 agents: one, two. Choose one with --export one, or name one of them rootAgent.',
  ],
  [
    'no agent',
    { port: 1 },
    undefined,
    'agent.ts: exports no agent, only port. Export it as rootAgent:',
  ],
  ['nothing', {}, undefined, 'agent.ts: exports no agent. Export it'],
  [
    'another name',
    { support: one },
    'suport',
    'agent.ts: the export suport does not exist. Did you mean `support`?',
  ],
  [
    'another value',
    { support: one, port: 1 },
    'port',
    'agent.ts: the export port is not an agent.',
  ],
])('[DV1252] a file that exports %s is one sentence', (_name, exports, exportName, message) => {
  expect(() => readExports(exports, { file: 'agent.ts', exportName })).toThrow(message)
})

const tool = (name: string, requireConfirmation?: boolean | (() => boolean)) =>
  new FunctionTool({
    name,
    description: name,
    parameters: z.object({}),
    execute: () => ({}),
    ...(requireConfirmation !== undefined && { requireConfirmation }),
  })

class OwnTool extends FunctionTool {
  override async checkRequireConfirmation(): Promise<boolean> {
    return true
  }
}

test('[DV1253] tools are listed with what says that they need approval, and problems with what to do', async () => {
  const agent = new LlmAgent({
    name: 'support',
    model: 'gpt-9',
    tools: [
      tool('always', true),
      tool('sometimes', () => true),
      tool('never'),
      new OwnTool({ name: 'own', description: 'own', execute: () => ({}) }),
      browserTool({ name: 'locate', description: 'locate', parameters: z.object({}) }),
      new MCPToolset(
        { type: 'StreamableHTTPConnectionParams', url: 'http://127.0.0.1:1/mcp?key=secret' },
        [],
        'files',
      ),
      new MCPToolset({
        type: 'StdioConnectionParams',
        serverParams: { command: 'npx', args: ['-y', 'mcp-notes', '--token', 'secret'] },
      }),
    ],
    subAgents: [new LlmAgent({ name: 'heir' })],
  })
  const { settings, exportName } = readExports({ agent }, { file: 'agent.ts' })
  const report = await reportAgent(settings, { connect: false })
  const adk = { version: '2.2.1', folder: '/x', tested: '2.0.0', notice: 'Not tested.' }
  const lines = [...describeReport('agent.ts', { type: 'report', exportName, adk, report })]
  expect(lines.slice(1)).toEqual([
    'agent.ts, export agent',
    '',
    'Agents',
    '  support: gpt-9',
    '  heir: gpt-9',
    '',
    'Tools',
    '  always (support): needs approval, `requireConfirmation` of the tool requires it',
    '  sometimes (support): may need approval, `requireConfirmation` of the tool decides for each call',
    '  never (support): runs without approval, neither the tool nor a policy requires it',
    '  own (support): may need approval, its class overrides `checkRequireConfirmation`',
    '  locate (support, in the browser): runs without approval, neither the tool nor a policy requires it',
    '',
    'Toolsets',
    '  files_* of the MCP server http://127.0.0.1:1/mcp (support): listed with --connect',
    '  tools without a prefix of the MCP server npx mcp-notes (support): listed with --connect',
    '',
    'Notices',
    '  Not tested.',
    '',
    'Problems',
    '  The agent support has the model gpt-9, which ADK does not know.',
    '',
    '1 problem. The agent cannot be served.',
  ])
})

test('[DV1253] every problem is listed, and an MCP server is connected to only on request', async () => {
  const toolset = new MCPToolset({
    type: 'StreamableHTTPConnectionParams',
    url: 'http://127.0.0.1:1/mcp',
  })
  const agent = new LlmAgent({ name: 'support', tools: [tool('pay'), toolset] })
  const { settings } = readExports(
    { options: { agent, approvals: { pay: false } } },
    { file: 'agent.ts' },
  )
  const { problems } = await reportAgent(settings, { connect: true })
  expect(problems).toEqual([
    'The agent support has no model. Set `model` of it or of its parent.',
    expect.stringMatching(/^The tools of http:\/\/127\.0\.0\.1:1\/mcp cannot be listed: /),
  ])
})

test('[DV1253] with `connect`, the tools of an MCP server are listed, and a policy for others is a problem', async () => {
  await using server = await serveHttp([{ name: 'read' }, { name: 'write' }])
  const toolset = () => new MCPToolset(server.connection, [], 'files')
  const report = (approvals: ApprovalPolicy) => {
    const agent = new LlmAgent({ name: 'support', model, tools: [toolset()] })
    const { settings } = readExports({ options: { agent, approvals } }, { file: 'agent.ts' })
    return reportAgent(settings, { connect: true })
  }
  const known = await report({ files_write: true })
  expect(known.problems).toEqual([])
  expect(known.toolsets).toMatchObject([
    {
      pattern: 'files_*',
      tools: [
        { name: 'files_read', need: 'never' },
        { name: 'files_write', need: 'always' },
      ],
    },
  ])
  const { problems } = await report({ files_wrote: true })
  expect(problems).toEqual([
    '`approvals` names the tool files_wrote, which the agent does not have. Did you mean `files_write`? A tool under another name would run without approval.',
  ])
  expect(server.calls()).toEqual([])
})

test('[DV1252] what Node cannot translate names the package that can', async () => {
  const error = Object.assign(
    new SyntaxError('TypeScript enum is not supported in strip-only mode'),
    {
      code: 'ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX',
      stack: `${pathToFileURL('/app/agent.ts').href}:3\nenum A {}\n^^^^\n\nSyntaxError: …`,
    },
  )
  const attempt = { entry: '/app/agent.ts', cwd: '/app', messages: [] }
  expect(await describeLoadError(error, attempt)).toMatchObject({
    code: 'syntax',
    message:
      'agent.ts:3: TypeScript enum is not supported in strip-only mode. Install a package that compiles it: npm install --save-dev tsx',
  })
})
