import { expect, test } from 'vitest'

import { times } from '../../../../test/support/long-run.ts'
import { anyOf, apiKey, signedCookie } from '../../src/server/index.ts'
import { codeOf, type Browser } from '../support/browser.ts'
import { textOf } from '../support/chat-probe.ts'
import { findLeaks } from '../support/leaks.ts'
import { assistant, tool } from '../support/agents.ts'
import { serve } from '../support/serve.ts'

test('[SE2] a chat of another principal cannot be seen, resumed, stopped, changed or deleted', async () => {
  await using server = await serve({ disconnectGraceMs: 60_000 })
  const owner = server.browser()
  const thief = server.browser()
  await (await owner.say('[[say Private.]]', 'shared-id')).text()
  const running = await owner.say('[[say Running.]][[wait gate]][[say End.]]', 'shared-id')

  expect((await thief.messages('shared-id')).messages).toEqual([])
  expect((await thief.get('/stream/shared-id/stream')).status).toBe(204)
  expect((await thief.stop('shared-id')).status).toBe(204)
  expect((await thief.delete('shared-id')).status).toBe(204)
  const own = await (await thief.say('[[say Mine.]]', 'shared-id')).text()
  expect(own).toContain('Mine.')
  expect(own).not.toContain('Private')

  server.emulator.release('gate')
  expect(await running.text()).toContain('End.')
  const { messages } = await owner.messages('shared-id')
  expect(messages.map(textOf)).toEqual([
    '[[say Private.]]',
    'Private.',
    '[[say Running.]][[wait gate]][[say End.]]',
    'Running.End.',
  ])
  const history = JSON.stringify(server.emulator.requests.at(-1)?.body)
  expect(history).not.toContain('Private')
})

test('[SE1] every route except the public ones needs a principal', async () => {
  await using server = await serve({ authenticate: () => undefined })
  const browser = server.browser()
  const refused = [
    await browser.say('Hello'),
    await browser.get('/stream/c/stream'),
    await browser.get('/chats/c/messages'),
    await browser.stop('c'),
    await browser.delete('c'),
  ]
  for (const response of refused) {
    expect(response.status).toBe(401)
    expect(await codeOf(response)).toBe('unauthenticated')
  }
  expect((await browser.get('/health')).status).toBe(200)
  expect(await (await browser.get('/')).json()).toEqual({
    service: 'adk-stream-protocol',
    status: 'running',
  })
})

test.each([
  ['a number as its id', { id: 7 }, 'whose id is a string of 1 to 256 characters'],
  ['a text as its roles', { id: 'hanako', roles: 'manager' }, 'whose roles are a list of strings'],
])('[SE1] a principal with %s is rejected', async (_name, principal, sentence) => {
  // JavaScript can return anything.
  await using server = await serve({ authenticate: () => principal as never })
  expect((await server.browser().get('/chats')).status).toBe(500)
  expect(server.errors.map(String)).toEqual([expect.stringContaining(sentence)])
})

test('[MP8] an `exposeState` that returns a promise exposes nothing', async () => {
  const remember = tool('remember', (_args, context) => context?.state.set('secret', 'hunter2'))
  await using server = await serve({
    agent: (model) => assistant(model, { tools: [remember] }),
    // JavaScript can return anything.
    exposeState: (() => Promise.resolve(false)) as never,
  })
  const body = await (await server.browser().say('[[call remember {}]][[then]][[say Yes.]]')).text()
  expect(body).toContain('Yes.')
  expect(body).not.toContain('hunter2')
})

test('[SE1] a message cannot set the principal', async () => {
  const principals: string[] = []
  await using server = await serve({
    onChunk: (_chunk, { principalId }) => principals.push(principalId),
  })
  const browser = server.browser()
  const response = await browser.say('[[say Hi.]]', 'chat-1', {
    userId: 'victim',
    principalId: 'victim',
    principal: { id: 'victim' },
  })
  await response.text()
  expect(principals.length).toBeGreaterThan(0)
  for (const id of principals) expect(id).toMatch(/^browser-/)
})

test('[SE4] a changed cookie is ignored', async () => {
  await using server = await serve()
  const owner = server.browser()
  await (await owner.say('[[say Private.]]')).text()
  const [name = '', value = ''] = owner.cookie.split('=')
  const [id = '', signature = ''] = value.split('.')
  const flipped = `${signature.startsWith('A') ? 'B' : 'A'}${signature.slice(1)}`
  const forged = [
    `${name}=${id}.${flipped}`,
    `${name}=${id}x.${signature}`,
    `${name}=${id}.`,
    `${name}=${id}`,
    `${name}=.${signature}`,
    `${name}=`,
    `${name}=${id}.${signature.slice(0, -1)}`,
    `x${name}=${value}`,
  ]
  for (const cookie of forged) {
    const thief = server.browser()
    thief.cookie = cookie
    expect((await thief.messages()).messages).toEqual([])
    // It counts as a new browser and gets a new cookie.
    expect(thief.cookie).toMatch(/^adk_principal=browser-/)
    expect(thief.cookie).not.toContain(id)
  }
  const same = server.browser()
  same.cookie = owner.cookie
  expect((await same.messages()).messages).toHaveLength(2)
})

