import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { setImmediate as nextTurn } from 'node:timers/promises'

import { expect, test, vi } from 'vitest'
import { WebSocket } from 'ws'

import { ProtocolError, signedCookie } from '../../src/server/index.ts'
import { CLOSE_CODES } from '../../src/protocol/index.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { defer } from '../support/agents.ts'
import { hosts } from '../support/hosts.ts'
import { serve, type ServeOptions } from '../support/serve.ts'
import { refusedUpgrade, SocketClient, toLiveUrl } from './support/socket-client.ts'
import { mayRetry } from '../../src/protocol/server-frame.ts'

const hanako: ServeOptions = { authenticate: () => ({ id: 'hanako' }) }

test.each(['https://evil.example', 'null', 'http://127.0.0.1.evil.example'])(
  '[WS3] a page of the origin %s is rejected before the upgrade, also with credentials',
  async (origin) => {
    let asked = 0
    const authenticate = () => ({ id: `hanako-${(asked += 1)}` })
    await using server = await serve({ authenticate })
    expect(await refusedUpgrade(server.url, { headers: { origin } })).toMatchObject({
      status: 403,
      code: 'forbidden-origin',
    })
    expect(asked).toBe(0)
  },
)

test("[WS3] the server's own pages and allowed origins are let in", async () => {
  await using server = await serve({ ...hanako, allowedOrigins: ['https://app.example'] })
  for (const origin of [server.url, 'https://app.example']) {
    const protocols = 'adk-stream.v1'
    await using client = await SocketClient.open(server.url, { headers: { origin }, protocols })
    expect(await client.nextOf('hello')).toMatchObject({ protocol: 'adk-stream.v1' })
  }
})

test('[WS3] without credentials, or with wrong ones, there is no upgrade', async () => {
  await using testBridge = await TestBridge.open()
  const none = await refusedUpgrade(testBridge.url)
  expect(none).toMatchObject({ status: 401, code: 'unauthenticated' })
  expect(none.message).toContain('Sign in')
  const wrong = await refusedUpgrade(testBridge.url, { headers: { 'x-api-key': 'mallory' } })
  expect(wrong).toMatchObject({ status: 401, code: 'unauthenticated' })
})

test('[WS3] an `authenticate` that throws rejects the upgrade, without details', async () => {
  await using server = await serve({
    authenticate: () => Promise.reject(new Error('secret database')),
  })
  const refusal = await refusedUpgrade(server.url)
  expect(refusal).toMatchObject({ status: 500, code: 'internal' })
  expect(JSON.stringify(refusal)).not.toContain('secret')
  expect(server.errors).toHaveLength(1)
})

test('[WS3] the upgrade is accepted with our subprotocol or none, and rejected with others only', async () => {
  await using server = await serve(hanako)
  await using ours = await SocketClient.open(server.url, { protocols: ['other', 'adk-stream.v1'] })
  expect(ours.socket.protocol).toBe('adk-stream.v1')
  await using none = await SocketClient.open(server.url)
  expect(none.socket.protocol).toBe('')
  const refusal = await refusedUpgrade(server.url, { protocols: ['graphql-ws', 'other'] })
  expect(refusal).toMatchObject({ status: 400, code: 'bad-request' })
  expect(refusal.message).toContain('adk-stream.v1')
})

test('[WS3] only /live accepts sockets, and it accepts nothing else', async () => {
  await using server = await serve(hanako)
  expect(await refusedUpgrade(`${server.url}/chats`)).toMatchObject({ status: 404 })
  const response = await fetch(`${server.url}/live`)
  expect(response.status).toBe(426)
  expect(response.headers.get('upgrade')).toBe('websocket')
  expect(await response.json()).toMatchObject({ error: { code: 'upgrade-required' } })
  expect(server.bridge.handles('/live')).toBe(true)
})

test('[WS3] an invalid upgrade request gets a response, and the server continues', async () => {
  await using server = await serve(hanako)
  const status = await new Promise<number>((resolve, reject) => {
    const headers = { connection: 'Upgrade', upgrade: 'h2c' }
    const sent = httpRequest(`${server.url}/live`, { headers }, (response) => {
      response.resume()
      resolve(response.statusCode ?? 0)
    })
    sent.on('error', reject)
    sent.end()
  })
  expect(status).toBe(400)
  await using client = await SocketClient.open(server.url)
  await client.sync()
})

