import { execFile } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { request as httpRequest } from 'node:http'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'

import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { startEmulator } from 'gemini-emulator'
import { WebSocket } from 'ws'

import { shareOf } from '../support/long-run.ts'
import { longTest } from '../support/long-test.ts'
import { posixTest } from '../support/posix-test.ts'
import { Command, STUDIO_PROGRAM } from './support/command.ts'
import { installProject, packAll } from './support/project.ts'

// Outside of the workspace, so that only installed packages are found.
const folder = mkdtempSync(path.join(tmpdir(), 'dev-'))
const project = path.join(folder, 'project')

beforeAll(async () => {
  await installProject(project, await packAll(folder))
})

afterAll(() => {
  Command.killAll()
  rmSync(folder, { recursive: true })
})

function write(place: string, files: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(files)) {
    const file = path.join(project, place, name)
    mkdirSync(path.dirname(file), { recursive: true })
    writeFileSync(file, text)
  }
}

const STUDIO = [process.execPath, path.join(project, 'node_modules', STUDIO_PROGRAM)]
const CLI = path.join(project, 'node_modules/adk-stream-protocol/dist/use/cli.js')

/** An agent with a tool that needs approval, and one that waits for a file. Each result has the version of the code. */
const agent = (
  version: number,
  tools = 'refund, wait',
) => `import { version } from './version.mjs' // <b>
import { appendFileSync, existsSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'
import { FunctionTool, LlmAgent } from '@google/adk'
import { z } from 'zod'
const refund = new FunctionTool({
  name: 'refund',
  description: 'Refunds an order.',
  parameters: z.object({ order: z.number() }),
  requireConfirmation: true,
  execute: ({ order }) => {
    appendFileSync('effects.txt', 'refund ' + order + ' by ' + version + '/${version}\\n')
    return { refunded: order, version }
  },
})
const wait = new FunctionTool({
  name: 'wait',
  description: 'Waits for a file.',
  parameters: z.object({ file: z.string() }),
  execute: async ({ file }) => {
    appendFileSync('effects.txt', 'waiting\\n')
    while (!existsSync(file)) await setTimeout(20)
    return { version }
  },
})
export const rootAgent = new LlmAgent({ name: 'support', model: 'gemini-2.5-flash', tools: [${tools}] })
`

const versionOf = (version: number) => `export const version = ${version}\n`

interface Info {
  readonly agents: readonly { readonly name: string; readonly tools: readonly object[] }[]
  readonly person: { readonly id: string }
  readonly problem?: { readonly message: string; readonly codeFrame: string }
}

async function readInfo(url: string, cookie = ''): Promise<Info> {
  const response = await fetch(`${url}/studio`, { headers: { cookie, connection: 'close' } })
  return (await response.json()) as Info
}

