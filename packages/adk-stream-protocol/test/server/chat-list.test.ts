import { createEvent, FunctionTool, InMemorySessionService } from '@google/adk'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { createTitle } from '../../src/agent/user-message.ts'
import { openSqliteStore } from '../../src/store/index.ts'
import { speak } from '../live/support/voice.ts'
import {
  joinLive,
  nextUnasked,
  openLiveTestBridge,
  whole,
} from '../live/support/live-test-bridge.ts'
import { assistant } from '../support/agents.ts'
import type { Browser } from '../support/browser.ts'
import { codeOf } from '../support/browser.ts'
import { clients } from '../support/clients.ts'
import { hosts } from '../support/hosts.ts'
import { serve } from '../support/serve.ts'
import { openPair } from '../faults/support/pair.ts'
import type { ChatSummary } from '../../src/protocol/server-views.ts'

const pay = new FunctionTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({}),
  requireConfirmation: true,
  execute: () => ({ paid: true }),
})

async function listOf(browser: Pick<Browser, 'get'>): Promise<ChatSummary[]> {
  const response = await browser.get('/chats')
  expect(response.status).toBe(200)
  return ((await response.json()) as { chats: ChatSummary[] }).chats
}

function rename(
  browser: Browser,
  [id, body]: [id: string, body: unknown],
  headers = {},
): Promise<Response> {
  return browser.fetch(`${browser.url}/chats/${id}`, {
    method: 'PATCH',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
}

describe.each(hosts)('$name', (host) => {
  test('[CV6] [CV8] [HO1] chats are listed newest first, renamed and deleted', async () => {
    await using server = await serve({ host })
    const browser = server.browser()
    expect(await listOf(browser)).toEqual([])
    const before = Date.now()
    await (await browser.say('First [[say Hi.]]', 'a')).text()
    await (await browser.say('Second [[say Hi.]]', 'b')).text()
    const [newest, oldest] = await listOf(browser)
    expect(newest).toMatchObject({ id: 'b', title: 'Second [[say Hi.]]', pending: 0 })
    expect(oldest).toMatchObject({ id: 'a', title: 'First [[say Hi.]]', running: false })
    expect(oldest?.createdAt).toBeGreaterThanOrEqual(before)
    expect(oldest?.updatedAt).toBeGreaterThanOrEqual(oldest?.createdAt ?? Infinity)
    await (await browser.say('More [[say Hi.]]', 'a')).text()
    expect((await rename(browser, ['a', { title: '  旅行の計画 🗾 ' }])).status).toBe(204)
    expect((await listOf(browser)).map(({ id, title }) => [id, title])).toEqual([
      ['a', '旅行の計画 🗾'],
      ['b', 'Second [[say Hi.]]'],
    ])
    expect((await browser.delete('a')).status).toBe(204)
    await (await browser.say('Anew [[say Hi.]]', 'a')).text()
    expect((await listOf(browser)).map(({ title }) => title)).toEqual([
      'Anew [[say Hi.]]',
      'Second [[say Hi.]]',
    ])
  })
})

test('[CV6] a list shows which chats have a running turn and pending approvals', async () => {
  await using server = await serve({ agent: (model) => assistant(model, { tools: [pay] }) })
  const browser = server.browser()
  await (await browser.say('[[call pay {}]][[call pay {}]][[then]][[say Paid.]]', 'asks')).text()
  const answer = await browser.say('[[say One.]][[wait gate]][[say Two.]]', 'runs')
  expect(await listOf(browser)).toMatchObject([
    { id: 'runs', running: true, pending: 0 },
    { id: 'asks', running: false, pending: 2 },
  ])
  server.emulator.release('gate')
  await answer.text()
  await expect.poll(async () => (await listOf(browser))[0]?.running).toBe(false)
  const { approvals } = (await (await browser.get('/approvals')).json()) as {
    approvals: { id: string }[]
  }
  await browser.post(`/approvals/${approvals[0]?.id}`, { approved: false })
  expect((await listOf(browser)).find(({ id }) => id === 'asks')?.pending).toBe(1)
})

async function seenRunning({ url }: { readonly url: string }): Promise<boolean | undefined> {
  const response = await fetch(`${url}/chats`, { headers: { 'x-user': 'hanako' } })
  return ((await response.json()) as { chats: ChatSummary[] }).chats[0]?.running
}

test('[CV6] a turn that another server runs is listed as running', async () => {
  await using pair = await openPair()
  const answer = await pair.atOne.begin('[[say One.]][[wait gate]][[say Two.]]')
  expect(await seenRunning(pair.two)).toBe(true)
  pair.one.emulator.release('gate')
  await answer.text()
  await expect.poll(() => seenRunning(pair.two)).toBe(false)
})

test('[CV6] [CV8] chats of another principal are neither listed nor renamed', async () => {
  await using server = await serve()
  const [owner, stranger] = [server.browser(), server.browser()]
  await (await owner.say('Mine [[say Hi.]]')).text()
  expect(await listOf(stranger)).toEqual([])
  const foreign = await rename(stranger, ['chat-1', { title: 'Stolen' }])
  const unknown = await rename(stranger, ['nowhere', { title: 'Stolen' }])
  expect([foreign.status, unknown.status]).toEqual([404, 404])
  expect([await codeOf(foreign), await codeOf(unknown)]).toEqual(['unknown-chat', 'unknown-chat'])
  expect((await listOf(owner))[0]?.title).toBe('Mine [[say Hi.]]')
})

test('[CV8] a title with NUL and line breaks becomes one line', async () => {
  await using server = await serve()
  const browser = server.browser()
  await (await browser.say('First [[say Hi.]]', 'a')).text()
  expect((await rename(browser, ['a', { title: 'Before\0after\r\n end' }])).status).toBe(204)
  expect(await listOf(browser)).toMatchObject([{ title: 'Before after end' }])
  expect((await rename(browser, ['a', { title: '\0' }])).status).toBe(400)
})

test.each([
  ['nothing', {}],
  ['an empty title', { title: '' }],
  ['spaces', { title: ' \n ' }],
  ['a long title', { title: 'x'.repeat(201) }],
  ['no text', { title: 1 }],
  ['more than a title', { title: 'Good', principalId: 'other' }],
])('[CV8] %s is rejected', async (_what, body) => {
  await using server = await serve()
  const browser = server.browser()
  await (await browser.say('Kept [[say Hi.]]')).text()
  const refused = await rename(browser, ['chat-1', body])
  expect(refused.status).toBe(400)
  expect(await codeOf(refused)).toBe('bad-request')
  expect((await listOf(browser))[0]?.title).toBe('Kept [[say Hi.]]')
})

test('[CV8] [SE3] a page of an allowed origin may rename chats, a page of another origin may not', async () => {
  const origin = 'https://app.example.com'
  await using server = await serve({ allowedOrigins: [origin] })
  const browser = server.browser()
  await (await browser.say('Kept [[say Hi.]]')).text()
  const preflight = await browser.fetch(`${server.url}/chats/chat-1`, {
    method: 'OPTIONS',
    headers: { origin, 'access-control-request-method': 'PATCH' },
  })
  expect(preflight.headers.get('access-control-allow-methods')).toContain('PATCH')
  expect((await rename(browser, ['chat-1', { title: 'Named' }], { origin })).status).toBe(204)
  const foreign = await rename(browser, ['chat-1', { title: 'X' }], { origin: 'https://evil.test' })
  expect(await codeOf(foreign)).toBe('forbidden-origin')
  expect((await listOf(browser))[0]?.title).toBe('Named')
})

test.each([
  ['a short text', [{ text: ' What is\n the weather? ' }], 'What is the weather?'],
  ['a long text', [{ text: 'a'.repeat(61) }], `${'a'.repeat(59)}…`],
  [
    'Japanese',
    [{ text: 'が'.normalize('NFD').repeat(70) }],
    `${'が'.normalize('NFD').repeat(59)}…`,
  ],
  ['families', [{ text: '👩‍👩‍👧'.repeat(60) }], `${'👩‍👩‍👧'.repeat(29)}…`],
  ['a broken character', [{ text: 'a\uD83D' }], 'a\uFFFD'],
  ['a turned text', [{ text: 'a\u202Eb\u0000c' }], 'ab c'],
  ['a file', [{ inlineData: { mimeType: 'image/png', displayName: 'cat.png' } }], 'cat.png'],
  ['a picture alone', [{ inlineData: { mimeType: 'image/png' } }], 'image/png'],
  ['nothing', [{ text: ' ' }], ''],
])('[CV7] the title of %s', (_what, parts, title) => {
  expect(createTitle({ role: 'user', parts })).toBe(title)
})

test.each(clients)('[CV7] an edited first message gives another title, $name', async (client) => {
  await using server = await serve()
  const browser = server.browser()
  const chat = browser.openChat(client)
  await chat.send('Old [[say Hi.]]')
  expect((await listOf(browser))[0]?.title).toBe('Old [[say Hi.]]')
  await chat.send('New [[say Hi.]]', { messageId: chat.messages[0]?.id ?? '' })
  expect((await listOf(browser))[0]?.title).toBe('New [[say Hi.]]')
})

test.each(['sqlite', 'another session service'])(
  '[CV7] a greeting of the agent, an empty message or untranscribed speech is not a title, in %s',
  async (service) => {
    await using store = await openSqliteStore({ path: ':memory:' })
    const sessionService = service === 'sqlite' ? store.sessions : new InMemorySessionService()
    await using server = await serve({
      store,
      ...(service !== 'sqlite' && { sessionService }),
      appName: 'a',
      authenticate: () => ({ id: 'me' }),
      recorded: false,
    })
    const browser = server.browser()
    const session = await sessionService.createSession({
      appName: 'a',
      userId: 'me',
      sessionId: 'chat-1',
    })
    const write = (author: string, text: string) =>
      sessionService.appendEvent({
        session,
        event: createEvent({ author, content: { role: author, parts: [{ text }] } }),
      })
    await write('assistant', 'Welcome!')
    for (const text of ['', ' ', '(spoken)']) {
      await write('user', text)
      expect((await listOf(browser))[0]?.title).toBe('')
    }
    await write('user', 'At last')
    expect((await listOf(browser))[0]?.title).toBe('At last')
  },
)

test('[CV7] an edited first message gives another title, also after a greeting', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  await using server = await serve({
    store,
    appName: 'a',
    authenticate: () => ({ id: 'me' }),
    recorded: false,
  })
  const browser = server.browser()
  const key = { appName: 'a', userId: 'me', sessionId: 'chat-1' }
  const session = await store.sessions.createSession(key)
  const content = { role: 'model', parts: [{ text: 'Welcome!' }] }
  await store.sessions.appendEvent({
    session,
    event: createEvent({ author: 'assistant', content }),
  })
  const say = async (text: string, more = {}): Promise<string | undefined> => {
    const messages = [{ id: 'u1', role: 'user', parts: [{ type: 'text', text }] }]
    await (await browser.post('/stream', { id: 'chat-1', messages, ...more })).text()
    return (await listOf(browser))[0]?.title
  }
  expect(await say('A secret')).toBe('A secret')
  expect(await say('Hello', { messageId: 'u1' })).toBe('Hello')
})

test('[CV7] the transcript of the first speech is the title', async () => {
  await using testBridge = await openLiveTestBridge({ spoken: true })
  await using client = await joinLive(testBridge)
  client.send({ type: 'watch', id: 'chat-1', audio: 'binary' })
  testBridge.emulator.live.queueTranscript('おはよう [[say Good morning.]]')
  speak(client)
  await whole(client, await nextUnasked(client))
  const response = await fetch(`${testBridge.url}/chats`, { headers: { 'x-api-key': 'hanako' } })
  expect(await response.json()).toMatchObject({
    chats: [{ id: 'chat-1', title: 'おはよう [[say Good morning.]]' }],
  })
})

test('[CV3] [CV6] sessions of another session service are listed, also those of other programs', async () => {
  const sessionService = new InMemorySessionService()
  await using server = await serve({
    sessionService,
    authenticate: () => ({ id: 'hanako' }),
    appName: 'app',
  })
  const browser = server.browser()
  for (const sessionId of ['written', 'not an id']) {
    const session = await sessionService.createSession({
      appName: 'app',
      userId: 'hanako',
      sessionId,
    })
    const content = { role: 'user', parts: [{ text: 'Said elsewhere' }] }
    await sessionService.appendEvent({
      session,
      event: createEvent({ author: 'user', invocationId: 'i', timestamp: 1_000, content }),
    })
  }
  await (await browser.say('Here [[say Hi.]]', 'here')).text()
  expect(await listOf(browser)).toMatchObject([
    { id: 'here', title: 'Here [[say Hi.]]' },
    { id: 'written', title: 'Said elsewhere', createdAt: 1_000, updatedAt: 1_000 },
  ])
  expect((await rename(browser, ['written', { title: 'Named' }])).status).toBe(204)
  expect((await listOf(browser))[1]?.title).toBe('Named')
})

test('[CV9] a list reads no whole session, and the first message of each only once', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  await using server = await serve({ store, recorded: false })
  const browser = server.browser()
  for (const id of ['a', 'b', 'c']) await (await browser.say(`${id} [[say Hi.]]`, id)).text()
  const reads = { whole: 0, begin: 0 }
  const sessions = store.sessions as typeof store.sessions & {
    readFirstMessage: (key: object) => Promise<unknown>
  }
  const [getSession, readFirstMessage] = [
    sessions.getSession.bind(sessions),
    sessions.readFirstMessage.bind(sessions),
  ]
  sessions.getSession = (request) => ((reads.whole += 1), getSession(request))
  sessions.readFirstMessage = (request) => ((reads.begin += 1), readFirstMessage(request))
  for (let n = 0; n < 3; n += 1) expect(await listOf(browser)).toHaveLength(3)
  expect(reads).toEqual({ whole: 0, begin: 3 })
})

test('[CV6] at most 200 chats are listed', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  await using server = await serve({
    store,
    authenticate: () => ({ id: 'hanako' }),
    appName: 'app',
  })
  for (let n = 0; n < 205; n += 1) {
    const key = { appName: 'app', userId: 'hanako', sessionId: `chat-${n}` }
    const session = await store.sessions.createSession(key)
    const content = { role: 'user', parts: [{ text: `Said ${n}` }] }
    await store.sessions.appendEvent({
      session,
      event: createEvent({ author: 'user', invocationId: 'i', timestamp: n + 1, content }),
    })
  }
  const chats = await listOf(server.browser())
  expect(chats).toHaveLength(200)
  expect([chats[0]?.title, chats.at(-1)?.title]).toEqual(['Said 204', 'Said 5'])
})