test('[WS3] a browser without a cookie gets one in the handshake, and is identified by it', async () => {
  const asked: string[] = []
  const known = signedCookie({ secret: 'a secret of sixteen bytes' })
  await using server = await serve({
    authenticate: (request) => {
      asked.push(request.url.pathname)
      return known(request)
    },
    limits: { reauthenticateMs: 10 },
  })
  const socket = new WebSocket(toLiveUrl(server.url))
  const cookie = await new Promise<string>((resolve) => {
    socket.on('upgrade', ({ headers }) => resolve(headers['set-cookie']?.[0] ?? ''))
  })
  expect(cookie).toContain('HttpOnly')
  const headers = { cookie: cookie.split(';', 1)[0] ?? '' }
  await using client = await SocketClient.open(server.url, { headers })
  client.say('[[say Hello.]]')
  await client.nextOf('end', 'r1')
  const browser = server.browser()
  browser.cookie = headers.cookie
  expect((await browser.messages()).messages).toHaveLength(2)
  // The client keeps the cookie of the handshake, so its socket passes the next checks of its credentials.
  const { length } = asked
  while (asked.length < length + 10) await new Promise(setImmediate)
  expect(socket.readyState).toBe(WebSocket.OPEN)
  expect(client.socket.readyState).toBe(WebSocket.OPEN)
  socket.terminate()
})

test.each(hosts)('[WS20] sockets open with $name, at the path of the bridge', async (host) => {
  await using server = await serve({ ...hanako, host })
  await using client = await SocketClient.open(server.url)
  client.say('[[say Hello.]]')
  await client.nextOf('end', 'r1')
  expect(client.text()).toBe('Hello.')
  if (host.path === '') return
  const elsewhere = server.url.replace(host.path, '')
  expect(await refusedUpgrade(elsewhere)).toMatchObject({ status: 404 })
})

test('[WS16] the socket closes when its credentials end, also during a reply', async () => {
  let valid = true
  const authenticate = () => (valid ? { id: 'hanako' } : undefined)
  await using server = await serve({ authenticate, limits: { reauthenticateMs: 20 } })
  await using client = await SocketClient.open(server.url)
  client.say('[[say One.]][[wait never]]')
  await client.untilText('One.')
  valid = false
  expect(await client.closed).toBe(4401)
  const request = await server.emulator.nextRequest()
  await request.done
})

test('[WS16] the socket closes when its credentials identify another principal', async () => {
  let id = 'hanako'
  await using server = await serve({
    authenticate: () => ({ id }),
    limits: { reauthenticateMs: 20 },
  })
  await using client = await SocketClient.open(server.url)
  id = 'taro'
  expect(await client.closed).toBe(4401)
})

test('[WS16] the credentials are checked again before a decision in a message is accepted', async () => {
  let valid = true
  await using testBridge = await TestBridge.open({
    authenticate: () => (valid ? { id: 'hanako' } : undefined),
    limits: { reauthenticateMs: 3_600_000 },
  })
  await using client = await SocketClient.open(testBridge.url)
  client.say(`${callPayment(50)}[[then]][[say Paid.]]`)
  await client.nextOf('end', 'r1')
  const asked = client.chunks().find(({ type }) => type === 'tool-approval-request')
  const messageId = client.chunks().find(({ type }) => type === 'start')?.['messageId']
  const part = {
    type: 'tool-process_payment',
    toolCallId: asked?.['toolCallId'],
    state: 'approval-responded',
    input: {},
    approval: { id: asked?.['approvalId'], approved: true },
  }
  valid = false
  const messages = [{ id: messageId, role: 'assistant', parts: [part] }]
  client.send({ type: 'send', requestId: 'r2', id: 'chat-1', messageId, messages })
  expect(await client.closed).toBe(4401)
  expect(testBridge.wallet.payments).toEqual([])
})

test('[WS18] a client that disconnects during authentication does not count as a socket', async () => {
  const asked = defer()
  const known = defer()
  let first = true
  await using server = await serve({
    authenticate: async () => {
      if (first) {
        first = false
        asked.resolve()
        await known.promise
      }
      return { id: 'hanako' }
    },
    limits: { maxSocketsPerPrincipal: 1 },
  })
  const gone = connect(Number(new URL(server.url).port), '127.0.0.1')
  gone.write(HANDSHAKE)
  await asked.promise
  const closed = once(gone, 'close')
  gone.resetAndDestroy()
  await closed
  // The server is in this process, and notices the reset within a few turns of the event loop.
  for (let turn = 0; turn < 20; turn += 1) await nextTurn()
  known.resolve()
  await using client = await SocketClient.open(server.url)
  client.say('[[say Hello.]]')
  await client.nextOf('end', 'r1')
  expect(client.text()).toBe('Hello.')
})

const HANDSHAKE = [
  'GET /live HTTP/1.1',
  'host: localhost',
  'connection: Upgrade',
  'upgrade: websocket',
  'sec-websocket-version: 13',
  'sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==',
  '',
  '',
].join('\r\n')

