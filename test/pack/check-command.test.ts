import { spawn } from 'node:child_process'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { longTest } from '../support/long-test.ts'
import { installProject, packAll } from './support/project.ts'

const ROOT = path.join(import.meta.dirname, '../..')

// Outside of the workspace, so that only installed packages are found.
const folder = mkdtempSync(path.join(tmpdir(), 'check-'))
const agents = path.join(folder, 'agents')

beforeAll(async () => {
  await installProject(path.join(folder, 'tool'), await packAll(folder))
  // Not the copy of ADK that is installed beside the command, as with `npx`.
  copyModules(path.join(folder, 'with-adk'))
})

afterAll(() => rmSync(folder, { recursive: true }))

/** Creates `node_modules` with a copy of ADK, and links to all other packages. */
function copyModules(project: string): void {
  const from = path.join(ROOT, 'node_modules')
  const to = path.join(project, 'node_modules')
  mkdirSync(path.join(to, '@google'), { recursive: true })
  for (const name of readdirSync(from))
    if (!/^(?:\.|@google$|adk-stream-protocol$)/.test(name))
      symlinkSync(path.join(from, name), path.join(to, name), 'junction')
  for (const name of readdirSync(path.join(from, '@google')))
    if (name !== 'adk')
      symlinkSync(path.join(from, '@google', name), path.join(to, '@google', name), 'junction')
  cpSync(path.join(from, '@google/adk'), path.join(to, '@google/adk'), { recursive: true })
}

function write(project: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(project, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
}

interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

function check(cwd: string, args: readonly string[], node: readonly string[] = []): Promise<Ran> {
  const cli = path.join(folder, 'tool/node_modules/adk-stream-protocol/dist/use/cli.js')
  // The conditions and the variables of the test run are not those of a terminal.
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'] }
  const child = spawn(process.execPath, [...node, cli, 'check', ...args], { cwd, env })
  const text = { stdout: '', stderr: '' }
  child.stdout.on('data', (data: Buffer) => (text.stdout += data.toString()))
  child.stderr.on('data', (data: Buffer) => (text.stderr += data.toString()))
  return new Promise((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, ...text }))
  })
}

/** A package with the name of ADK and little else. */
const stubOfAdk = (version: string) => ({
  'package.json': JSON.stringify({
    name: '@google/adk',
    version,
    type: 'module',
    exports: { '.': { import: './dist/esm/index.js' } },
  }),
  'dist/esm/index.js': 'export class LlmAgent {}',
})

const within = (place: string, files: Readonly<Record<string, string>>) =>
  Object.fromEntries(Object.entries(files).map(([name, text]) => [`${place}/${name}`, text]))

/** The place of a package in the `node_modules` of pnpm. Packages with other peers are other copies. */
const inPnpm = (id: string, name: string): string => `node_modules/.pnpm/${id}/node_modules/${name}`
const PNPM_ADK = ['zod@3.25.0', 'zod@4.3.0'].map((peer) =>
  inPnpm(`@google+adk@2.0.0_${peer}`, '@google/adk'),
)
const PNPM_TOOLS = inPnpm('tools@1.0.0', 'tools')

/** Links of the cases, as pnpm creates them. */
const LINKS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'two copies of ADK by pnpm': {
    'node_modules/@google/adk': PNPM_ADK[0] ?? '',
    'node_modules/tools': PNPM_TOOLS,
    [inPnpm('tools@1.0.0', '@google/adk')]: PNPM_ADK[1] ?? '',
  },
}

function linkAll(project: string, links: Readonly<Record<string, string>> = {}): void {
  for (const [name, target] of Object.entries(links)) {
    mkdirSync(path.dirname(path.join(project, name)), { recursive: true })
    symlinkSync(path.join(project, target), path.join(project, name), 'junction')
  }
}

