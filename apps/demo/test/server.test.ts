import { spawn } from 'node:child_process'
import { on, once } from 'node:events'
import { mkdir, readdir, readFile, rename, rm, utimes, writeFile } from 'node:fs/promises'
import { createServer, type IncomingMessage, request as httpRequest } from 'node:http'
import { dirname, join, sep } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'

import type { Authenticate } from 'adk-stream-protocol/server'
import { StudioInfo } from 'adk-stream-protocol-studio'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { bundleProgram } from '../../../test/support/bundle-program.ts'
import { oneOf } from '../../../test/support/long-run.ts'
import { posixTest } from '../../../test/support/posix-test.ts'
import { ApproverInfo } from '../src/demo-info.ts'
import { choosingRoles, createApprovers } from '../src/server/roles.ts'
import { type Demo, startDemo } from '../src/server/start-demo.ts'
import { buildDemoPage, PLUGIN_SOURCES } from '../scripts/build-page.ts'
import { hashFiles, PAGE_SOURCES } from '../../../packages/studio/scripts/build-page.ts'
import { builtPage } from '../../../test/support/built-page.ts'
import {
  type TemporaryDirectory,
  temporaryDirectory,
} from '../../../test/support/temporary-directory.ts'

let program = ''

beforeAll(async () => {
  await builtPage()
  program = await bundleProgram(new URL('../src/server/main.ts', import.meta.url))
})

test('[DM10] without an API key, the built-in emulator replies', async () => {
  await using data = await temporaryDirectory()
  await using demo = await startDemo({ PORT: '0', DATA_DIR: data.path })
  const stream = await (await sendMessage(demo.url, '東京の天気は?')).text()
  expect(stream).toContain('"toolName":"get_weather"')
  expect(stream).toContain('"type":"finish"')
  expect(demo.summary.join('\n')).toContain('built-in Gemini emulator')
})

test('[DM11] an invalid variable stops the start with one sentence', async () => {
  const { code, errors } = await runMain({ PORT: 'eighty' })
  expect(code).toBe(1)
  expect(errors.trim()).toBe(
    'PORT is not a port. Set it to a whole number from 0 to 65535, or leave it out.',
  )
})

test('[DM12] the error for a port in use says what to do', async () => {
  await using data = await temporaryDirectory()
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const address = other.address()
  const port = String(typeof address === 'object' ? address?.port : '')
  try {
    await expect(startDemo({ PORT: port, DATA_DIR: data.path })).rejects.toMatchObject({
      code: 'port-in-use',
      message: `Port ${port} on 127.0.0.1 is in use. Stop the other program, or take any free port: PORT=0 npm start`,
    })
  } finally {
    other.close()
  }
})

/** For tests that only read from it. */
let sharedDemo: Demo
let sharedData: TemporaryDirectory

beforeAll(async () => {
  sharedData = await temporaryDirectory()
  sharedDemo = await startDemo({ PORT: '0', DATA_DIR: sharedData.path })
})

afterAll(async () => {
  await sharedDemo[Symbol.asyncDispose]()
  await sharedData[Symbol.asyncDispose]()
})

test.each([
  '/',
  '/icon-that-is-not-there.svg',
  '/health',
  '/stream',
  '/studio',
  '/direct',
  '/chats/none/messages',
  '//',
  '/%',
])('[DM13] %s has the security headers', async (path) => {
  const { headers } = await fetch(sharedDemo.url + path)
  const policy = headers.get('content-security-policy') ?? ''
  expect(policy).toMatch(/default-src 'self';.*frame-ancestors 'none'/)
  expect(policy).not.toContain('unsafe')
  // The page may show and play data that it creates itself, and loads nothing from other origins.
  expect(policy).toContain(
    "img-src 'self' data: blob:; media-src 'self' data: blob:; connect-src 'self'",
  )
  expect(headers.get('x-content-type-options')).toBe('nosniff')
  expect(headers.get('referrer-policy')).toBe('no-referrer')
  expect(headers.get('permissions-policy')).toMatch(/microphone=\(self\), geolocation=\(self\)/)
})

