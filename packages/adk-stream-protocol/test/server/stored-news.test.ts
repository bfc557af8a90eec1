import { FunctionTool } from '@google/adk'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { assistant, defer } from '../support/agents.ts'
import type { Browser } from '../support/browser.ts'
import { readUntil } from '../support/read-feed.ts'
import { type ServeOptions, serve } from '../support/serve.ts'

const pay = new FunctionTool({
  name: 'pay',
  description: 'Pays.',
  parameters: z.object({}),
  requireConfirmation: true,
  execute: () => ({ paid: true }),
})

const OPTIONS: ServeOptions = {
  agent: (model) => assistant(model, { tools: [pay] }),
  authenticate: () => ({ id: 'hanako' }),
  recorded: false,
}

type FeedEvent = Record<string, unknown>

async function load(browser: Browser) {
  // PROTOCOL.md defines the response of this endpoint.
  const loaded: unknown = await (await browser.get('/chats/chat-1/messages')).json()
  return loaded as { messages: unknown[]; position: string }
}

const isStored = ({ type }: FeedEvent): boolean => type === 'stored'

/** The ways in which a turn ends. */
const ENDS = [
  { name: 'completes', text: '[[say One.]]' },
  { name: 'asks for an approval', text: '[[call pay {}]]' },
  { name: 'fails', text: '[[error 400 INVALID_ARGUMENT no]]' },
  { name: 'is stopped', text: '[[say One.]][[wait never]]', stops: true },
]

test.each(ENDS)(
  '[PO3] [PO9] feeds report the position when a turn $name',
  async ({ text, stops }) => {
    await using server = await serve({ ...OPTIONS, onError: () => undefined })
    const browser = server.browser()
    const feeds = [await browser.get('/chats/chat-1/events'), await browser.get('/events')]
    const received = feeds.map((feed) => readUntil(feed, isStored))
    const response = await browser.say(text)
    if (stops) {
      await response.body?.getReader().read()
      await browser.stop()
    } else await response.text()
    const [ofChat = [], ofLists = []] = await Promise.all(received)
    const { position } = await load(browser)
    expect(ofChat.at(-1)).toEqual({ type: 'stored', position })
    expect(ofLists.at(-1)).toEqual({ type: 'stored', chatId: 'chat-1', position })
    const turns = [ofChat, ofLists].map((events) => events.find(({ type }) => type === 'turn'))
    expect(turns[0]?.['turn']).toMatch(/^[\da-f-]{36}$/)
    expect(turns[1]?.['turn']).toBe(turns[0]?.['turn'])
  },
)

test('[PO3] a result that is stored after its turn was stopped is reported', async () => {
  const paid = defer<object>()
  const started = defer()
  const slow = new FunctionTool({
    name: 'pay',
    description: 'Pays.',
    parameters: z.object({}),
    requireConfirmation: true,
    execute: () => {
      started.resolve()
      return paid.promise
    },
  })
  await using server = await serve({
    ...OPTIONS,
    agent: (model) => assistant(model, { tools: [slow] }),
  })
  const browser = server.browser()
  await (await browser.say('[[call pay {}]][[then]][[say Paid.]]')).text()
  const listed: unknown = await (await browser.get('/approvals')).json()
  const { approvals } = listed as { approvals: { id: string }[] }
  await browser.post(`/approvals/${approvals[0]?.id}`, { approved: true })
  await started.promise
  await browser.stop()
  const before = await load(browser)
  const feed = await browser.get('/chats/chat-1/events')
  const received = readUntil(
    feed,
    (event) => isStored(event) && event['position'] !== before.position,
  )
  paid.resolve({ paid: true })
  await received
  const outputs = async () => JSON.stringify((await load(browser)).messages)
  await expect.poll(outputs).toContain('"paid":true')
})

test('[PO3] turns of another process on the same file are reported when it has released the chat', async () => {
  await using folder = await temporaryDirectory()
  await using here = await openSqliteStore({ path: folder.file('shared.db') })
  await using there = await openSqliteStore({ path: folder.file('shared.db') })
  const limits = { sweepMs: 20 }
  await using one = await serve({ ...OPTIONS, store: here, limits })
  await using two = await serve({ ...OPTIONS, store: there, limits, disconnectGraceMs: 60_000 })
  const [atOne, atTwo] = [one.browser(), two.browser()]
  await (await atOne.say('[[say One.]]')).text()
  const feed = await atOne.get('/events')
  const seen: FeedEvent[] = []
  const received = readUntil(feed, (event) => {
    seen.push(event)
    return isStored(event)
  })
  const reader = (await atTwo.say('[[say Two.]][[wait never]]')).body?.getReader()
  await reader?.read()
  // Another chat is reported first, although it changes later.
  await (await atTwo.say('[[say Hi.]]', 'chat-2')).text()
  await received
  expect(seen.filter(isStored)).toMatchObject([{ chatId: 'chat-2' }])
  const again = readUntil(await atOne.get('/chats/chat-1/events'), isStored)
  await atTwo.stop()
  expect(await again).toEqual([{ type: 'stored', position: (await load(atOne)).position }])
})
