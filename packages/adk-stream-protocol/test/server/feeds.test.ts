import { once } from 'node:events'
import { createServer } from 'node:http'
import { FunctionTool, LlmAgent } from '@google/adk'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { listen } from '../../../../test/support/listen.ts'
import { createBridge } from '../../src/server/index.ts'
import { openSqliteStore } from '../../src/store/index.ts'
import { assistant } from '../support/agents.ts'
import { codeOf } from '../support/browser.ts'
import { hosts, nodeHost } from '../support/hosts.ts'
import { readUntil } from '../support/read-feed.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { serve } from '../support/serve.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'

const pay = new FunctionTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({}),
  requireConfirmation: true,
  execute: () => ({ paid: true }),
})

describe.each(hosts)('$name', (host) => {
  test('[TU11] closing the bridge ends all feeds and rejects new ones', async () => {
    await using server = await serve({ host, recorded: false })
    const browser = server.browser()
    await browser.get('/approvals')
    const feeds = await Promise.all(
      ['/events', '/chats/chat-1/events'].map((at) => browser.get(at)),
    )
    const read = Promise.all(feeds.map((feed) => feed.text()))
    await server.bridge.close()
    // The feeds end properly.
    for (const text of await read) expect(text).toMatch(/^: keep-alive/)
    for (const address of ['/events', '/chats/chat-1/events']) {
      const refused = await browser.get(address)
      expect([refused.status, await codeOf(refused)]).toEqual([503, 'unavailable'])
    }
  })
})

test('[TU11] a server with open feeds can be closed', async () => {
  const agent = new LlmAgent({ name: 'assistant', model: 'gemini-2.5-flash' })
  const bridge = createBridge({ agent, authenticate: () => ME })
  const server = createServer(nodeHost.mount(bridge))
  const port = await listen(server)
  // Otherwise the connection would wait for another request, and the server for the connection.
  const headers = { connection: 'close' }
  const feed = await fetch(`http://127.0.0.1:${port}/events`, { headers })
  const closed = once(server, 'close')
  server.close()
  await bridge.close()
  expect(await feed.text()).toMatch(/^: keep-alive/)
  await closed
})

const ME = { id: 'hanako' }

describe.each(hosts)('$name', (host) => {
  test('[EV140] a feed ends with the credentials of its reader', async () => {
    let valid = true
    let fault: Error | undefined
    let checks = 0
    await using server = await serve({
      host,
      recorded: false,
      authenticate: () => {
        checks += 1
        if (fault) throw fault
        return valid ? ME : undefined
      },
      limits: { reauthenticateMs: 10, maxFeedsPerPrincipal: 2 },
    })
    const browser = server.browser()
    const addresses = ['/events', '/chats/chat-1/events']
    const feeds = await Promise.all(addresses.map((at) => browser.get(at)))
    const read = Promise.all(feeds.map((feed) => feed.text()))
    // While `authenticate` fails, they stay open.
    fault = new Error('the directory is down')
    const before = checks
    await expect.poll(() => checks).toBeGreaterThan(before + 4)
    fault = undefined
    valid = false
    for (const text of await read)
      expect(text).toMatch(/\n\ndata: \{"error":\{"code":"unauthenticated",.*\}\}\n\n$/)
    // New feeds can be opened.
    valid = true
    const again = await Promise.all(addresses.map((at) => browser.get(at)))
    expect(again.map(({ status }) => status)).toEqual([200, 200])
    for (const feed of again) await feed.body?.cancel()
  })
})

test('[EV140] [WS16] credentials with an expiry time are checked at that time', async () => {
  // A feed and a socket, each with credentials that expire soon and are not renewed.
  const ends = new Map<string, number>()
  await using server = await serve({
    recorded: false,
    authenticate: ({ url: { pathname } }) => {
      const expiresAt = ends.get(pathname) ?? Date.now() + 500
      ends.set(pathname, expiresAt)
      return { ...ME, expiresAt }
    },
    limits: { reauthenticateMs: 3_600_000 },
  })
  await using socket = await SocketClient.open(server.url)
  const feed = await server.browser().get('/events')
  expect(await feed.text()).toContain('"unauthenticated"')
  expect(await socket.closed).toBe(4401)
  expect(ends.size).toBe(2)
  expect(Date.now()).toBeGreaterThanOrEqual(Math.max(...ends.values()))
})