/** Sends a message and returns the text of the stream. */
async function say(url: string, chatId: string, text: string): Promise<string> {
  const response = await fetch(`${url}/stream`, {
    method: 'POST',
    // The process with the version before closes its unused connections, also one that the next request has just taken.
    headers: { 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({
      id: chatId,
      messages: [{ id: `${chatId}-${text.length}`, role: 'user', parts: [{ type: 'text', text }] }],
    }),
  })
  return response.text()
}

async function decide(url: string, stream: string): Promise<void> {
  const id = /"approvalId":"([^"]+)"/.exec(stream)?.[1]
  const response = await fetch(`${url}/approvals/${id}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close' },
    body: JSON.stringify({ approved: true }),
  })
  expect(response.status).toBe(200)
}

const readEffects = (): string =>
  existsSync(path.join(project, 'effects.txt'))
    ? readFileSync(path.join(project, 'effects.txt'), 'utf8')
    : ''

test('[DV1320] [DV1321] [DV1322] [DV1323] [DV1324] an agent is served without a key, and each save takes over without losing a reply or an approval', async () => {
  write('', { 'agent.mjs': agent(1) })
  const dev = new Command(project, ['--port', '0', '--as', 'alice', '--as', 'bob:manager'], STUDIO)
  await dev.until(/✖ agent\.mjs:1: imports \.\/version\.mjs, which does not exist/)
  const [, url = ''] = await dev.until(/(http:\S+) continues when the file is saved/)
  await expectFailurePage(url)
  write('', { 'version.mjs': versionOf(1) })
  await dev.until(/Model +emulator \(no key\)[^]*Data +\.adk.chats\.db[^]*Watching +2 files/)
  expect(readFileSync(path.join(project, '.adk/.gitignore'), 'utf8')).toBe('*\n')
  const info = await readInfo(url)
  expect(info).toMatchObject({
    emulated: true,
    agents: [
      { name: 'support', tools: [{ name: 'refund', approval: 'always' }, { name: 'wait' }] },
    ],
    person: { id: 'alice' },
  })
  expect(await readInfo(url, 'adk_studio_person=bob')).toMatchObject({
    person: { id: 'bob', roles: ['manager'] },
  })
  const deltas = (await say(url, 'hello', 'Hello')).matchAll(/"delta":"([^"]*)"/g)
  expect(Array.from(deltas, ([, text]) => text).join('')).toContain('not a model')

  const [first, second, gone] = [
    await say(url, 'approval', 'refund order 42'),
    await say(url, 'again', 'refund order 43'),
    await say(url, 'removed', 'refund order 44'),
  ]
  const waiting = say(url, 'running', '[[call wait {"file": "go.txt"}]]')
  await vi.waitUntil(() => readEffects().includes('waiting'), { timeout: 30_000 })
  write('', { 'version.mjs': versionOf(2) })
  await dev.until(/✔ reloaded in \S+ s: version\.mjs/)
  await decide(url, first)
  await vi.waitUntil(() => readEffects().includes('refund'), { timeout: 30_000 })
  expect(readEffects()).toBe('waiting\nrefund 42 by 2/1\n')
  write('', { 'go.txt': '' })
  expect(await waiting).toContain('{"version":1}')

  write('', { 'agent.mjs': 'export const a = 1\r\nexport const b = (;\r\n' })
  await dev.until(/✖ agent\.mjs:2: Unexpected token ';'\.[^]*The page still uses/)
  const { problem } = await readInfo(url)
  expect(problem).toMatchObject({ file: 'agent.mjs', line: 2 })
  expect(problem?.codeFrame?.split('\n')).toContain('> 2 | export const b = (;')
  await decide(url, second)
  await vi.waitUntil(() => readEffects().includes('43'), { timeout: 30_000 })

  write('', { 'agent.mjs': agent(3, 'wait') })
  await dev.until(/✔ reloaded .+: agent\.mjs \(tool removed: refund\)/)
  expect((await readInfo(url)).problem).toBeUndefined()
  await decide(url, gone)
  await vi.waitUntil(
    async () => {
      const response = await fetch(`${url}/chats/removed/messages`)
      return (await response.text()).includes('output-error')
    },
    { timeout: 60_000, interval: 100 },
  )
  expect(readEffects()).toBe('waiting\nrefund 42 by 2/1\nrefund 43 by 2/1\n')

  await refuseForeignPages(url)
  dev.stop()
  expect(await dev.exited).toBe(0)
})

/** The memory, the open files and the child processes of a process. */
function measure(pid: number) {
  const read = (name: string): string => readFileSync(`/proc/${pid}/${name}`, 'utf8')
  return {
    megabytes: Number(/VmRSS:\s+(\d+)/.exec(read('status'))?.[1]) / 1_024,
    files: readdirSync(`/proc/${pid}/fd`).length,
    children: read(`task/${pid}/children`).trim().split(' ').length,
  }
}

function save(version: number): void {
  write('saved', { 'version.mjs': versionOf(version), 'agent.mjs': agent(1) })
}

// Where `/proc` is: on Linux.
if (existsSync('/proc/self/fd'))
  longTest(
    '[DV1322] 100 saves in a row leave no memory, no open files and no processes behind',
    async () => {
      const cwd = path.join(project, 'saved')
      save(0)
      const dev = new Command(cwd, ['--port', '0'], STUDIO)
      const [, url = ''] = await dev.until(/Page +(http:\S+)/)
      const settled = () =>
        // The version that serves, and the process for the next one.
        vi.waitUntil(() => measure(dev.pid).children === 2 && measure(dev.pid), {
          timeout: 120_000,
          interval: 100,
        })
      const saveTimes = async (from: number, to: number): Promise<void> => {
        for (let version = from; version <= to; version += 1) {
          save(version)
          await dev.until(/✔ reloaded/)
          expect(await say(url, `chat-${version}`, 'Hello')).toContain('[DONE]')
        }
      }
      await saveTimes(1, 5)
      const before = await settled()
      await saveTimes(6, 105)
      const after = await settled()
      expect(after.megabytes - before.megabytes).toBeLessThan(50)
      expect(after.files).toBeLessThanOrEqual(before.files + 1)
      dev.stop()
      expect(await dev.exited).toBe(0)
    },
    7_200_000,
  )

async function expectFailurePage(url: string): Promise<void> {
  const headers = { accept: 'text/html', 'accept-language': 'ja' }
  const page = await fetch(`${url}/`, { headers })
  expect([page.status, page.headers.get('content-security-policy')]).toEqual([
    503,
    expect.stringContaining("default-src 'none'"),
  ])
  expect(await page.text()).toMatch(
    /<html lang="ja">[^]*does not exist\.[^]*&gt; 1 \| import .*&lt;b&gt;/,
  )
  expect((await fetch(`${url}/health`)).status).toBe(503)
}

/** Requests of pages of other sites. */
async function refuseForeignPages(url: string): Promise<void> {
  const { port, host } = new URL(url)
  const send = (headers: Record<string, string>, target: string, method = 'GET') =>
    new Promise<number | undefined>((resolve, reject) => {
      const request = httpRequest({ port, path: target, method, headers }, (response) => {
        response.resume()
        resolve(response.statusCode)
      })
      request.on('error', reject)
      request.end(method === 'POST' ? '{}' : undefined)
    })
  const statuses = {
    rebinding: await send({ host: 'evil.example' }, '/studio'),
    text: await send({ host, 'content-type': 'text/plain' }, '/stream', 'POST'),
    origin: await send(
      { host, origin: 'https://evil.example', 'content-type': 'application/json' },
      '/stream',
      'POST',
    ),
  }
  expect(statuses).toEqual({ rebinding: 403, text: 415, origin: 403 })
  const open = (headers: Record<string, string>) =>
    new Promise<string>((resolve) => {
      const socket = new WebSocket(`ws://localhost:${port}/live?chatId=socket`, { headers })
      socket.on('open', () => {
        socket.close()
        resolve('open')
      })
      socket.on('error', (error) => resolve(error.message))
    })
  expect([
    await open({}),
    await open({ origin: 'https://evil.example' }),
    await open({ host: 'evil.example' }),
  ]).toEqual(['open', expect.stringContaining('403'), expect.stringContaining('403')])
}