/** The files of an agent, and the sentence about it. The names of the folders are those of the cases, in the order of the alphabet. */
const REFUSED: readonly (readonly [
  name: string,
  files: Readonly<Record<string, string>>,
  sentence: RegExp,
])[] = [
  [
    'a syntax error',
    { 'agent.js': 'export const a = 1\nexport const b = (;\n' },
    /^agent\.js:2: Unexpected token ';'\.$/,
  ],
  [
    'an error in an imported file',
    {
      'agent.mjs': `import './lib/start.mjs'\n`,
      'lib/start.mjs': `const url = process.env.DATABASE_URL\nif (!url) throw new Error('DATABASE_URL is not set')\n`,
    },
    /^lib.start\.mjs:2:17: threw an error while it was loaded: DATABASE_URL is not set\.$/,
  ],
  [
    'a package that is not installed',
    { 'agent.mjs': `\nimport { pay } from 'payments/pay'\n` },
    /^agent\.mjs:2: imports payments, which is not installed\. Install it: npm install payments$/,
  ],
  [
    'a file that does not exist',
    { 'agent.mjs': `import { pay } from './tools/pay.js'\n` },
    /^agent\.mjs:1: imports \.\/tools\/pay\.js, which does not exist\.$/,
  ],
  [
    'a name that a module does not export',
    { 'agent.mjs': `import { reedFile } from 'node:fs'\n` },
    /^agent\.mjs:1: The requested module 'node:fs' does not provide an export named 'reedFile'\.$/,
  ],
  [
    'a process that ends',
    { 'agent.mjs': 'process.exit(0)' },
    /^agent\.mjs: ended the process while it was loaded \(code 0\)\.$/,
  ],
  [
    'an endless top-level await',
    { 'agent.mjs': 'await new Promise(() => {})' },
    /^agent\.mjs: waits at its top level for something that never happens\.$/,
  ],
  [
    'an error after a timer',
    {
      'agent.mjs': `setTimeout(() => {\n  throw new Error('Too late')\n})\nawait new Promise((resolve) => setTimeout(resolve, 1e8))\n`,
    },
    /^agent\.mjs:2:9: threw an error while it was loaded: Too late\.$/,
  ],
  [
    'two copies of ADK',
    {
      'agent.mjs': `import '@google/adk'\nimport './lib/tool.mjs'\n`,
      'lib/tool.mjs': `import '@google/adk'\n`,
      ...within('node_modules/@google/adk', stubOfAdk('2.0.0')),
      ...within('lib/node_modules/@google/adk', stubOfAdk('2.1.0')),
    },
    /^There are two copies of @google\/adk: .+ADK.node_modules.@google.adk \(2\.0\.0\), imported by agent\.mjs, and .+lib.node_modules.@google.adk \(2\.1\.0\), imported by lib.tool\.mjs\. Install one/,
  ],
  [
    'two copies of ADK by pnpm',
    {
      'agent.mjs': `import '@google/adk'\nimport 'tools'\n`,
      ...within(PNPM_TOOLS, {
        'package.json': '{ "name": "tools", "exports": "./index.mjs" }',
        'index.mjs': `import '@google/adk'\n`,
      }),
      ...within(PNPM_ADK[0] ?? '', stubOfAdk('2.0.0')),
      ...within(PNPM_ADK[1] ?? '', stubOfAdk('2.0.0')),
    },
    /^There are two copies of @google\/adk: .+zod@3\.25\.0.node_modules.@google.adk \(2\.0\.0\), imported by agent\.mjs, and .+zod@4\.3\.0.node_modules.@google.adk \(2\.0\.0\), imported by .+tools.index\.mjs\. Install one/,
  ],
  [
    'an old ADK',
    {
      'agent.mjs': `import '@google/adk'\n`,
      ...within('node_modules/@google/adk', stubOfAdk('1.3.0')),
    },
    /^@google\/adk 1\.3\.0 in .+ is not supported: adk-stream-protocol \S+ needs \^2\.0\.0\. Install it:/,
  ],
]

test('[DV1252] an agent that cannot be loaded is one sentence and exit code 2', async () => {
  for (const [name, files] of REFUSED) {
    write(path.join(agents, name), files)
    linkAll(path.join(agents, name), LINKS[name])
  }
  const { code, stdout, stderr } = await check(agents, [])
  const lines = stderr.trimEnd().split('\n')
  const byName = REFUSED.toSorted(([one], [other]) => (one < other ? -1 : 1))
  // Each sentence names its file from the folder that is checked.
  const sentences = byName.map(([name], index) =>
    (lines[index] ?? '')
      .replaceAll(`${name}${path.sep}agent`, 'agent')
      .replaceAll(`${name}${path.sep}lib${path.sep}`, `lib${path.sep}`),
  )
  expect(sentences).toEqual(
    byName.map(([, , sentence]) => expect.stringMatching(sentence) as string),
  )
  expect(lines).toHaveLength(REFUSED.length)
  expect([code, stdout]).toEqual([2, ''])
})

