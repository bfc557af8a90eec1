import { startEmulator } from 'gemini-emulator'
import { expect, test } from 'vitest'

import { isLong } from '../../../../test/support/long-run.ts'
import { callIds, responseIds } from '../../src/agent/events/event-calls.ts'
import { adkApi, attachChat, sseTransport } from '../../src/client/index.ts'
import { openSqliteStore, type Store } from '../../src/store/index.ts'
import { isRewindable } from '../../src/store/store.ts'
import { versions } from '../client/support/client-page.ts'
import { findDifference } from '../client/support/compare-shown.ts'
import { LIVE_MODEL } from '../relay/support/live-pair.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { defer } from '../support/agents.ts'
import { ChatProbe, textOf } from '../support/chat-probe.ts'
import { makeFolder } from './support/folder.ts'
import { openPair } from './support/pair.ts'

const HEADERS = { 'x-user': 'hanako' }
const POLLING = { timeout: 60_000, interval: 20 }
const PAY = '[[call pay {"to": "花子", "amount": 50}]][[then]][[say Paid.]]'
const SLOW = '[[say Begun.]][[wait reply]][[say Ended.]]'
const messageOf = (id: string, text: string) => ({
  id,
  role: 'user',
  parts: [{ type: 'text', text }],
})

/** Two servers, a page of the same chat at each, and a payment that runs until `release`. */
async function openServersAndPages() {
  const emulator = await startEmulator()
  const [running, go] = [defer(), defer()]
  const pair = await openPair({
    liveModel: LIVE_MODEL,
    modelUrl: emulator.baseUrl,
    reached: async (moment) => {
      if (moment !== 'before effect') return
      running.resolve()
      await go.promise
    },
  })
  const servers = { one: pair.one, two: pair.two }
  const pages = [pair.one, pair.two].map(({ url }) => {
    const transport = sseTransport({ url, headers: HEADERS })
    const chat = versions[1].open({ id: 'chat-1', messages: [], transport })
    const attached = attachChat(chat, transport, { api: adkApi({ url, headers: HEADERS }) })
    return { chat: new ChatProbe(chat), attached }
  })
  const sockets: SocketClient[] = []
  return {
    ...pair,
    pages,
    running: running.promise,
    release: () => {
      go.resolve()
      emulator.release('reply')
    },
    /** Sends a message to the live session. Returns how the reply ends, and the text so far. */
    async live(at: keyof typeof servers, id: string, text: string, trigger = 'submit-message') {
      const client = await SocketClient.open(servers[at].url, { headers: HEADERS })
      sockets.push(client)
      const messages = [messageOf(id, text)]
      client.send({ type: 'send', requestId: 'r1', id: 'chat-1', trigger, messages })
      return {
        client,
        end: client.next(({ type }) => ['end', 'error'].includes(type)),
      }
    },
    async [Symbol.asyncDispose]() {
      go.resolve()
      for (const { attached } of pages) attached.detach()
      for (const each of sockets) await each[Symbol.asyncDispose]()
      await pair[Symbol.asyncDispose]()
      await emulator.close()
    },
  }
}

type Setup = Awaited<ReturnType<typeof openServersAndPages>>

interface Situation {
  readonly text: string
  readonly begin: (setup: Setup) => Promise<unknown>
  /** The text of the reply if nobody does anything, if it is stopped, and if its call is approved. */
  readonly replies: readonly [left: string, stopped: string, approved: string]
}

/** Asks over HTTP or in a live session, until the call waits. */
const askOver = async (at: 'http' | 'one' | 'two', setup: Setup): Promise<void> => {
  if (at === 'http') await (await setup.atOne.begin(PAY, 'm-1')).text()
  else await (await setup.live(at, 'm-1', PAY)).end
}

const runOver = async (at: 'http' | 'one', setup: Setup): Promise<void> => {
  await askOver(at, setup)
  const [asked] = await setup.atOne.approvals()
  await setup.atOne.decide(asked?.id ?? '', { approved: true })
  await setup.running
}

const SITUATIONS: Readonly<Record<string, Situation>> = {
  'a turn runs over HTTP': {
    text: SLOW,
    begin: async ({ atOne, pages }) => {
      void (await atOne.begin(SLOW, 'm-1')).text()
      await pages[0]?.chat.untilShown('Begun.')
    },
    replies: ['Begun.Ended.', 'Begun.', ''],
  },
  'a call waits over HTTP': {
    text: PAY,
    begin: (setup) => askOver('http', setup),
    replies: ['', '', 'Paid.'],
  },
  'a live session waits': {
    text: PAY,
    begin: (setup) => askOver('one', setup),
    replies: ['', '', 'Paid.'],
  },
  'a live session of another server waits': {
    text: PAY,
    begin: (setup) => askOver('two', setup),
    replies: ['', '', 'Paid.'],
  },
  'a call runs over HTTP': {
    text: PAY,
    begin: (setup) => runOver('http', setup),
    replies: ['Paid.', '', 'Paid.'],
  },
  'a live call runs': {
    text: PAY,
    begin: (setup) => runOver('one', setup),
    replies: ['Paid.', '', 'Paid.'],
  },
}