test.each([
  ['br', 'br'],
  ['gzip, deflate', 'gzip'],
  ['identity', null],
])('[DM390] a browser that accepts %s gets the page with %s', async (accepted, encoding) => {
  const { url } = sharedDemo
  const headers = { 'accept-encoding': accepted }
  const html = await fetch(url, { headers })
  const [script = ''] = /\/assets\/[^"]+\.js/.exec(await html.text()) ?? []
  const response = await fetch(url + script, { headers })
  expect(response.headers.get('content-encoding')).toBe(encoding)
  expect(response.headers.get('content-type')).toContain('javascript')
  expect(await response.text()).toContain('createElement')
})

test('[DM391] a page whose sources have not changed is not built again', async () => {
  await buildDemoPage({ onStart: () => expect.unreachable('The page was built again.') })
})

test.each<[string, (folder: string) => Promise<unknown>]>([
  ['a changed file', (folder) => writeFile(join(folder, 'page/main.ts'), '2')],
  ['a new file', (folder) => writeFile(join(folder, 'page/new.ts'), '')],
  ['a renamed file', (folder) => rename(join(folder, 'page/main.ts'), join(folder, 'page/app.ts'))],
  ['a deleted file', (folder) => rm(join(folder, 'page/main.ts'))],
  [
    'text that moved to the next file',
    async (folder) => {
      await writeFile(join(folder, 'page/main.ts'), '')
      await writeFile(join(folder, 'page/next.ts'), '1')
    },
  ],
])('[DM391] %s changes the hash of the sources, whatever its time', async (_name, change) => {
  await using folder = await temporaryDirectory()
  await mkdir(join(folder.path, 'page'))
  await writeFile(join(folder.path, 'page/main.ts'), '1')
  await writeFile(join(folder.path, 'page/next.ts'), '')
  await writeFile(join(folder.path, 'config.ts'), '')
  const sources = [join(folder.path, 'page'), join(folder.path, 'config.ts')]
  const before = await hashFiles(sources)
  await Promise.all(sources.map((file) => utimes(file, 0, 0)))
  expect(await hashFiles(sources)).toBe(before)
  await change(folder.path)
  expect(await hashFiles(sources)).not.toBe(before)
})

test('[DM391] the hash includes every file that the page imports', async () => {
  const root = fileURLToPath(new URL('../../..', import.meta.url))
  const folders = ['apps/demo/src', 'packages/studio/src'].map((folder) => join(root, folder))
  const own = [...PLUGIN_SOURCES, ...PAGE_SOURCES].filter((source) =>
    folders.some((folder) => source.startsWith(folder)),
  )
  const files = (
    await Promise.all(
      own.map(async (source) =>
        source.endsWith('.ts')
          ? [source]
          : (await readdir(source, { recursive: true })).map((file) => join(source, file)),
      ),
    )
  ).flat()
  const imported = await Promise.all(
    files
      .filter((file) => /\.tsx?$/.test(file))
      .map(async (file) =>
        [...(await readFile(file, 'utf8')).matchAll(/(?:from|import|import\() ?'(\.[^'?]+)/g)].map(
          ([, target = '']) => join(dirname(file), target),
        ),
      ),
  )
  expect(imported.flat().length).toBeGreaterThan(100)
  const isHashed = (file: string) =>
    own.some((source) => file === source || file.startsWith(source + sep))
  expect(imported.flat().filter((file) => !isHashed(file))).toEqual([])
})

const SIGNALS = [{ name: 'SIGTERM' }, { name: 'SIGINT' }] as const

