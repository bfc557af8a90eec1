import { LlmAgent } from '@google/adk'
import { expect, test } from 'vitest'

import { type BridgeOptions, createBridge, signedCookie } from '../../src/server/index.ts'
import { trustProxies } from '../../src/server/http/hosts-and-proxies.ts'
import { codeOf } from '../support/browser.ts'
import { serve, type ServeOptions } from '../support/serve.ts'
import { refusedUpgrade, SocketClient } from './support/socket-client.ts'

/** The API key is the id of the principal. */
const anyone: ServeOptions = {
  authenticate: ({ headers }) => ({ id: headers.get('x-api-key') ?? '' }),
}

function as(id: string, more: Record<string, string> = {}): { headers: Record<string, string> } {
  return { headers: { 'x-api-key': id, ...more } }
}

function from(id: string, address: string): { headers: Record<string, string> } {
  return as(id, { 'x-forwarded-for': address })
}

test('[WS143] the total number of sockets is limited', async () => {
  await using server = await serve({ ...anyone, limits: { maxSockets: 2 } })
  await using first = await SocketClient.open(server.url, as('hanako'))
  await using second = await SocketClient.open(server.url, as('taro'))
  const refused = await refusedUpgrade(server.url, as('jiro'))
  expect(refused).toMatchObject({ status: 503, code: 'overloaded', retryAfterSeconds: 5 })
  second.socket.close()
  await second.closed
  await first.sync()
  await first.sync()
  await using third = await SocketClient.open(server.url, as('jiro'))
  await third.sync()
})

test('[WS143] the number of sockets of an IP address is limited; only a trusted proxy can set the address', async () => {
  const limits = { maxSocketsPerAddress: 1 }
  await using server = await serve({ ...anyone, limits, trustedProxies: 1 })
  await using first = await SocketClient.open(server.url, from('hanako', '192.0.2.1'))
  const refused = await refusedUpgrade(server.url, from('taro', '192.0.2.1'))
  expect(refused).toMatchObject({ status: 429, code: 'too-many-sockets', retryAfterSeconds: 5 })
  // The client wrote the entries before the one of the proxy.
  const forged = await refusedUpgrade(server.url, from('taro', '203.0.113.9, 192.0.2.1'))
  expect(forged).toMatchObject({ status: 429 })
  await using other = await SocketClient.open(server.url, from('taro', '192.0.2.2'))
  await other.sync()
  await first.sync()

  // Without a trusted proxy, the header is ignored, and local addresses are not counted, because they may be a proxy.
  await using open = await serve({ ...anyone, limits })
  await using one = await SocketClient.open(open.url, from('hanako', '192.0.2.1'))
  await using two = await SocketClient.open(open.url, from('taro', '192.0.2.1'))
  await Promise.all([one.sync(), two.sync()])
})

const CASES: readonly [Parameters<typeof trustProxies>[0], string, string, string | undefined][] = [
  [undefined, '192.0.2.1', '203.0.113.9', '192.0.2.1'],
  [undefined, '10.0.0.7', '203.0.113.9', undefined],
  [1, '10.0.0.7', '203.0.113.9', '203.0.113.9'],
  [2, '10.0.0.7', '198.51.100.4, 203.0.113.9, 10.0.0.8', '203.0.113.9'],
  [1, '10.0.0.7', '', '10.0.0.7'],
  [['10.0.0.0/8'], '10.0.0.7', '198.51.100.4, 203.0.113.9, 10.1.2.3', '203.0.113.9'],
  [['10.0.0.0/8'], '192.0.2.1', '203.0.113.9', '192.0.2.1'],
  [['2001:db8::1'], '2001:db8::1', '2001:db8::2', '2001:db8::2'],
]

test.each(CASES)(
  '[WS143] with proxies %j, %s with %j is %s',
  (trusted, address, forwardedFor, client) => {
    const proxies = trustProxies(trusted)
    const headers = new Headers(forwardedFor === '' ? {} : { 'x-forwarded-for': forwardedFor })
    const url = new URL('http://localhost/')
    const exchange = { method: 'GET', url, headers, address, readBody: () => Promise.reject() }
    expect(proxies.clientOf(proxies.read(exchange))).toBe(client)
  },
)

test('[TU140] the total number of running turns is limited', async () => {
  await using server = await serve({ ...anyone, limits: { maxTurns: 1 } })
  const browser = server.browser()
  const say = (id: string, text: string) =>
    browser.post(
      '/stream',
      { id: 'chat-1', messages: [{ role: 'user', content: text }] },
      { 'x-api-key': id },
    )
  const first = await say('hanako', '[[say One.]][[wait gate]]')
  const refused = await say('taro', '[[say Two.]]')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '1'])
  expect(await codeOf(refused)).toBe('overloaded')
  server.emulator.release('gate')
  expect(await first.text()).toContain('One.')
  expect(await (await say('taro', '[[say Two.]]')).text()).toContain('Two.')
})

test('[SE4] behind TLS the cookie is Secure and bound to its host; only a trusted proxy can report TLS', async () => {
  const authenticate = signedCookie({ secret: 'a secret of sixteen bytes' })
  const headers = { 'x-forwarded-proto': 'https' }
  await using server = await serve({ authenticate, trustedProxies: 1 })
  const cookieOf = async (url: string, more: Record<string, string> = {}) =>
    (await fetch(`${url}/chats`, { headers: { ...headers, ...more } })).headers.get('set-cookie')
  const cookie = (await cookieOf(server.url)) ?? ''
  expect(cookie).toMatch(/^__Host-adk_principal=\S+; Path=\/; HttpOnly; .*; Secure$/)
  // The cookie identifies the browser, also on a socket. A cookie that another host could have set is ignored.
  const pair = cookie.split(';', 1)[0] ?? ''
  expect(await cookieOf(server.url, { cookie: pair })).toBeNull()
  await using socket = await SocketClient.open(server.url, {
    headers: { ...headers, cookie: pair },
  })
  await socket.sync()
  const unbound = await cookieOf(server.url, { cookie: pair.replace('__Host-', '') })
  expect(unbound).not.toBeNull()

  await using bare = await serve({ authenticate })
  expect(await cookieOf(bare.url)).toMatch(/^adk_principal=[^;]+; Path=\/; HttpOnly; (?!.*Secure)/)
})

test.each([-1, 1.5, ['not an address'], ['10.0.0.0/33'], 'all'])(
  '[WS143] trusted proxies %j are rejected by createBridge',
  (trustedProxies) => {
    const agent = new LlmAgent({ name: 'assistant', model: 'gemini-2.5-flash' })
    // As JavaScript code without types could.
    const options = { agent, trustedProxies } as BridgeOptions
    expect(() => createBridge(options)).toThrow(/`trustedProxies.*must be/)
  },
)