/** Bad input: the arguments, the agent, and the only line that is printed. The exit code is 2. */
const REFUSED: readonly (readonly [
  args: readonly string[],
  agent: string | undefined,
  sentence: RegExp,
])[] = [
  [[], undefined, /^There is no agent in \.: no agent\.ts, .+Name the file of the agent\.$/],
  [['none.ts'], undefined, /^none\.ts does not exist\.$/],
  [['--model', 'gpt'], '', /^--model gpt: choose emulator or gemini\./],
  [['--as', ':x'], '', /^--as :x: the name of a person has letters/],
  [['--port', 'x'], '', /^--port x: a port is a number from 0 to 65535\.$/],
  [['--port', 'TAKEN'], '', /^Port \d+ is in use\. Stop the other program, or leave out --port/],
  [['--data', 'agent.mjs/data'], '', /^Cannot write to the data folder agent\.mjs\/data \(E/],
  [['--no-reload'], 'export const b = (;\n', /^✖ agent\.mjs:1: Unexpected token ';'\./],
  [['--no-reload'], `throw new Error('No')\n`, /^✖ agent\.mjs:1:7: threw .+ loaded: No\./],
  [
    ['--no-reload', '--model', 'gemini'],
    '',
    /^✖ `--model gemini` needs a key\. Set GOOGLE_API_KEY/,
  ],
  [['--no-reload'], 'await new Promise(() => {})\n', /^✖ agent\.mjs: waits at its top level/],
  [['--no-reload'], 'process.exit(3)\n', /^✖ agent\.mjs: ended the process .+ \(code 3\)\.$/],
]

test('[DV1325] bad input is one sentence and exit code 2', async () => {
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  const address = taken.address()
  const port = typeof address === 'object' && address ? String(address.port) : ''
  const found = []
  const refused = shareOf(REFUSED, { group: 0, groups: 2 })
  for (const [index, [args, text]] of refused.entries()) {
    // Without ADK, which would take a second to load.
    const cwd = path.join(folder, `refused ${index}`)
    mkdirSync(cwd)
    if (text !== undefined) writeFileSync(path.join(cwd, 'agent.mjs'), text)
    const dev = new Command(
      cwd,
      args.map((each) => each.replace('TAKEN', port)),
      STUDIO,
    )
    found.push([await dev.exited, dev.output.split('\n')[0], /^ +at /m.test(dev.output)])
  }
  taken.close()
  expect(found).toEqual(
    refused.map(([, , sentence]) => [2, expect.stringMatching(sentence) as string, false]),
  )
})

test('[DV1325] a signal ends the command while a version is being loaded', async () => {
  const cwd = path.join(folder, 'endless')
  mkdirSync(cwd)
  writeFileSync(path.join(cwd, 'agent.mjs'), `console.log('loading')\nfor (;;);\n`)
  const dev = new Command(cwd, ['--port', '0'], STUDIO)
  await dev.until(/loading/)
  dev.stop()
  expect(await dev.exited).toBe(0)
})

longTest(
  '[DV1320] without the package of the page, the command says how to install it',
  async () => {
    const alone = path.join(folder, 'alone')
    await installProject(
      alone,
      (await packAll(folder)).filter((tarball) => /protocol-\d/.test(tarball)),
    )
    writeFileSync(path.join(alone, 'agent.mjs'), '')
    const cli = path.join(alone, 'node_modules/adk-stream-protocol/dist/use/cli.js')
    const failure = promisify(execFile)(process.execPath, [cli, 'dev'], { cwd: alone })
    await expect(failure).rejects.toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /^The page is in .+ Install it: npm install -D adk-stream-protocol-studio\n$/,
      ) as string,
    })
  },
)