test('[WS16] while `authenticate` fails, the socket stays open and decisions are not accepted', async () => {
  let fault: Error | undefined
  await using testBridge = await TestBridge.open({
    authenticate: () => {
      if (fault) throw fault
      return { id: 'hanako' }
    },
    limits: { reauthenticateMs: 3_600_000 },
  })
  await using client = await SocketClient.open(testBridge.url)
  client.say(`${callPayment(50)}[[then]][[say Paid.]]`)
  await client.nextOf('end', 'r1')
  const asked = client.chunks().find(({ type }) => type === 'tool-approval-request')
  const decide = (decisionId: string) => {
    const approvalId = asked?.['approvalId']
    client.send({ type: 'decide', id: 'chat-1', decisionId, approvalId, approved: true })
  }
  fault = new Error('the directory is down')
  decide('d1')
  expect(await client.nextOf('decided')).toMatchObject({ ok: false, code: 'internal' })
  expect(testBridge.errors).toEqual([fault])
  // The credentials are checked again for each decision.
  fault = new ProtocolError('unauthenticated')
  decide('d2')
  expect(await client.closed).toBe(4401)
  expect(testBridge.wallet.payments).toEqual([])
})

test('[AP801] a request whose `authenticate` hangs is rejected, and the error names the function', async () => {
  const errors: unknown[] = []
  const called = defer()
  await using testBridge = await TestBridge.open({
    authenticate: () => {
      vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
      called.resolve()
      return new Promise(() => undefined)
    },
    onError: (error) => errors.push(error),
  })
  const response = fetch(`${testBridge.url}/chats`)
  await called.promise
  vi.advanceTimersByTime(5_000)
  vi.useRealTimers()
  expect((await response).status).toBe(500)
  expect(errors.map(String)).toEqual(['Error: `authenticate` took longer than 5000 ms.'])
})

function as(id: string): { headers: Record<string, string> } {
  return { headers: { 'x-api-key': id } }
}

test('[WS18] the number of sockets of a principal is limited; other principals are not affected', async () => {
  await using server = await serve({
    authenticate: ({ headers }) => ({ id: headers.get('x-api-key') ?? '' }),
    limits: { maxSocketsPerPrincipal: 2 },
  })
  await using first = await SocketClient.open(server.url, as('hanako'))
  await using second = await SocketClient.open(server.url, as('hanako'))
  expect(await refusedUpgrade(server.url, as('hanako'))).toMatchObject({
    status: 429,
    code: 'too-many-sockets',
  })
  await using other = await SocketClient.open(server.url, as('taro'))
  await other.sync()
  second.socket.close()
  await second.closed
  await first.sync()
  await first.sync()
  await using third = await SocketClient.open(server.url, as('hanako'))
  await third.sync()
})

test('[WS18] the number of concurrent replies on a socket is limited', async () => {
  await using server = await serve({ ...hanako, limits: { maxRequestsPerSocket: 2 } })
  await using client = await SocketClient.open(server.url)
  client.say('[[say One.]][[wait gate]]', 'r1', 'chat-1')
  client.say('[[say Two.]][[wait gate]]', 'r2', 'chat-2')
  client.say('[[say Three.]]', 'r3', 'chat-3')
  expect(await client.nextOf('error', 'r3')).toMatchObject({ code: 'too-many-turns' })
  await client.untilText('One.', 'r1')
  client.resume('r4', 'chat-1')
  expect(await client.nextOf('error', 'r4')).toMatchObject({ code: 'too-many-turns' })
  server.emulator.release('gate')
  await client.nextOf('end', 'r1')
  client.say('[[say Three.]]', 'r5', 'chat-3')
  await client.nextOf('end', 'r5')
})

test('[WS19] a closing bridge ends its replies, then its sockets, and accepts no new ones', async () => {
  await using server = await serve(hanako)
  await using client = await SocketClient.open(server.url)
  await using idle = await SocketClient.open(server.url)
  client.say('[[say One.]][[wait never]]')
  await client.untilText('One.')
  await server.bridge.close({ drainMs: 0 })
  expect(await client.closed).toBe(1001)
  expect(await idle.closed).toBe(1001)
  expect(client.of('r1').at(-1)?.type).toBe('end')
  expect(await client.faults()).toEqual([])
  expect(await refusedUpgrade(server.url)).toMatchObject({ status: 503, code: 'unavailable' })
})

test('[WS22] PROTOCOL.md lists every close code, with what a client does', async () => {
  const protocol = await readFile(new URL('../../../../PROTOCOL.md', import.meta.url), 'utf8')
  const rows = protocol.matchAll(/^\| (\d{4}) \| `([\w-]+)` +\|[^|]*\| `(\w+)` +\|$/gm)
  const table = [...rows].map(([, code, name, retry]) => ({ code: Number(code), name, retry }))
  const known = Object.entries(CLOSE_CODES).map(([name, entry]) => ({ name, ...entry }))
  expect(table).toEqual(known)
  for (const { code, retry } of known) expect(mayRetry(code)).toBe(retry)
  // 1006 is the code of a lost connection. It is never sent.
  expect(mayRetry(1006)).toBe('later')
})
