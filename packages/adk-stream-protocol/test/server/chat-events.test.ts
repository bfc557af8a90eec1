import { FunctionTool } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { openSqliteStore } from '../../src/store/index.ts'
import { assistant } from '../support/agents.ts'
import { codeOf } from '../support/browser.ts'
import { toolParts } from '../support/chat-probe.ts'
import { readUntil } from '../support/read-feed.ts'
import { serve } from '../support/serve.ts'
import { readFrames } from '../support/wire-rules.ts'

const pay = new FunctionTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({}),
  requireConfirmation: true,
  execute: () => ({ paid: true }),
})

test('[EV1] the feed of a chat reports its turns and approvals, and not those of other chats', async () => {
  await using server = await serve({
    agent: (model) => assistant(model, { tools: [pay] }),
    recorded: false,
  })
  const browser = server.browser()
  const say = (id: string, content: string) =>
    browser.post('/stream', { chatId: id, messages: [{ role: 'user', content }] })
  await (await say('other', '[[say Hi.]]')).text()
  const feed = await browser.get('/chats/chat-1/events')
  expect(feed.headers.get('content-type')).toBe('text/event-stream')
  // The call starts with its decision, before the resumed turn can be read.
  const seen = readUntil(
    feed,
    (_event, all) =>
      all.some(({ state }) => state === 'succeeded') &&
      all.filter(({ type }) => type === 'turn').length === 2,
  )
  await (await say('other', '[[say Hi.]]')).text()
  await (await say('chat-1', '[[call pay {}]][[then]][[say Paid.]]')).text()
  const { approvals } = (await (await browser.get('/approvals')).json()) as {
    approvals: { id: string }[]
  }
  const decided = await browser.post(`/approvals/${approvals[0]?.id}`, { approved: true })
  expect(decided.status).toBe(200)
  const events = await seen
  expect(events.filter(({ type }) => type === 'turn')).toHaveLength(2)
  expect(events.filter(({ type }) => type === 'approval').map(({ state }) => state)).toEqual([
    'requested',
    'approved',
    'executing',
    'succeeded',
  ])
})

test('[EV1] a feed reports nothing about chats of another principal', async () => {
  await using server = await serve({ recorded: false })
  const [owner, stranger] = [server.browser(), server.browser()]
  await (
    await owner.post('/stream', {
      chatId: 'chat-1',
      messages: [{ role: 'user', content: '[[say Hi.]]' }],
    })
  ).text()
  const feed = await stranger.get('/chats/chat-1/events')
  const seen = readUntil(feed, () => true)
  await (
    await owner.post('/stream', {
      chatId: 'chat-1',
      messages: [{ role: 'user', content: '[[say Hi.]]' }],
    })
  ).text()
  await (
    await stranger.post('/stream', {
      chatId: 'chat-1',
      messages: [{ role: 'user', content: '[[say Mine.]]' }],
    })
  ).text()
  expect(await seen).toHaveLength(1)
})

test('[EV2] a principal can open a limited number of feeds; closing one allows another one', async () => {
  await using server = await serve({ recorded: false, limits: { maxFeedsPerPrincipal: 2 } })
  const browser = server.browser()
  await browser.get('/approvals')
  const leaving = await browser.get('/chats/chat-1/events')
  const staying = await browser.get('/chats/chat-2/events')
  const refused = await browser.get('/chats/chat-1/events')
  expect([refused.status, await codeOf(refused)]).toEqual([429, 'too-many-watchers'])
  const stranger = await server.browser().get('/chats/chat-1/events')
  expect(stranger.status).toBe(200)
  await leaving.body?.cancel()
  const statusOfNext = async (): Promise<number> => {
    const next = await browser.get('/chats/chat-1/events')
    await next.body?.cancel()
    return next.status
  }
  await expect.poll(statusOfNext).toBe(200)
  for (const { body } of [staying, stranger]) await body?.cancel()
})

test('[EV1] a feed reports no turn for a sweep or a repeated decision that has nothing to do', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  // Simulates a server that crashes after it has reported an outcome and before it has recorded that.
  const { approvals } = store
  const markReported = approvals.markReported.bind(approvals)
  let isForgetful = true
  approvals.markReported = async (...given) => (isForgetful ? undefined : markReported(...given))
  await using server = await serve({
    store,
    agent: (model) => assistant(model, { tools: [pay] }),
    authenticate: () => ({ id: 'hanako' }),
    recorded: false,
    limits: { leaseMs: 100, sweepMs: 10 },
  })
  const browser = server.browser()
  const feed = await browser.get('/chats/chat-1/events')
  await (await browser.say('[[call pay {}]][[then]][[say Paid.]]')).text()
  const asked = (await browser.messages()).messages.at(-1)
  const [question] = toolParts(asked) as unknown as { approval: { id: string } }[]
  const approval = { ...question?.approval, approved: true }
  const decide = async (): Promise<string> => {
    const parts = asked?.parts.map((part) =>
      part.toolCallId === undefined ? part : { ...part, state: 'approval-responded', approval },
    )
    const messages = [{ ...asked, parts }]
    return (await browser.post('/stream', { id: 'chat-1', messages, messageId: asked?.id })).text()
  }
  expect(await decide()).toContain('Paid.')
  expect(await decide()).toContain('Paid.')
  const unreported = async () =>
    (await approvals.unreported({ appName: 'adk-stream-protocol', leaseMs: 100, limit: 9 })).length
  await expect.poll(unreported).toBe(1)
  isForgetful = false
  await expect.poll(unreported).toBe(0)
  const last = readFrames(await (await browser.say('[[say Bye.]]')).text()).chunks[0]
  const events = await readUntil(feed, ({ messageId }) => messageId === last?.['messageId'])
  const turns = events.flatMap(({ type, messageId }) => (type === 'turn' ? [messageId] : []))
  expect(turns).toEqual([asked?.id, asked?.id, last?.['messageId']])
  expect(server.errors).toEqual([])
})

