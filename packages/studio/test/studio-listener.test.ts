import { request as httpRequest, createServer, type IncomingMessage } from 'node:http'
import { writeFile } from 'node:fs/promises'
import { text } from 'node:stream/consumers'

import { LlmAgent } from '@google/adk'
import { createBridge, signedCookie } from 'adk-stream-protocol/server'
import { openSqliteStore } from 'adk-stream-protocol/store'
import {
  createStudioListener,
  type StudioInfo,
  type StudioOptions,
} from 'adk-stream-protocol-studio'
import { expect, test } from 'vitest'

import { listen } from '../../../test/support/listen.ts'
import { temporaryDirectory } from '../../../test/support/temporary-directory.ts'

/** A studio with an agent that no test talks to. */
async function openStudio({
  developer = false,
  ...options
}: Pick<StudioOptions, 'info'> & Partial<StudioOptions> & { readonly developer?: boolean }) {
  const directory = await temporaryDirectory()
  await writeFile(directory.file('index.html'), '<title>The page</title>')
  const store = await openSqliteStore({ path: directory.file('chats.db') })
  const authenticate = signedCookie({ secret: () => store.secret('cookie') })
  const bridge = createBridge({
    agent: new LlmAgent({ name: 'assistant', model: 'gemini-2.5-flash' }),
    store,
    authenticate,
    appName: 'studio',
    developer,
  })
  const listeners = createStudioListener({
    bridge,
    authenticate,
    pageDir: directory.path,
    ...options,
  })
  const server = createServer(listeners.request).on('upgrade', listeners.upgrade)
  const url = `http://127.0.0.1:${await listen(server)}`
  return {
    url,
    async [Symbol.asyncDispose]() {
      await bridge.close({ drainMs: 0 })
      server.close()
      server.closeAllConnections()
      await store[Symbol.asyncDispose]()
      await directory[Symbol.asyncDispose]()
    },
  }
}

const info: StudioOptions['info'] = () => ({ model: 'gemini-2.5-flash' })

test('[SD1300] the page gets a description with default values', async () => {
  await using studio = await openStudio({
    info: ({ principal, host }) => ({
      model: 'gemini-2.5-flash',
      agents: [{ name: 'assistant', tools: [{ name: 'refund', approval: 'always' }] }],
      ...(principal && { person: { id: principal.id, name: 'Alice' } }),
      title: host,
    }),
  })
  const response = await fetch(`${studio.url}/studio`)
  expect(response.headers.get('cache-control')).toBe('no-store')
  expect(await response.json()).toEqual({
    title: new URL(studio.url).host,
    model: 'gemini-2.5-flash',
    agents: [{ name: 'assistant', tools: [{ name: 'refund', approval: 'always' }] }],
    modes: ['sse', 'live'],
    emulated: false,
    signIn: false,
    files: { types: expect.arrayContaining(['image/png']) as string[], maxBytes: 5 * 1_048_576 },
    prices: {},
    person: { id: expect.stringMatching(/^browser-/) as string, name: 'Alice', roles: [] },
    people: [],
    delegations: false,
    reloads: false,
    sessions: false,
    inspector: true,
    plugin: {},
  })
})

test.each([
  ['throws', () => Promise.reject(new Error('the password is 1234'))],
  // A server in JavaScript may say anything.
  ['does not fit the schema', () => ({ model: 5 }) as unknown as StudioInfo],
])('[SD1300] a description that %s is an internal error', async (_what, described) => {
  await using studio = await openStudio({ info: described })
  const response = await fetch(`${studio.url}/studio`)
  const body = await response.text()
  expect([response.status, JSON.parse(body)]).toMatchObject([500, { error: { code: 'internal' } }])
  expect(body).not.toMatch(/1234|model/)
})

test.each(['/', '/studio', '/chats', '/health', '/assets/none.js'])(
  '[SD1301] %s of another host is rejected, and sets no cookie',
  async (path) => {
    await using studio = await openStudio({ info, allowedHosts: ['studio.example'] })
    const get = (host: string) =>
      new Promise<IncomingMessage>((resolve, reject) => {
        const headers = { host, connection: 'close' }
        httpRequest(studio.url + path, { headers }, resolve)
          .on('error', reject)
          .end()
      })
    const refused = await get('evil.example')
    expect(refused.statusCode).toBe(403)
    expect(refused.headers['set-cookie']).toBeUndefined()
    expect(await text(refused)).toContain('forbidden-host')
    for (const host of ['studio.example', 'localhost:8000', '[::1]']) {
      const response = await get(host)
      expect(response.statusCode).not.toBe(403)
      await text(response)
    }
  },
)

test.each([
  ['evil.example', 403],
  ['localhost', 101],
])('[SD1301] a socket of %s gets status %i', async (host, expected) => {
  await using studio = await openStudio({ info })
  const status = await new Promise((resolve, reject) => {
    const headers = {
      host,
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
    }
    httpRequest(`${studio.url}/live`, { headers })
      .on('upgrade', ({ statusCode }, socket) => {
        socket.destroy()
        resolve(statusCode)
      })
      .on('response', ({ statusCode }) => resolve(statusCode))
      .on('error', reject)
      .end()
  })
  expect(status).toBe(expected)
})

test('[SD1302] the page sets the cookie of a browser, and other paths are those of the bridge or of the server', async () => {
  await using studio = await openStudio({
    info,
    instance: 'A',
    respond: ({ url }, response) => {
      if (url !== '/own') return false
      response.end('the own path')
      return true
    },
  })
  const page = await fetch(studio.url)
  expect(await page.text()).toContain('The page')
  expect(page.headers.get('x-studio-instance')).toBe('A')
  expect(page.headers.get('content-security-policy')).toContain("default-src 'self'")
  const cookie = page.headers.get('set-cookie')?.split(';')[0] ?? ''
  const chats = await fetch(`${studio.url}/chats`, { headers: { cookie } })
  expect([chats.status, chats.headers.get('set-cookie')]).toEqual([200, null])
  expect(await chats.json()).toMatchObject({ chats: [] })
  expect(await (await fetch(`${studio.url}/own`)).text()).toBe('the own path')
})

test.each([true, false])(
  '[SD1310] the description says whether the bridge has the option `developer`: %s',
  async (developer) => {
    await using studio = await openStudio({ info, developer })
    const described = await fetch(`${studio.url}/studio`)
    expect(await described.json()).toMatchObject({ sessions: developer })
    const { headers } = await fetch(studio.url)
    const cookie = headers.get('set-cookie')?.split(';')[0] ?? ''
    const response = await fetch(`${studio.url}/chats/c/session`, { headers: { cookie } })
    const code = developer ? 'unknown-chat' : 'not-found'
    expect([response.status, await response.json()]).toMatchObject([404, { error: { code } }])
  },
)