test('[SE4] an empty API key and a short cookie secret are refused', async () => {
  expect(() => apiKey({ '': 'bot' })).toThrow('non-empty key')
  expect(() => apiKey({ key: '' })).toThrow('non-empty principal id')
  const errors: unknown[] = []
  await using server = await serve({
    authenticate: signedCookie({ secret: 'short' }),
    onError: (error) => void errors.push(error),
  })
  expect((await server.browser().say('Hello')).status).toBe(500)
  expect(String(errors[0])).toContain('at least 16 bytes')
})

test('[SE4] a wrong API key is rejected, also with a valid cookie', async () => {
  const secret = 'a secret of sixteen bytes'
  await using server = await serve({
    authenticate: anyOf(apiKey({ 'right-key': 'bot' }), signedCookie({ secret })),
  })
  const browser = server.browser()
  expect((await browser.get('/chats/c/messages')).status).toBe(200)
  expect(browser.cookie).not.toBe('')
  for (const key of ['wrong', '', 'right-key ', 'RIGHT-KEY', 'right-key, right-key']) {
    const response = await browser.get('/chats/c/messages', { 'x-api-key': key })
    if (key.trim() === 'right-key') continue
    expect(response.status).toBe(401)
  }
  const right = await browser.get('/chats/c/messages', { 'x-api-key': 'right-key' })
  expect(right.status).toBe(200)
})

const ORIGIN = 'https://app.example.com'

test.each([
  'https://evil.example.com',
  'null',
  'https://app.example.com.evil.com',
  'http://app.example.com',
  'https://app.example.com:8443',
  'https://APP.example.com/',
  'file://',
  'not a url',
])('[SE3] the origin %s is rejected by every route', async (origin) => {
  await using server = await serve({ allowedOrigins: [ORIGIN] })
  const browser = server.browser()
  const headers = { origin }
  const refused = [
    await browser.post('/stream', {}, headers),
    await browser.get('/chats/c/messages', headers),
    await browser.get('/stream/c/stream', headers),
    await browser.fetch(`${server.url}/stream`, { method: 'OPTIONS', headers }),
    await browser.fetch(`${server.url}/chats/c`, { method: 'DELETE', headers }),
  ]
  for (const response of refused) {
    expect(response.status).toBe(403)
    expect(response.headers.get('access-control-allow-origin')).toBeNull()
    expect(response.headers.get('set-cookie')).toBeNull()
    expect(await codeOf(response)).toBe('forbidden-origin')
  }
})

test('[SE3] an allowed origin gets CORS headers, also on errors and streams', async () => {
  await using server = await serve({ allowedOrigins: [ORIGIN] })
  const browser = server.browser()
  const headers = { origin: ORIGIN }
  const message = { role: 'user', parts: [{ type: 'text', text: '[[say Hi.]]' }] }
  const answers = [
    await browser.post('/stream', '{', headers),
    await browser.get('/nowhere', headers),
    await browser.fetch(`${server.url}/stream`, { method: 'PUT', headers }),
    await browser.post('/stream', { id: 'c', messages: [message] }, headers),
    await browser.fetch(`${server.url}/stream`, { method: 'OPTIONS', headers }),
  ]
  expect(answers.map(({ status }) => status)).toEqual([400, 404, 405, 200, 204])
  for (const response of answers) {
    expect(response.headers.get('access-control-allow-origin')).toBe(ORIGIN)
    expect(response.headers.get('access-control-allow-credentials')).toBe('true')
    expect(response.headers.get('access-control-expose-headers')).toBe(
      'date, adk-principal, adk-message',
    )
    expect(response.headers.get('vary')).toContain('Origin')
    await response.text()
  }
})

test("[SE3] the server's own origin, and none at all, are let in", async () => {
  await using server = await serve()
  const browser = server.browser()
  const own = await browser.get('/chats/c/messages', { origin: server.url })
  expect(own.status).toBe(200)
  expect(own.headers.get('access-control-allow-origin')).toBeNull()
  expect((await browser.get('/chats/c/messages')).status).toBe(200)
})

test.each([
  '/..%2f..%2fetc%2fpasswd',
  '/chats/%2e%2e%2f/messages',
  '/chats/%00/messages',
  '/chats/%E0%A4%A/messages',
  '/chats//messages',
  `/chats/${'x'.repeat(200)}/messages`,
  '/chats/a%0d%0aset-cookie:x/messages',
  '/stream/%7B%7D/stream',
])('[RQ11] the path %s has no chat', async (path) => {
  await using server = await serve()
  const response = await server.browser().get(path)
  const body = await response.text()
  expect([400, 404]).toContain(response.status)
  expect(response.headers.get('content-type')).toContain('application/json')
  expect(findLeaks(body)).toEqual([])
})

test('[SE5] principals whose turns have ended use no memory', async () => {
  await using server = await serve({
    limits: { maxTurnsPerPrincipal: 1 },
    respond: () => [{ type: 'say', text: 'ok' }],
  })
  const flood = async (count: number): Promise<void> => {
    for (let batch = 0; batch < count; batch += 20) {
      const browsers = Array.from({ length: 20 }, () => server.browser())
      await Promise.all(browsers.map(sayAndForget))
    }
  }
  // The same principal may start one turn after another: the count returns to zero.
  const regular = server.browser()
  for (let turn = 0; turn < 5; turn += 1) await sayAndForget(regular)
  await flood(times(40, 100))
  expect((await regular.messages()).messages).toHaveLength(10)
  expect(await server.bridge.close()).toBeUndefined()
})

async function sayAndForget(browser: Browser): Promise<void> {
  const response = await browser.say('Hello')
  expect(response.status).toBe(200)
  await response.text()
}
