import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import path from 'node:path'

import { Gemini, LlmAgent } from '@google/adk'
import { expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'

import { listen } from '../../../../test/support/listen.ts'
import { createBridge, isAllowedHost } from '../../src/server/index.ts'
import { openSqliteStore } from '../../src/store/index.ts'
import { toNodeListener, toUpgradeListener } from '../../src/use/node.ts'
import { refusedUpgrade, SocketClient } from '../sockets/support/socket-client.ts'
import { assistant } from '../support/agents.ts'
import { hosts } from '../support/hosts.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { serve, type ServeOptions } from '../support/serve.ts'

/** Sends a request with any `Host`, which `fetch` does not allow. */
function requestWithHost(url: string, host: string, headers: Record<string, string> = {}) {
  return new Promise<{ status: number; code: string | undefined; cookie: string | undefined }>(
    (resolve, reject) => {
      const sent = httpRequest(url, { headers: { ...headers, host } }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (piece: string) => (text += piece))
        response.on('end', () => {
          const { error } = JSON.parse(text) as { error?: { code: string } }
          const cookie = response.headers['set-cookie']?.[0]
          resolve({ status: response.statusCode ?? 0, code: error?.code, cookie })
        })
      })
      sent.on('error', reject).end()
    },
  )
}

test.each(hosts)(
  '[SE140] a request with an unknown Host is rejected without a cookie, with $name',
  async (host) => {
    await using server = await serve({ host })
    const { port } = new URL(server.url)
    for (const name of ['evil.example', `evil.example:${port}`, 'localhost.evil.example']) {
      const answer = await requestWithHost(`${server.url}/chats`, name, {
        origin: `http://${name}`,
      })
      expect(answer).toEqual({ status: 403, code: 'forbidden-host', cookie: undefined })
      const refused = await refusedUpgrade(server.url, { headers: { host: name } })
      expect(refused).toMatchObject({ status: 403, code: 'forbidden-host' })
    }
    for (const name of ['localhost', `LOCALHOST:${port}`, 'app.localhost', '192.168.1.20', '[::1]'])
      expect((await requestWithHost(`${server.url}/chats`, name)).status).toBe(200)
    // Public routes accept any Host: probes of a load balancer send their own.
    expect((await requestWithHost(`${server.url}/health`, 'evil.example')).status).toBe(200)
    // Reported once per host, with what to change.
    const advice = server.errors.map((error) => (error instanceof Error ? error.message : ''))
    expect(advice).toHaveLength(3)
    expect(advice[0]).toMatch(/Host: "evil\.example".*`allowedHosts`/)
  },
)

const CASES: readonly [ServeOptions, string, number][] = [
  [{ allowedHosts: ['chat.example.com'] }, 'chat.example.com', 200],
  [{ allowedHosts: ['chat.example.com'] }, 'Chat.Example.com.:8443', 200],
  [{ allowedHosts: ['chat.example.com'] }, 'other.example.com', 403],
  [{ allowedHosts: ['chat.example.com:8443'] }, 'chat.example.com:8443', 200],
  [{ allowedHosts: ['chat.example.com:8443'] }, 'chat.example.com', 403],
  [{ allowedHosts: ['.example.com'] }, 'a.b.example.com', 200],
  [{ allowedHosts: ['.example.com'] }, 'example.com', 200],
  [{ allowedHosts: ['.example.com'] }, 'evilexample.com', 403],
  [{ allowedHosts: 'any' }, 'evil.example', 200],
  [{ allowedOrigins: ['https://chat.example.com'] }, 'chat.example.com', 200],
  [{ allowedOrigins: ['https://chat.example.com'] }, 'evil.example', 403],
  // With `authenticate`, pages of other hosts have no credentials, so every Host is allowed unless the option is set.
  [{ authenticate: () => ({ id: 'hanako' }) }, 'evil.example', 200],
  [{ authenticate: () => ({ id: 'hanako' }), allowedHosts: [] }, 'evil.example', 403],
]

test('[SE140] hosts are allowed by option, by allowed origin, or by an `authenticate` option', async () => {
  for (const [options, host, status] of CASES) {
    await using server = await serve(options)
    const answer = await requestWithHost(`${server.url}/chats`, host)
    expect([options, host, answer.status]).toEqual([options, host, status])
  }
})

test.each(['evil.example@127.0.0.1', 'evil.example/127.0.0.1', '', '[', 'a b', '127.0.0.1.evil'])(
  '[SE140] %j is not an allowed host',
  (host) => {
    expect(isAllowedHost(host, ['chat.example.com'])).toBe(false)
  },
)

test.each(['https://chat.example.com', '*', '*.example.com', 'chat.example.com/', ''])(
  '[SE140] an entry %j that can never match is rejected by createBridge',
  (entry) => {
    const agent = assistant(new Gemini({ model: 'gemini-2.5-flash', apiKey: 'any' }))
    expect(() => createBridge({ agent, allowedHosts: [entry] })).toThrow(/is not a host/)
  },
)

test('[ER141] a rejected origin is reported once, with the Host and what to change', async () => {
  await using server = await serve({ allowedHosts: 'any' })
  for (let time = 0; time < 3; time += 1)
    await requestWithHost(`${server.url}/chats`, 'inner:8000', { origin: 'https://chat.example' })
  expect(server.errors).toHaveLength(1)
  const [error] = server.errors
  expect(String(error)).toMatch(/"https:\/\/chat\.example".*"inner:8000".*`allowedOrigins`/)
  expect(String(error)).toContain('proxy_set_header Host $http_host')
})