const repeatOver = (trigger: string) => async (setup: Setup) => {
  const messages = [messageOf('m-1', '[[say Again.]]')]
  return (await setup.atOne.post('/stream', { id: 'chat-1', trigger, messageId: 'm-1', messages }))
    .status
}

const repeatLive = async (at: 'one' | 'two', setup: Setup): Promise<number> => {
  const { end } = await setup.live(at, 'm-1', '[[say Again.]]', 'regenerate-message')
  return (await end).type === 'end' ? 200 : 409
}

const repeatBoth = (at: 'one' | 'two') => async (setup: Setup) => {
  const both = [repeatOver('regenerate-message')(setup), repeatLive(at, setup)]
  return Math.min(...(await Promise.all(both)))
}

interface Operation {
  readonly run: (setup: Setup) => Promise<number>
  /** The texts of the conversation afterwards. */
  readonly after: (situation: Situation) => readonly string[]
}

const afterRepeat = (): readonly string[] => ['[[say Again.]]', 'Again.']
const OPERATIONS: Readonly<Record<string, Operation>> = {
  regenerate: { run: repeatOver('regenerate-message'), after: afterRepeat },
  edit: { run: repeatOver('submit-message'), after: afterRepeat },
  'regenerate live': { run: (setup) => repeatLive('one', setup), after: afterRepeat },
  'regenerate live at another server': {
    run: (setup) => repeatLive('two', setup),
    after: afterRepeat,
  },
  'regenerate in two tabs, over HTTP and live': { run: repeatBoth('one'), after: afterRepeat },
  'regenerate at two servers, over HTTP and live': { run: repeatBoth('two'), after: afterRepeat },
  send: {
    run: async ({ atOne }) => {
      const messages = [messageOf('m-2', '[[say Sent.]]')]
      return (await atOne.post('/stream', { id: 'chat-1', messages })).status
    },
    after: ({ text, replies: [left] }) => [text, left, '[[say Sent.]]', 'Sent.'],
  },
  approve: {
    run: async ({ atOne }) => {
      const [asked] = await atOne.approvals()
      return (await atOne.decide(asked?.id ?? 'none', { approved: true })).status
    },
    after: ({ text, replies: [, , approved] }) => [text, approved],
  },
  stop: {
    run: async ({ atOne }) => (await atOne.post('/chats/chat-1/stop', '')).status,
    after: ({ text, replies: [, stopped] }) => [text, stopped],
  },
  delete: {
    run: async ({ one }) =>
      (await fetch(`${one.url}/chats/chat-1`, { method: 'DELETE', headers: HEADERS })).status,
    after: () => [],
  },
}

/** The rows that run in `npm test`. */
const SHORT = [
  'regenerate while a live session waits',
  'edit while a live session of another server waits',
  'delete while a live session of another server waits',
  'regenerate in two tabs, over HTTP and live while a turn runs over HTTP',
  'regenerate while a live call runs',
  'approve while a live session of another server waits',
]
const rows = Object.entries(OPERATIONS)
  .flatMap(([operation, { run, after }]) =>
    Object.entries(SITUATIONS).map(([name, situation]) => ({
      what: `${operation} while ${name}`,
      run,
      after,
      situation,
    })),
  )
  .filter(({ what }) => isLong || SHORT.includes(what))