// `npm test` sends the other signal to an idle process.
posixTest.each(oneOf(SIGNALS, 'SIGTERM'))(
  '[DM14] $name waits for the end of a reply, and a second signal ends the process at once',
  async ({ name: signal }) => {
    await using data = await temporaryDirectory()
    using main = startMain({ PORT: '0', DATA_DIR: data.path })
    const url = await readUrl(main.stdout)
    const short = await sendMessage(url, '[[say I am done]]')
    const long = await sendMessage(url, '[[say I am waiting]][[wait forever]]')
    const reader = long.body?.getReader()
    await reader?.read()

    const exit = once(main, 'exit')
    main.kill(signal)
    // The same signal at the same time, as by Ctrl+C and npm, does not count twice.
    main.kill(signal)
    expect(await short.text()).toContain('[DONE]')
    await expect.poll(() => rejectsMessages(url)).toBe(true)
    expect(main.exitCode).toBeNull()
    const repeating = setInterval(() => main.kill(signal), 200)
    await exit
    clearInterval(repeating)
    expect(main.exitCode).toBe(1)
    await reader?.cancel().catch(() => undefined)
  },
)

/** Ctrl+C in a terminal sends the signal to the whole process group. */
const RECEIVERS = [
  { name: 'SIGTERM to npm', signal: 'SIGTERM', toGroup: false },
  { name: 'SIGINT to npm', signal: 'SIGINT', toGroup: false },
  { name: 'SIGINT to all processes of the terminal', signal: 'SIGINT', toGroup: true },
  { name: 'SIGKILL to npm', signal: 'SIGKILL', toGroup: false },
] as const

posixTest.each(oneOf(RECEIVERS, 'SIGTERM to npm'))(
  '[DM1140] $name ends the server that npm has started, after its replies',
  async ({ signal, toGroup }) => {
    await using data = await temporaryDirectory()
    const { npm_lifecycle_event: _event, ...env } = process.env
    const npm = spawn('npm', ['start', '--silent'], {
      cwd: fileURLToPath(new URL('../../..', import.meta.url)),
      env: { ...env, PORT: '0', DATA_DIR: data.path, NODE_OPTIONS: '' },
      stdio: ['ignore', 'pipe', 'inherit'],
      detached: true,
    })
    const group = -(npm.pid ?? 0)
    // The server has the same output, which therefore ends with the server.
    const ended = text(npm.stdout)
    try {
      const url = await readUrl(npm.stdout)
      const reply = await sendMessage(url, '[[say I am done]]')
      process.kill(toGroup ? group : -group, signal)
      expect(await reply.text()).toContain('[DONE]')
      await ended
      await expect(fetch(url)).rejects.toThrow('fetch failed')
    } finally {
      killAll(group)
    }
  },
)

function killAll(group: number): void {
  try {
    process.kill(group, 'SIGKILL')
  } catch {
    // All of them have ended.
  }
}

test('[DM1140] the scripts that run until they are stopped replace their shell', async () => {
  const root = new URL('../../../', import.meta.url)
  for (const [file, names] of [
    ['package.json', ['start', 'start:cluster', 'dev']],
    ['apps/demo/package.json', ['start', 'start:cluster']],
  ] as const) {
    const { scripts } = JSON.parse(await readFile(new URL(file, root), 'utf8')) as {
      scripts: Record<string, string>
    }
    for (const name of names)
      expect(scripts[name], `${file} ${name}`).toMatch(/^exec node [^&|;]+$/)
  }
})

test('[DM1140] a command that Windows starts in the place of `exec` has its arguments and its exit code', async () => {
  const exec = fileURLToPath(new URL('../scripts/exec.js', import.meta.url))
  const child = spawn(process.execPath, [
    exec,
    process.execPath,
    '-e',
    'console.log(process.argv[1]); process.exitCode = 3',
    'a b',
  ])
  const [printed] = await Promise.all([text(child.stdout), once(child, 'close')])
  expect([printed.trim(), child.exitCode]).toEqual(['a b', 3])
})

posixTest('[DM14] an idle process ends with code 0', async () => {
  await using data = await temporaryDirectory()
  using main = startMain({ PORT: '0', DATA_DIR: data.path })
  await readUrl(main.stdout)
  main.kill('SIGINT')
  await once(main, 'exit')
  expect(main.exitCode).toBe(0)
})