test('[ER140] without `onError`, errors are printed', async () => {
  const printed = vi.spyOn(console, 'error').mockImplementation(() => undefined)
  for (const name of ['GOOGLE_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_GENAI_API_KEY'])
    vi.stubEnv(name, undefined)
  try {
    // A common first attempt: the name of a model, without an API key.
    await using bridge = createBridge({
      agent: new LlmAgent({ name: 'assistant', model: 'gemini-2.5-flash' }),
    })
    const answer = await bridge.fetch(
      new Request('http://localhost/stream', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id: 'chat-1', messages: [{ role: 'user', content: 'Hello' }] }),
      }),
    )
    expect(await answer.text()).toContain('"type":"error"')
    expect(printed).toHaveBeenCalledOnce()
    expect(String(printed.mock.lastCall)).toMatch(/^\[adk-stream-protocol\] internal: .*API key/)
  } finally {
    printed.mockRestore()
    vi.unstubAllEnvs()
  }
})

test('[HO140] paths outside `basePath` are not handled by the bridge', async () => {
  const agent = assistant(new Gemini({ model: 'gemini-2.5-flash', apiKey: 'any' }))
  await using bridge = createBridge({ agent, basePath: '/adk' })
  for (const pathname of ['/index.html', '/', '/adkx', '/adkx/health', '/health', '/adk/nowhere'])
    expect([pathname, bridge.handles(pathname)]).toEqual([pathname, false])
  for (const pathname of ['/adk', '/adk/', '/adk/health', '/adk/stream', '/adk/chats/1/messages'])
    expect([pathname, bridge.handles(pathname)]).toEqual([pathname, true])
  const status = async (pathname: string) =>
    (await bridge.fetch(new Request(`http://localhost${pathname}`))).status
  expect(await status('/index.html')).toBe(404)
  expect(await status('/')).toBe(404)
  expect(await status('/adk')).toBe(200)
})

test.each([{ basePath: '/adk' }, { mountedAt: '/adk' }])(
  '[WS20] upgrade requests for other listeners are ignored, with %j',
  async ({ basePath = '', mountedAt = '' }) => {
    const agent = assistant(new Gemini({ model: 'gemini-2.5-flash', apiKey: 'any' }))
    await using bridge = createBridge({ agent, basePath })
    const server = createServer(toNodeListener(bridge))
    server.on('upgrade', toUpgradeListener(bridge, { mountedAt }))
    const url = `http://127.0.0.1:${await listen(server)}`
    try {
      // If it is the only listener, it rejects other upgrade requests.
      expect(await refusedUpgrade(url)).toMatchObject({ status: 404 })
      const seen: (string | undefined)[] = []
      server.on('upgrade', (request, socket) => {
        seen.push(request.url)
        if (request.url === '/hmr/live') socket.end('HTTP/1.1 418 Teapot\r\n\r\n')
      })
      const hot = new WebSocket(`${url.replace('http', 'ws')}/hmr/live`)
      const [, response] = (await once(hot, 'unexpected-response')) as [
        unknown,
        { statusCode: number },
      ]
      expect(response.statusCode).toBe(418)
      hot.on('error', () => undefined).terminate()
      await using own = await SocketClient.open(`${url}/adk`)
      await own.sync()
      expect(seen).toEqual(['/hmr/live', '/adk/live'])
    } finally {
      server.close()
      server.closeAllConnections()
    }
  },
)

test.each(hosts)('[HO141] $name shows whether the store can be used', async (host) => {
  await using folder = await temporaryDirectory()
  const store = await openSqliteStore({ path: folder.file('chats.db') })
  await using server = await serve({ host, store, authenticate: () => undefined })
  const ready = async () => {
    const response = await fetch(`${server.url}/ready`)
    const body: unknown = await response.json()
    return { status: response.status, body, retryAfter: response.headers.get('retry-after') }
  }
  expect(await ready()).toEqual({ status: 200, body: { status: 'ready' }, retryAfter: null })
  await store.close()
  const refused = await ready()
  // The store does not open again by itself.
  const body = { error: { code: 'store-failed' } }
  expect(refused).toMatchObject({ status: 503, body, retryAfter: null })
  expect(JSON.stringify(refused)).not.toContain(folder.path)
  // The sweep and the reader of the audit record may report the closed store as well.
  expect(server.errors).not.toHaveLength(0)
  for (const error of server.errors) expect(String(error)).toContain('closed')
  expect((await fetch(`${server.url}/health`)).status).toBe(200)
})

test('[HO141] a server that cannot open its store, or that is closing, is not ready', async () => {
  // Below a file there can be no folder.
  const store = openSqliteStore({ path: path.join(import.meta.filename, 'chats.db') })
  await using server = await serve({ store })
  expect((await fetch(`${server.url}/ready`)).status).toBe(503)
  await using closing = await serve()
  expect((await fetch(`${closing.url}/ready`)).status).toBe(200)
  await closing.bridge.close()
  expect((await fetch(`${closing.url}/ready`)).status).toBe(503)
})