test('[DV1252] an old version of Node is one sentence and exit code 2', async () => {
  const old = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '18.20.1' } })`
  mkdirSync(agents, { recursive: true })
  const ran = await check(agents, [], ['--import', `data:text/javascript,${encodeURI(old)}`])
  expect(ran).toEqual({
    code: 2,
    stdout: '',
    stderr: 'adk-stream-protocol needs Node 20.19 or later. This is Node 18.20.1.\n',
  })
})

test.skipIf(Boolean(Reflect.get(process.features, 'typescript')))(
  '[DV1251] without a package that compiles TypeScript, Node 20 says what to install',
  async () => {
    const project = path.join(agents, 'no compiler')
    write(project, { 'agent.ts': 'export const a: number = 1' })
    const { code, stderr } = await check(project, [])
    expect(stderr).toMatch(
      /^agent\.ts is TypeScript, which Node \S+ cannot load\. Install .+ tsx, or use Node 22\.18 or later/,
    )
    expect(code).toBe(2)
  },
)

test('[DV1250] [DV1252] a file with environment variables or a policy that does not exist is one sentence', async () => {
  const project = path.join(agents, 'no variables')
  write(project, { 'agent.mjs': '' })
  expect(await check(project, ['--env', 'own.env'])).toEqual({
    code: 2,
    stdout: '',
    stderr: 'The file own.env with environment variables does not exist.\n',
  })
  expect(await check(project, ['--policy', 'own.ts'])).toEqual({
    code: 2,
    stdout: '',
    stderr: 'own.ts does not exist.\n',
  })
})

const TOOLS = `
import { FunctionTool } from '@google/adk'
import { z } from 'zod'
enum Unit { Cent = 'cent' }
export const tool = (name: string, requireConfirmation = false): FunctionTool =>
  new FunctionTool({
    name,
    description: Unit.Cent,
    parameters: z.object({}),
    execute: () => ({}),
    requireConfirmation,
  })
`

test('[DV1250] [DV1251] [DV1253] [DV1972] an agent in TypeScript is loaded with its own ADK, .env and paths, and its tools are listed by a policy', async () => {
  const project = path.join(folder, 'with-adk')
  write(project, {
    'package.json': '{}',
    'tsconfig.json':
      '{ /* own names */ "compilerOptions": { "paths": { "@lib/*": ["./src/lib/*"], } } }',
    '.env': 'MODEL=gemini-2.5-pro\n',
    'src/lib/tools.ts': TOOLS,
    'src/name.ts': `export const name: string = 'support'`,
    'src/agent.ts': `
import { Gemini, LlmAgent, SequentialAgent } from '@google/adk'
import { createBridge } from 'adk-stream-protocol/server'
import { tool } from '@lib/tools'
import { name } from './name.js'
console.log('Printed by the agent.')
// ADK refuses to create it without a key.
const model = new Gemini({ model: process.env['MODEL']! })
const agent = new LlmAgent({ name, model, tools: [tool('pay'), tool('refund', true), tool('look')] })
export const rootAgent = new SequentialAgent({ name: 'steps', subAgents: [agent] })
export const bridge = createBridge({ agent: rootAgent })
`,
    'src/policy.ts': `export const approvals = { 'p*': (): boolean => true, refund: false }`,
  })
  const args = ['--json', '--export', 'rootAgent', '--policy', 'src/policy.ts']
  const { code, stdout, stderr } = await check(project, args)
  expect({ code, stderr }).toMatchObject({ code: 0 })
  expect(JSON.parse(stdout)).toMatchObject({
    node: process.versions.node,
    agents: [
      {
        file: path.join('src', 'agent.ts'),
        export: 'rootAgent',
        adk: {
          version: '2.0.0',
          tested: '2.0.0',
          folder: path.join(project, 'node_modules/@google/adk'),
        },
        agents: [{ name: 'steps' }, { name: 'support', model: 'gemini-2.5-pro' }],
        tools: [
          {
            name: 'pay',
            agent: 'support',
            need: 'sometimes',
            because: "`approvals['p*']` decides for each call",
          },
          { name: 'refund', need: 'never', because: '`approvals.refund` exempts it' },
          { name: 'look', need: 'never' },
        ],
        problems: [],
      },
    ],
  })
  expect(stderr).toContain('Printed by the agent.')
})

longTest(
  '[DV1251] [DV1253] an agent in CommonJS uses the same ADK, and a tool that cannot wait is a problem with exit code 1',
  async () => {
    const project = path.join(folder, 'with-adk/commonjs')
    write(project, {
      'package.json': '{}',
      'app.cjs': `
const { App, FunctionNode, FunctionTool, LlmAgent, LoopAgent } = require('@google/adk')
const pay = new FunctionTool({ name: 'pay', description: 'Pays.', execute: () => ({}), requireConfirmation: true })
class Own extends LoopAgent { async *runAsyncImpl() {} }
const payer = new LlmAgent({ name: 'payer', model: 'gemini-2.5-flash', tools: [pay] })
module.exports = { app: new App({ name: 'shop', rootAgent: new Own({ name: 'own', subAgents: [payer] }) }) }
`,
    })
    const { code, stdout } = await check(project, [])
    expect(stdout).toMatch(
      /^adk-stream-protocol \S+ · Node \S+ · @google\/adk 2\.0\.0 \(tested\)\napp\.cjs, export app\n/,
    )
    expect(stdout).toContain(
      'pay (payer): needs approval, `requireConfirmation` of the tool requires it',
    )
    expect(stdout).toContain(
      "Problems\n  The tool pay needs approval, but the class of own overrides ADK's run methods",
    )
    expect(stdout).toMatch(/\n1 problem\. The agent cannot be served\.\n$/)
    expect(code).toBe(1)
  },
)