/** Returns whether the demo rejects new messages. */
async function rejectsMessages(url: string): Promise<boolean> {
  const response = await sendMessage(url, '[[say No]]')
  await response.body?.cancel()
  return response.status === 503
}

test('[DM15] another client may use the configured API key, and no other key', async () => {
  await using data = await temporaryDirectory()
  const key = 'a-key-of-sixteen-characters'
  await using demo = await startDemo({ PORT: '0', DATA_DIR: data.path, API_KEY: key })
  const good = await sendMessage(demo.url, '[[say Welcome.]]', { 'x-api-key': key })
  expect(good.status).toBe(200)
  expect(good.headers.get('set-cookie')).toBeNull()
  await good.text()
  const bad = await sendMessage(demo.url, '[[say Welcome.]]', { 'x-api-key': `${key}!` })
  expect(bad.status).toBe(401)
})

test('[DM16] a browser is the same principal after a restart', async () => {
  await using data = await temporaryDirectory()
  const env = { PORT: '0', DATA_DIR: data.path }
  const before = await startDemo(env)
  const response = await sendMessage(before.url, '[[say Remember me.]]')
  const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? ''
  await response.text()
  await before.close()

  await using after = await startDemo(env)
  const read = (headers: Record<string, string>) =>
    fetch(`${after.url}/chats/chat-1/messages`, { headers })
  const mine = await read({ cookie })
  expect(mine.status).toBe(200)
  expect(await mine.text()).toContain('Remember me.')
  const theirs = await read({})
  expect(await theirs.text()).not.toContain('Remember me.')
})

test('[DM16] a browser gets its cookie with the page, so that its concurrent requests have one principal', async () => {
  await using data = await temporaryDirectory()
  await using demo = await startDemo({ PORT: '0', DATA_DIR: data.path })
  const page = await fetch(demo.url)
  expect(page.status).toBe(200)
  const cookie = page.headers.get('set-cookie')?.split(';')[0] ?? ''
  const again = await Promise.all(
    ['/?chat=chat-1', '/approvals', '/chats/chat-1/messages'].map((path) =>
      fetch(demo.url + path, { headers: { cookie } }),
    ),
  )
  expect(again.map(({ status }) => status)).toEqual([200, 200, 200])
  expect(again.map(({ headers }) => headers.get('set-cookie'))).toEqual([null, null, null])
})

test('[DM18] `GET /studio` describes the demo to the page', async () => {
  await using data = await temporaryDirectory()
  await using demo = await startDemo({ PORT: '0', DATA_DIR: data.path })
  const response = await fetch(`${demo.url}/studio`)
  expect(response.headers.get('set-cookie')).toContain('HttpOnly')
  expect(StudioInfo.parse(await response.json())).toMatchObject({
    modes: ['sse', 'live', 'direct'],
    emulated: true,
    plugin: { approver: { is: false, address: '/?as=approver' } },
  })
})

test('[DM19] [DM40] two browsers approve a large payment', async () => {
  await using data = await temporaryDirectory()
  await using demo = await startDemo({ PORT: '0', DATA_DIR: data.path })
  const [owner, approver] = [await openPage(demo.url), await openPage(demo.approverUrl ?? '')]
  await (await sendMessage(demo.url, 'Send $600 to Alice', owner)).text()
  const list = async (headers: Record<string, string>) => {
    const response = await fetch(`${demo.url}/approvals`, { headers })
    return ((await response.json()) as { approvals: { id: string }[] }).approvals
  }
  const [pending] = await list(owner)
  const decide = async (headers: Record<string, string>) => {
    const response = await fetch(`${demo.url}/approvals/${pending?.id}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: '{"approved":true}',
    })
    const body = (await response.json()) as { approval?: { state: string } }
    return body.approval?.state ?? response.status
  }
  // The owner decides first, and cannot be the second approver.
  expect(await list(approver)).toEqual([])
  expect(await decide(approver)).toBe(403)
  expect(await decide(owner)).toBe('requested')
  await openPage(demo.approverUrl ?? '', owner)
  expect(await decide(owner)).toBe(409)
  expect(await list(approver)).toMatchObject([{ id: pending?.id }])
  expect(await decide(approver)).toBe('approved')
})

test('[DM40] a small payment that is edited to a large one still needs the second person', async () => {
  await using data = await temporaryDirectory()
  await using demo = await startDemo({ PORT: '0', DATA_DIR: data.path })
  const owner = await openPage(demo.url)
  await (await sendMessage(demo.url, 'Send $30 to Alice', owner)).text()
  const list = await fetch(`${demo.url}/approvals`, { headers: owner })
  const { approvals } = (await list.json()) as { approvals: { id: string; args: object }[] }
  const [approval] = approvals
  const response = await fetch(`${demo.url}/approvals/${approval?.id}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...owner },
    body: JSON.stringify({ approved: true, args: { ...approval?.args, amount: 900 } }),
  })
  expect([response.status, await response.json()]).toMatchObject([
    409,
    { error: { code: 'not-editable' } },
  ])
})