/** The page of `serve` has no inspector. Strangers learn nothing about the agents. */
async function expectPage(url: string, headers: Record<string, string>): Promise<void> {
  expect(await (await fetch(url)).text()).toContain('<div id="root">')
  const described = await fetch(`${url}/studio`, { headers })
  expect(await described.json()).toMatchObject({
    agents: [{ name: 'support', tools: [] }],
    model: 'gemini-2.5-flash',
    inspector: false,
    sessions: false,
  })
  const [agents, model] = [[], '']
  expect(await (await fetch(`${url}/studio`)).json()).toMatchObject({ agents, model })
  expect((await fetch(`${url}/chats/c/session`, { headers })).status).toBe(404)
}

/** As npm does, a shell that waits for the command and does not pass on signals. */
const SHELL = ['sh', '-c', `"${process.execPath}" "${CLI}" serve "$@"; true`, 'sh']

posixTest(
  '[DV1327] serve needs the principal of each request, and ends with npm when running turns have ended',
  async () => {
    await using emulator = await startEmulator()
    const cwd = path.join(project, 'served')
    write('served', {
      'agent.mjs': agent(1),
      'version.mjs': versionOf(1),
      'auth.mjs': `export const authenticate = ({ headers }) => headers.get('authorization') === 'Bearer a' ? { id: 'a' } : undefined\n`,
      '.env': `GOOGLE_API_KEY=x\nGOOGLE_GEMINI_BASE_URL=${emulator.baseUrl}\n`,
    })
    const args = [
      '--auth',
      'auth.mjs',
      '--data',
      'data',
      '--origin',
      'https://app.example',
      '--page',
    ]
    const serve = new Command(cwd, [...args, '--host', '127.0.0.1', '--port', '0'], SHELL)
    const [, port = ''] = await serve.until(/"message":"listening",.*"port":(\d+)/)
    const url = `http://127.0.0.1:${port}`
    expect((await fetch(`${url}/chats`)).status).toBe(401)
    const headers = { authorization: 'Bearer a', 'content-type': 'application/json' }
    await expectPage(url, headers)
    const body = {
      id: 'c',
      messages: [
        { id: 'm', role: 'user', parts: [{ type: 'text', text: '[[call wait {"file": "go"}]]' }] },
      ],
    }
    const streaming = fetch(`${url}/stream`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    })
    await vi.waitUntil(() => existsSync(path.join(cwd, 'effects.txt')), { timeout: 30_000 })
    serve.stop('SIGKILL')
    await serve.until(/"event":"bridge\.closing"/)
    writeFileSync(path.join(cwd, 'go'), '')
    expect(await (await streaming).text()).toContain('{"version":1}')
    await serve.until(/"event":"bridge\.closed"/)
    // All processes have closed the output.
    await serve.exited
  },
)

longTest('[DV1326] serve that is refused says so in one line, and nothing of a start', async () => {
  write('refused', { 'agent.mjs': agent(1), 'version.mjs': versionOf(1) })
  const program = [process.execPath, CLI, 'serve']
  const serve = new Command(path.join(project, 'refused'), ['--data', 'data'], program)
  expect(await serve.exited).toBe(2)
  expect(serve.output).toMatch(/^serve needs --auth <file>, .+; --origin <url>, .+\n$/)
})
