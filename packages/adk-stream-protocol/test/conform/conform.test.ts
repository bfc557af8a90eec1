import { FunctionTool } from '@google/adk'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { z } from 'zod'

import { isLong } from '../../../../test/support/long-run.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { runCli } from '../../src/use/run-cli.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import type { Fault } from './support/small-backend.ts'
import { openSmallBackend } from './support/small-backend.ts'

let testBridge: TestBridge

/** A tool that tells a counter when it runs. */
const pay = new FunctionTool({
  name: 'pay',
  description: 'Pays.',
  requireConfirmation: true,
  parameters: z.object({ counter: z.string() }),
  execute: async ({ counter }) => {
    await fetch(counter, { method: 'POST' })
    return { paid: true }
  },
})

beforeAll(async () => {
  testBridge = await TestBridge.open({ isLive: false, tools: () => [pay] })
})

afterAll(() => testBridge[Symbol.asyncDispose]())

interface Report {
  readonly code: number
  readonly errors: string
  readonly text: string
  readonly results: readonly {
    readonly client: string
    readonly name: string
    readonly result: string
    readonly reason?: string
  }[]
}

async function conform(...args: string[]): Promise<Report> {
  const lines: string[] = []
  const errors: string[] = []
  const code = await runCli(['conform', ...args], {
    print: (line) => void lines.push(line),
    printError: (line) => void errors.push(line),
  })
  const text = lines.join('\n')
  const isJson = text.startsWith('{')
  // The command prints this shape with --json.
  const { results } = isJson ? (JSON.parse(text) as Pick<Report, 'results'>) : { results: [] }
  return { code, errors: errors.join('\n'), text, results }
}

const OURS = [
  '--prompt',
  '[[call pay {"counter":"{counter}"}]][[then]][[say Paid.]]',
  '--plain',
  '[[say Hello.]]',
  '--error',
  '[[fail 503 overloaded]]',
  '--header',
  'x-api-key: hanako',
  '--stranger',
  'x-api-key: taro',
  '--settle',
  '20',
  '--json',
]

/** In `npm test`, one version of each client. */
const VERSIONS = isLong ? 2 : 1
const AI_CLIENTS = [['ai', '6.0.320'] as const, ['ai-7', '7.0.163'] as const]
const AG_UI_CLIENTS = [['@ag-ui/client', '1.0.0'] as const, ['@ag-ui/client-0', '0.0.59'] as const]

const PLACES = [
  {
    path: '/stream',
    history: '/chats/{chat}/messages',
    clients: AI_CLIENTS.slice(0, VERSIONS),
  },
  {
    path: '/ag-ui',
    history: '/ag-ui/agent/default/connect',
    clients: AG_UI_CLIENTS.slice(0, VERSIONS),
  },
]

test.each(PLACES)(
  '[CF1530] this bridge passes every check at $path, with each client',
  async ({ path, history, clients }) => {
    const { url } = testBridge
    const named = clients.flatMap(([name]) => ['--client', name])
    const address = ['--history', `${url}${history}`]
    const report = await conform(`${url}${path}`, ...address, ...named, ...OURS)
    expect(report.errors).toBe('')
    const failed = report.results.filter(({ result }) => result !== 'passed')
    expect([failed, report.code]).toEqual([[], 0])
    const versions = new Set(report.results.map(({ client }) => client.split(' ').at(-1)))
    expect([...versions]).toEqual(clients.map(([, version]) => version))
  },
)

test('[CF1532] a client that is not installed is a sentence, and nothing is requested', async () => {
  await using folder = await temporaryDirectory()
  const cwd = vi.spyOn(process, 'cwd').mockReturnValue(folder.path)
  try {
    for (const [url, name] of [
      ['http://localhost:1/chat', 'ai'],
      ['http://localhost:1/ag-ui', '@ag-ui/client'],
    ] as const) {
      const { code, errors } = await conform(url, '--prompt', 'Pay.')
      expect(code).toBe(2)
      expect(errors).toContain(`the package ${name} is not installed in ${folder.path}`)
      expect(errors).toContain(`npm install -D ${name}`)
    }
  } finally {
    cwd.mockRestore()
  }
})

test('[CF1532] without a counter, what cannot be seen is not checked, and the table says why', async () => {
  await using backend = await openSmallBackend('forgets what it has decided')
  const { code, text } = await conform(
    `${backend.url}/chat`,
    '--prompt',
    'Please pay {key}',
    '--client',
    'ai',
    '--only',
    'deny',
    '--only',
    'race',
    '--only',
    'foreign',
  )
  expect(code).toBe(0)
  expect(text).toMatch(/ ok {3}deny .*\n {2}- {4}race .*\n +needs --count or \{counter\}/)
  expect(text).toContain('1 passed, 0 failed, 2 not checked')
})

const FAULTS: readonly (readonly [Fault, readonly string[]])[] = [
  ['none', []],
  ['runs twice', ['approve']],
  ['runs without asking', ['ask']],
  ['ignores a denial', ['deny', 'contradict']],
  ['forgets what it has decided', ['repeat', 'race', 'contradict', 'resume']],
  ['trusts the arguments of the client', ['changed']],
  ['trusts the history of the client', ['invented']],
  ['answers anybody', ['foreign']],
  ['breaks the order of chunks', ['order']],
  ['fails after an answer', ['approve', 'deny']],
]

const KINDS = [
  { path: '/chat', client: 'ai' },
  { path: '/ag-ui', client: '@ag-ui/client' },
  ...(isLong ? [{ path: '/ag-ui', client: '@ag-ui/client-0' }] : []),
]

test.each(
  KINDS.flatMap(({ path, client }) =>
    FAULTS.map(([fault, expected]) => [path, fault, client, expected] as const),
  ),
)(
  '[CF1531] a backend at %s that has the fault `%s` fails with %s: %j',
  async (path, fault, client, expected) => {
    await using backend = await openSmallBackend(fault)
    const report = await conform(
      `${backend.url}${path}`,
      '--prompt',
      'Please pay {key}',
      '--count',
      `${backend.url}/count?key={key}`,
      '--header',
      'x-person: hanako',
      '--stranger',
      'x-person: taro',
      '--client',
      client,
      '--settle',
      '0',
      '--json',
      ...expected.flatMap((name) => ['--only', name]),
    )
    const failed = report.results.filter(({ result }) => result === 'failed')
    expect(failed.map(({ name }) => name)).toEqual(expected)
    expect(report.code).toBe(expected.length > 0 ? 1 : 0)
  },
)