test('[DM71] over HTTP, a payment that depends on a denied one is not requested', async () => {
  await using data = await temporaryDirectory()
  await using demo = await startDemo({ PORT: '0', DATA_DIR: data.path })
  const owner = await openPage(demo.url)
  const read = async (path: string) =>
    (await fetch(`${demo.url}${path}`, { headers: owner })).json() as Promise<object>
  await (await sendMessage(demo.url, 'Send $20 to Alice, then $30 to Bob', owner)).text()
  const { approvals } = (await read('/approvals')) as {
    approvals: { id: string; chatId: string }[]
  }
  expect(approvals).toMatchObject([{ args: { recipient: 'Alice' } }])
  const denied = await fetch(`${demo.url}/approvals/${approvals[0]?.id}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...owner },
    body: '{"approved":false}',
  })
  expect(denied.status).toBe(200)
  const messages = `/chats/${approvals[0]?.chatId}/messages`
  await expect.poll(() => read(messages)).toMatchObject({ running: false })
  await expect.poll(async () => JSON.stringify(await read(messages))).toContain('not carried out')
  expect(await read('/approvals')).toMatchObject({ approvals: [] })
  expect(JSON.stringify(await read(messages))).not.toContain('"recipient":"Bob"')
})

const byCookie: Authenticate = ({ headers }) => ({ id: headers.get('cookie') ?? '' })

test('[DM19] an approver keeps the role, however many others get it', async () => {
  const authenticate = choosingRoles(byCookie, 'ABCDE-23456', createApprovers())
  const authenticateAs = (cookie: string, address: string) =>
    authenticate({
      method: 'GET',
      url: new URL(address, 'http://localhost'),
      headers: new Headers({ cookie }),
    })
  // A code may be typed in lower case and without the hyphen.
  await authenticateAs('first', `${APPROVER}&code=abcde23456`)
  for (let other = 0; other < 2_000; other += 1)
    await authenticateAs(`other-${other}`, `${APPROVER}&code=ABCDE-23456`)
  expect(await authenticateAs('first', '/')).toEqual({ id: 'first', roles: ['approver'] })
  expect(await authenticateAs('stranger', '/')).toEqual({ id: 'stranger' })
  for (const code of ['', '&code=', '&code=ABCDE-23457', '&code=ABCDE', '&code=ABCDE-23456x'])
    expect(await authenticateAs('stranger', APPROVER + code)).toEqual({ id: 'stranger' })
})

test('[DM19] the code from the terminal makes a browser an approver, and is removed from the URL', async () => {
  await using data = await temporaryDirectory()
  await using demo = await startDemo({ PORT: '0', DATA_DIR: data.path })
  const browser = await openPage(demo.url + APPROVER)
  const isApprover = async () => {
    const { is } = await readApprover(demo.url, browser)
    return is
  }
  const follow = async (url: string) => {
    const { status, headers } = await fetch(url, { headers: browser, redirect: 'manual' })
    return [status, headers.get('location')]
  }
  expect(await isApprover()).toBe(false)
  expect(await follow(`${demo.url}${APPROVER}&code=WRONG-WRONG`)).toEqual([
    303,
    '/?as=approver&wrong',
  ])
  expect(await isApprover()).toBe(false)
  expect(demo.summary.join()).toContain(demo.approverUrl)
  expect(await follow(demo.approverUrl ?? '')).toEqual([303, '/?view=approvals'])
  expect(await isApprover()).toBe(true)
  await using other = await startDemo({ PORT: '0', DATA_DIR: data.path })
  expect(new URL(other.approverUrl ?? '').search).not.toBe(new URL(demo.approverUrl ?? '').search)
})

test('[DM140] a page at another host name is rejected, and gets no cookie', async () => {
  await using data = await temporaryDirectory()
  const env = { PORT: '0', DATA_DIR: data.path, ALLOWED_HOSTS: 'demo.example' }
  await using demo = await startDemo(env)
  const get = (path: string, host: string) =>
    new Promise<IncomingMessage>((resolve, reject) => {
      const headers = { host, connection: 'close' }
      httpRequest(demo.url + path, { headers }, resolve)
        .on('error', reject)
        .end()
    })
  for (const path of ['/', '/studio', '/direct', '/chats', '/health', '/assets/none.js']) {
    const refused = await get(path, 'evil.example')
    expect([path, refused.statusCode]).toEqual([path, 403])
    expect(refused.headers['set-cookie']).toBeUndefined()
    expect(await text(refused)).toContain('forbidden-host')
    for (const host of ['demo.example', 'localhost:8000']) {
      const response = await get(path, host)
      expect(response.statusCode).not.toBe(403)
      await text(response)
    }
  }
})

test.each([
  [
    'with a key for Gemini',
    { GOOGLE_API_KEY: 'a-key', GOOGLE_GEMINI_BASE_URL: 'http://127.0.0.1:9' },
  ],
  ['on another address', { HOST: '0.0.0.0' }],
])('[DM19] %s, no browser becomes an approver by a URL', async (_where, env) => {
  await using data = await temporaryDirectory()
  await using demo = await startDemo({ PORT: '0', DATA_DIR: data.path, ...env })
  const url = demo.url.replace('0.0.0.0', '127.0.0.1')
  const headers = await openPage(`${url}${APPROVER}&code=ABCDE-23456`)
  expect(await readApprover(url, headers)).toEqual({ is: false })
  expect(demo.summary.join()).not.toContain('Approver')
})

const APPROVER = '/?as=approver'

async function readApprover(url: string, headers: Record<string, string>): Promise<ApproverInfo> {
  const response = await fetch(`${url}/studio`, { headers })
  return ApproverInfo.parse(StudioInfo.parse(await response.json()).plugin['approver'])
}

/** Opens the page in a browser. Returns the headers that the browser sends from then on. */
async function openPage(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, { headers, redirect: 'manual' })
  await response.text()
  const cookie = response.headers.get('set-cookie')?.split(';', 1)[0] ?? headers['cookie'] ?? ''
  return { cookie }
}

function sendMessage(url: string, content: string, headers: Record<string, string> = {}) {
  const message = { id: 'm1', role: 'user', parts: [{ type: 'text', text: content }] }
  return fetch(`${url}/stream`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ id: 'chat-1', trigger: 'submit-message', messages: [message] }),
  })
}

function startMain(env: Record<string, string>) {
  const { PATH = '', HOME = '' } = process.env
  return spawn(process.execPath, [program], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: { PATH, HOME, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

async function runMain(env: Record<string, string>) {
  const child = startMain(env)
  const [errors] = await Promise.all([text(child.stderr), once(child, 'exit')])
  return { code: child.exitCode, errors }
}

/** Continues to read afterwards: a process whose output is not read would be ended. */
async function readUrl(output: Readable): Promise<string> {
  let printed = ''
  for await (const [piece] of on(output, 'data', { close: ['end'] })) {
    printed += String(piece)
    const url = /http:\S+/.exec(printed)?.[0]
    if (url) return url
  }
  throw new Error(`The demo did not start: ${printed}`)
}