function statesIn(events: readonly Record<string, unknown>[]): unknown[] {
  return events.filter(({ type }) => type === 'approval').map(({ state }) => state)
}

test('[EV4] the feed of the lists reports changes of this principal only', async () => {
  const roles: Record<string, string[]> = { mari: ['manager'] }
  await using server = await serve({
    agent: (model) => assistant(model, { tools: [pay] }),
    approvals: { pay: { deciders: { roles: ['manager'] } } },
    authenticate: ({ headers }) => {
      const id = headers.get('x-user') ?? ''
      return { id, roles: roles[id] ?? [] }
    },
    recorded: false,
  })
  const as = (id: string, path: string, init: RequestInit = {}) =>
    fetch(`${server.url}${path}`, {
      ...init,
      headers: { 'content-type': 'application/json', 'x-user': id },
    })
  const say = async (id: string, chatId: string, content: string) =>
    (
      await as(id, '/stream', {
        method: 'POST',
        body: JSON.stringify({ chatId, messages: [{ role: 'user', content }] }),
      })
    ).text()
  const feeds = await Promise.all(['hanako', 'mari', 'taro'].map((id) => as(id, '/events')))
  const received = feeds.map((feed) => readUntil(feed, ({ chatId }) => chatId === 'end'))
  await say('hanako', 'c', '[[call pay {}]][[then]][[say Paid.]]')
  const { approvals } = (await (await as('mari', '/approvals')).json()) as {
    approvals: { id: string }[]
  }
  const denial = { method: 'POST', body: JSON.stringify({ approved: false }) }
  expect((await as('mari', `/approvals/${approvals[0]?.id}`, denial)).status).toBe(200)
  // The turn resumes with the denial. The chat is unlocked when its end is reported.
  await as('hanako', '/chats/c/stop', { method: 'POST' })
  await as('hanako', '/chats/c', { method: 'PATCH', body: JSON.stringify({ title: 'Named' }) })
  await as('hanako', '/chats/c', { method: 'DELETE' })
  for (const id of ['hanako', 'mari', 'taro']) await say(id, 'end', '[[say Hi.]]')
  const [owner = [], decider = [], stranger = []] = await Promise.all(received)
  expect(statesIn(owner)).toEqual(['requested', 'denied'])
  expect(statesIn(decider)).toEqual(['requested', 'denied'])
  // The approver does not learn which chat it is.
  expect(decider.filter(({ chatId }) => chatId === 'c')).toEqual([])
  expect(stranger.map(({ chatId }) => chatId)).toEqual(stranger.map(() => 'end'))
  expect(owner.filter(({ type }) => type === 'approval').map(({ chatId }) => chatId)).toEqual([
    'c',
    'c',
  ])
  expect(owner.filter(({ type, chatId }) => type === 'turn' && chatId === 'c')).toHaveLength(2)
  // Start and end of two turns, two changes of the approval, the new name, the deletion.
  expect(owner.filter(({ chatId }) => chatId === 'c').length).toBeGreaterThanOrEqual(7)
})

test('[EV2] [EV4] feeds of lists and of chats are counted together', async () => {
  await using server = await serve({ recorded: false, limits: { maxFeedsPerPrincipal: 2 } })
  const browser = server.browser()
  await browser.get('/chats/chat-1/messages')
  const list = await browser.get('/events')
  await browser.get('/chats/chat-1/events')
  expect(await codeOf(await browser.get('/events'))).toBe('too-many-watchers')
  await list.body?.cancel()
  await expect.poll(async () => (await browser.get('/events')).status).toBe(200)
})

test('[EV5] a feed announces its keep-alive interval, and sends keep-alives', async () => {
  await using server = await serve({ recorded: false, limits: { keepAliveMs: 20 } })
  const { body } = await server.browser().get('/events')
  let text = ''
  for await (const piece of body ?? []) {
    text += new TextDecoder().decode(piece)
    if (text.length > 60) break
  }
  expect(text).toMatch(/^(?:: keep-alive 20\n\n){3,}/)
})