test.each(rows)('[TU1981] [LV1980] $what', async ({ run, after, situation }) => {
  await using setup = await openServersAndPages()
  const { atOne, atTwo, store, pages } = setup
  await situation.begin(setup)
  const done = run(setup)
  // Some requests wait for a call that runs.
  await Promise.race([done, atTwo.messages()])
  setup.release()
  const isDone = (await done) < 300
  const { text, replies } = situation
  const expected = isDone ? after(situation) : [text, replies[0]]
  const texts = async () => (await atTwo.messages()).map(textOf)
  await expect.poll(texts, POLLING).toEqual(expected)
  await (
    await setup.live('two', 'm-8', '[[say Live.]]')
  ).end
  await expect.poll(texts, POLLING).toEqual([...expected, '[[say Live.]]', 'Live.'])
  await atOne.say('[[say Fine.]]')
  const more = ['[[say Live.]]', 'Live.', '[[say Fine.]]', 'Fine.']
  let stored: Awaited<ReturnType<typeof atOne.messages>> = []
  // A sweep may look for an outcome to report, in a turn whose message is left out meanwhile.
  const readTexts = async () => {
    stored = await atOne.messages()
    return stored.map(textOf)
  }
  await expect.poll(readTexts, POLLING).toEqual([...expected, ...more])
  for (const { chat } of pages)
    await expect.poll(() => findDifference(chat.messages, stored), POLLING).toBeUndefined()
  const key = { appName: 'adk-stream-protocol', userId: 'hanako', sessionId: 'chat-1' }
  const { events = [] } = (await store.sessions.getSession(key)) ?? {}
  const calls = new Set(events.flatMap(callIds))
  expect(events.flatMap(responseIds).filter((id) => !calls.has(id))).toEqual([])
  const open = (await atOne.approvals()).map(({ toolCallId = '' }) => toolCallId)
  expect(open.filter((id) => !calls.has(id))).toEqual([])
  const paid = setup.effects().map((effect) => effect.key)
  expect(new Set(paid).size).toBe(paid.length)
  expect(paid.filter((id) => isDone && expected.length > 0 && !calls.has(id))).toEqual([])
})

test.each([
  ['rewinds it for a request over HTTP', ['[[say Again.]]', 'Again.']],
  ['deletes it', []],
])(
  '[LV1980] no server starts a live session of a chat while another one %s',
  async (what, before) => {
    await using folder = await makeFolder()
    const [begun, go] = [defer(), defer()]
    const hold = async (): Promise<void> => {
      begun.resolve()
      await go.promise
    }
    const openStore = async (): Promise<Store> => {
      const opened = await openSqliteStore({ path: folder.database })
      const { sessions } = opened
      if (!isRewindable(sessions)) throw new Error('The store can rewind.')
      const rewind = sessions.rewind.bind(sessions)
      sessions.rewind = (request) => hold().then(() => rewind(request))
      const deleteSession = sessions.deleteSession.bind(sessions)
      sessions.deleteSession = (request) => hold().then(() => deleteSession(request))
      return opened
    }
    await using pair = await openPair({ liveModel: LIVE_MODEL, openStore })
    const { atOne, atTwo, one, two } = pair
    await (await atOne.begin('[[say Hello.]]', 'm-1')).text()
    const messages = [messageOf('m-1', '[[say Again.]]')]
    const repeated = { id: 'chat-1', messages, trigger: 'regenerate-message' }
    const changed =
      what === 'deletes it'
        ? fetch(`${one.url}/chats/chat-1`, { method: 'DELETE', headers: HEADERS })
        : atOne.post('/stream', repeated)
    await begun.promise
    await using client = await SocketClient.open(two.url, { headers: HEADERS })
    client.say('[[say Live.]]')
    await Promise.race([pair.untilTaken(), client.nextOf('end')])
    expect(two.emulator.live.sessions).toEqual([])
    go.resolve()
    expect((await changed).status).toBeLessThan(300)
    await client.nextOf('end')
    await expect
      .poll(async () => (await atTwo.messages()).map(textOf), POLLING)
      .toEqual([...before, '[[say Live.]]', 'Live.'])
  },
)

test('[RL1982] a request to stop that arrives late does not stop the turn that has locked the chat since', async () => {
  await using folder = await makeFolder()
  const sent = defer<() => Promise<void>>()
  const openStore = async (): Promise<Store> => {
    const opened = await openSqliteStore({ path: folder.database })
    const { signals } = opened
    if (!signals) throw new Error('The store has signals.')
    const send = signals.send.bind(signals)
    signals.send = async (worker, signal) => {
      if (signal.kind === 'stop-chat')
        sent.resolve(() => send(worker, { ...signal, id: crypto.randomUUID() }))
      return send(worker, signal)
    }
    return opened
  }
  await using pair = await openPair({ openStore })
  const { one, atOne, atTwo } = pair
  const begun = await atOne.begin('[[say Hello.]][[wait never]]', 'm-1')
  await atTwo.post('/chats/chat-1/stop', '')
  expect(await begun.text()).toContain('"stopped":true')
  const next = await atOne.begin('[[say Begun.]][[wait end]][[say Ended.]]', 'm-2')
  const sendAgain = await sent.promise
  await sendAgain()
  // The other server takes its signals in order.
  await atTwo.post('/chats/chat-1/stop?messageId=none', '')
  one.emulator.release('end')
  expect(await next.text()).toContain('Ended.')
  expect((await atOne.messages()).map(textOf).at(-1)).toBe('Begun.Ended.')
})