test('[EV140] a feed reports nothing more for a role that was withdrawn', async () => {
  const roles = ['approver']
  let checks = 0
  await using server = await serve({
    agent: (model) => assistant(model, { tools: [pay] }),
    approvals: { pay: { deciders: { roles: ['approver'] } } },
    recorded: false,
    authenticate: ({ headers }) => {
      checks += 1
      const id = headers.get('x-api-key') ?? ''
      return { id, ...(id === 'taro' && { roles: [...roles] }) }
    },
    limits: { reauthenticateMs: 10 },
  })
  const browser = server.browser()
  const taro = { 'x-api-key': 'taro' }
  const hanako = { 'x-api-key': 'hanako' }
  const feed = await browser.get('/events', taro)
  const received = readUntil(feed, ({ type }) => type === 'chat')
  const ask = async (chatId: string) => {
    const messages = [{ role: 'user', content: '[[call pay {}]]' }]
    await (await browser.post('/stream', { id: chatId, messages }, hanako)).text()
  }
  await ask('chat-1')
  roles.pop()
  // Only the feed is checked now. At the second check, the first one has taken effect.
  const before = checks
  await expect.poll(() => checks).toBeGreaterThan(before + 1)
  await ask('chat-2')
  // An event of their own chat, after which all earlier events have arrived.
  const messages = [{ role: 'user', content: '[[say Hello.]]' }]
  await (await browser.post('/stream', { id: 'own', messages }, taro)).text()
  expect((await received).filter(({ type }) => type === 'approval')).toHaveLength(1)
})

test('[EV1] [EV4] changes of approvals on another server are reported, each once and in order', async () => {
  await using folder = await temporaryDirectory()
  await using here = await openSqliteStore({ path: folder.file('shared.db') })
  await using there = await openSqliteStore({ path: folder.file('shared.db') })
  const options = {
    agent: (model: Parameters<typeof assistant>[0]) => assistant(model, { tools: [pay] }),
    authenticate: () => ME,
    recorded: false,
    limits: { sweepMs: 20 },
  }
  await using one = await serve({ ...options, store: here })
  await using two = await serve({ ...options, store: there })
  const [atOne, atTwo] = [one.browser(), two.browser()]
  const feeds = await Promise.all([atOne.get('/chats/chat-1/events'), atOne.get('/events')])
  const received = feeds.map((feed) => readUntil(feed, ({ state }) => state === 'succeeded'))
  await (await atOne.say('[[call pay {}]][[then]][[say Paid.]]')).text()
  const { approvals } = (await (await atTwo.get('/approvals')).json()) as {
    approvals: { id: string }[]
  }
  const id = approvals[0]?.id
  expect((await atTwo.post(`/approvals/${id}`, { approved: true })).status).toBe(200)
  for (const events of await Promise.all(received)) {
    const changes = events.filter(({ type }) => type === 'approval')
    expect(changes.map(({ approvalId, state }) => [approvalId, state])).toEqual(
      ['requested', 'approved', 'executing', 'succeeded'].map((state) => [id, state]),
    )
  }
})

test('[EV4] a new feed does not report earlier decisions of other servers', async () => {
  await using folder = await temporaryDirectory()
  await using here = await openSqliteStore({ path: folder.file('shared.db') })
  await using there = await openSqliteStore({ path: folder.file('shared.db') })
  const options = {
    agent: (model: Parameters<typeof assistant>[0]) => assistant(model, { tools: [pay] }),
    authenticate: () => ME,
    recorded: false,
  }
  await using two = await serve({ ...options, store: there })
  await (await two.browser().say('[[call pay {}]][[then]][[say Paid.]]')).text()
  await using one = await serve({ ...options, store: here, limits: { sweepMs: 20 } })
  const feed = await one.browser().get('/events')
  const received = readUntil(feed, ({ state }) => state === 'denied')
  const { approvals } = (await (await two.browser().get('/approvals')).json()) as {
    approvals: { id: string }[]
  }
  await two.browser().post(`/approvals/${approvals[0]?.id}`, { approved: false })
  expect((await received).filter(({ type }) => type === 'approval')).toMatchObject([
    { state: 'denied' },
  ])
})
