import { describe, expect, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import type { AdkUIMessage, WebSocketTransport, SseTransport } from '../../src/client/index.ts'
import { type AdkApi, adkApi, attachChat, sseTransport } from '../../src/client/index.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { isRecord } from '../../src/protocol/guards.ts'
import type { Store } from '../../src/store/store.ts'
import { StoreError } from '../../src/store/store-error.ts'
import { defer } from '../support/agents.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import type { Version } from './support/client-page.ts'
import { ClientChat, ClientPage, openSse, versions } from './support/client-page.ts'
import type { AttachOptions } from '../../src/client/sync/attached-chat.ts'

const PAY = `${callPayment(50)}[[then]][[say Paid.]]`
const TWO_APPROVERS = {
  approvals: { process_payment: { approvers: 2, deciders: { principals: ['hanako', 'taro'] } } },
}

const APPROVED = { approved: true }

function inboxOf({ url }: TestBridge, ofProxy?: typeof fetch): AdkApi {
  return adkApi({ url, headers: { 'x-api-key': 'hanako' }, ...(ofProxy && { fetch: ofProxy }) })
}

/** The next changes of approvals fail as if the database was away. */
function failWrites({ approvals }: Store, count: number): { readonly left: number } {
  const failures = { left: count }
  const replaceAll = approvals.replaceAll.bind(approvals)
  const replace = approvals.replace.bind(approvals)
  const fail = async <Value>(write: () => Promise<Value>): Promise<Value> => {
    if (failures.left === 0) return write()
    failures.left -= 1
    throw new StoreError('unavailable', 'The database is away.')
  }
  approvals.replaceAll = (transitions) => fail(() => replaceAll(transitions))
  approvals.replace = (transition) => fail(() => replace(transition))
  return failures
}

/** Opens a chat and waits for the replies to two messages. */
async function openAnswered(page: ClientPage, version: Version, mode: string): Promise<ClientChat> {
  const chat = await (mode === 'HTTP' ? openSse(page.sse(), version) : page.open())
  await chat.send('[[say One.]]')
  await chat.send('[[say Two.]]')
  await chat.attached.catchUp()
  return chat
}

/** Events cannot be stored, as if the database was away, until the returned function is called. */
function failAppends({ sessions }: Store): () => void {
  const append = sessions.appendEvent.bind(sessions)
  sessions.appendEvent = async () => {
    throw new StoreError('unavailable', 'The database is away.')
  }
  return () => {
    sessions.appendEvent = append
  }
}

/** Returns the ids of the messages that the chat shows as not sent. */
function notSent({ messages }: ClientChat): string[] {
  return messages.flatMap(({ id, metadata }) =>
    isRecord(metadata) && metadata['unsent'] === true ? [id] : [],
  )
}

/** Returns the states of the calls in the newest message. */
function callStates(chat: ClientChat): unknown[] {
  return toolParts(chat.lastMessage).map(({ state }) => state)
}

describe.each(oneOf(versions, 'ai 6'))('$name', (version) => {
  test('[CL4] edited arguments that were rejected are not sent with a later approval', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    void chat.send(PAY)
    const [id = ''] = await chat.untilAsked()
    const beforeDecision = chat.attached.chat.messages
    const refused = chat.attached.approve(id, { args: { amount: 5_000, recipient: '' } })
    await chat.until(() => chat.asked.length === 0)
    // Messages from elsewhere show the approval as it is: open.
    chat.attached.chat.messages = beforeDecision
    await refused
    expect(chat.errors).toMatchObject([{ code: 'bad-request' }])
    await chat.attached.approve(id)
    await chat.untilShown('Paid.')
    const [, second] = page.sent.filter(({ type }) => type === 'decide')
    expect(second).not.toHaveProperty('args')
    expect(testBridge.wallet.payments).toMatchObject([{ amount: 50 }])
  })

  test('[CL4] edited arguments are sent with their approval, although another chat of the page has denied the call', async () => {
    await using testBridge = await TestBridge.open()
    /** A transport that loses its first decision. */
    const openLossy = (): { readonly transport: SseTransport; readonly lost: Promise<void> } => {
      const lost = defer()
      let isLost = false
      const transport = sseTransport({
        url: testBridge.url,
        headers: { 'x-api-key': 'hanako' },
        fetch: async (input, init) => {
          if (isLost || !String(init?.body).includes('approval-responded'))
            return fetch(input, init)
          isLost = true
          lost.resolve()
          throw new TypeError('fetch failed')
        },
      })
      return { transport, lost: lost.promise }
    }
    const [first, second] = [openLossy(), openLossy()]
    const chat = await openSse(first.transport, version)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    // The messages of the `Chat` that `version` has opened.
    const asked = chat.attached.chat.messages as AdkUIMessage[]
    const given = chat.attached.approve(id, { args: { amount: 70, recipient: 'Hanako' } })
    // Closed before its decision is sent.
    chat.attached.detach()
    await Promise.all([given, first.lost])
    const denies = version.open({ id: 'chat-1', messages: asked, transport: second.transport })
    const denying = attachChat(denies, second.transport, {})
    const denied = denying.deny(id)
    denying.detach()
    await Promise.all([denied, second.lost])
    const messages = chat.attached.chat.messages as AdkUIMessage[]
    const next = version.open({ id: 'chat-1', messages, transport: first.transport })
    const attached = attachChat(next, first.transport, {})
    await next.sendMessage()
    attached.detach()
    expect(testBridge.wallet.payments).toMatchObject([{ amount: 70 }])
  })

  test.each(['the transport of the chat', 'another transport'])(
    '[CL4] edited arguments are sent with their approval, also by a chat that continues with its messages over %s',
    async (over) => {
      await using testBridge = await TestBridge.open()
      await using page = new ClientPage({ url: testBridge.url, version })
      const transport = page.sse()
      const chat = await openSse(transport, version)
      await chat.send(PAY)
      const [id = ''] = await chat.untilAsked()
      const given = chat.attached.approve(id, { args: { amount: 70, recipient: 'Hanako' } })
      // Closed before the decision is sent.
      chat.attached.detach()
      await given
      // The messages of the `Chat` that `version` has opened.
      const messages = chat.attached.chat.messages as AdkUIMessage[]
      const other = over === 'another transport' ? page.transport : transport
      const next = version.open({ id: 'chat-1', messages, transport: other })
      const attached = attachChat(next, other, {})
      await next.sendMessage()
      attached.detach()
      expect(testBridge.wallet.payments).toMatchObject([{ amount: 70 }])
    },
  )

  test('[TU1949] over HTTP, messages that the page has not shown are neither replaced by a regenerated reply nor by an edited message', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await openSse(page.sse(), version)
    await chat.send('[[say Hello.]]')
    const [behind, other] = [await openSse(page.sse(), version), await openSse(page.sse(), version)]
    await Promise.all([behind.attached.catchUp(), other.attached.catchUp()])
    await chat.send('[[say Newer.]]')
    const stored = (await page.load('chat-1')).map(textOf)
    expect(stored).toHaveLength(4)
    const [first] = behind.messages
    await behind.attached.chat.regenerate()
    await other.attached.chat.sendMessage({ text: '[[say Changed.]]', messageId: first?.id ?? '' })
    for (const each of [behind, other]) {
      expect(each.error).toMatchObject({ code: 'newer-messages' })
      // The person reads what they have not seen.
      expect(each.messages.map(textOf)).toEqual(stored)
    }
    expect((await page.load('chat-1')).map(textOf)).toEqual(stored)
    await behind.attached.chat.regenerate()
    expect(behind.error).toBeUndefined()
    expect(behind.messages).toHaveLength(4)
  })

  test('[TU1949] a page that cannot load the messages that it has not shown replaces them', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const transport = page.sse()
    const chat = version.open({ id: 'chat-1', messages: [], transport })
    attachChat(chat, Object.assign(transport, { loadChat: undefined }))
    await chat.sendMessage({ text: '[[say Hello.]]' })
    const other = await openSse(page.sse(), version)
    await other.send('[[say Newer.]]')
    await chat.sendMessage({ text: '[[say Changed.]]', messageId: chat.messages[0]?.id ?? '' })
    expect(chat.error).toBeUndefined()
    expect((await page.load('chat-1')).map(textOf)).toEqual(['[[say Changed.]]', 'Changed.'])
  })

  test('[TU1949] a page with a message that could not be sent replaces no messages that it has not shown', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await openSse(page.sse(), version)
    await chat.send('[[say Hello.]]')
    let isOffline = false
    const transport = sseTransport({
      url: testBridge.url,
      headers: { 'x-api-key': 'hanako' },
      fetch: async (input, init) => {
        if (isOffline) throw new TypeError('fetch failed')
        return fetch(input, init)
      },
    })
    const behind = await openSse(transport, version)
    await behind.attached.catchUp()
    isOffline = true
    await behind.send('[[say Unsent.]]')
    expect(behind.error).toBeInstanceOf(TypeError)
    isOffline = false
    await chat.send('[[say Newer.]]')
    const stored = (await page.load('chat-1')).map(textOf)
    const edited = { text: '[[say Changed.]]', messageId: behind.messages[0]?.id ?? '' }
    await behind.attached.chat.sendMessage(edited)
    expect(behind.error).toMatchObject({ code: 'newer-messages' })
    expect((await page.load('chat-1')).map(textOf)).toEqual(stored)
    expect(behind.messages.map(textOf)).toEqual([...stored, '[[say Unsent.]]'])
    await behind.attached.chat.sendMessage(edited)
    expect(behind.error).toBeUndefined()
    expect((await page.load('chat-1')).map(textOf)).toEqual(['[[say Changed.]]', 'Changed.'])
  })

  test.each(['WebSocket', 'HTTP'])(
    '[CL903] [CL915] over %s, a message that was refused says that it was not sent when the next one is sent',
    async (mode) => {
      await using testBridge = await TestBridge.open({ limits: { maxTextLength: 100 } })
      await using page = new ClientPage({ url: testBridge.url, version })
      const chat = mode === 'HTTP' ? await openSse(page.sse(), version) : await page.open()
      await chat.send('[[say Hello.]]')
      await chat.attached.catchUp()
      await chat.send('x'.repeat(200))
      expect(chat.error).toMatchObject({ code: 'too-large' })
      await chat.send('[[say Next.]]')
      await chat.until(() => notSent(chat).length > 0)
      const shown = chat.messages.map(({ id }) => id)
      expect(notSent(chat)).toEqual([shown[2]])
      const stored = (await page.load('chat-1')).map(({ id }) => id)
      expect(shown.filter((id) => id !== shown[2])).toEqual(stored)
      expect(stored).toHaveLength(4)
      await chat.send('[[say Last.]]')
      expect(await page.load('chat-1')).toHaveLength(6)
    },
  )

  test('[CL853] a message whose reply had begun when the store failed is sent after a decision', async () => {
    await using testBridge = await TestBridge.open({ whilePending: 'keep' })
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await openSse(page.sse(), version)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    const restore = failAppends(testBridge.store)
    await chat.send('[[say Next.]]')
    restore()
    expect(chat.error).toBeDefined()
    expect(chat.lastMessage?.role).toBe('assistant')
    await chat.attached.approve(id)
    await chat.untilShown('Next.')
    const stored = (await page.load('chat-1')).map(textOf)
    expect(stored.slice(-2)).toEqual(['[[say Next.]]', 'Next.'])
    expect(chat.messages.map(textOf)).toEqual(stored)
    expect(chat.error).toBeUndefined()
    expect(testBridge.wallet.payments).toHaveLength(1)
  })

  test.each([
    ['HTTP', 'generated again'],
    ['HTTP', 'edited'],
    ['a socket', 'generated again'],
    ['a live session', 'generated again'],
    ['a live session', 'edited'],
    ['HTTP', 'sent again'],
    ['a live session', 'sent again'],
  ])(
    '[CL903] over %s, a message that the server has removed stays if the store fails before it is %s',
    async (mode, way) => {
      // No sweep stores the message (TU1990).
      const limits = { sweepMs: 3_600_000 }
      await using testBridge = await TestBridge.open({ isLive: mode === 'a live session', limits })
      await using page = new ClientPage({ url: testBridge.url, version })
      const chat = await openAnswered(page, version, mode)
      const restore = failAppends(testBridge.store)
      const [, , second] = chat.messages
      const edited = { text: '[[say Three.]]', messageId: second?.id ?? '' }
      await (way === 'edited'
        ? chat.attached.chat.sendMessage(edited)
        : chat.attached.chat.regenerate())
      if (way === 'sent again') {
        // As a page does that recovers.
        chat.attached.chat.messages = chat.messages.slice(0, 2)
        await chat.attached.chat.sendMessage(second)
      }
      restore()
      expect(chat.error).toMatchObject({ code: 'unavailable' })
      expect(await page.load('chat-1')).toHaveLength(2)
      await chat.attached.catchUp()
      const sent = way === 'edited' ? '[[say Three.]]' : '[[say Two.]]'
      expect(chat.messages.slice(0, 3).map(textOf)).toEqual(['[[say One.]]', 'One.', sent])
      expect(chat.error).toMatchObject({ code: 'unavailable' })
      await chat.send('[[say Next.]]')
      await chat.until(() => notSent(chat).length > 0)
      expect(notSent(chat)).toEqual([second?.id])
      expect(chat.messages.map(textOf)).toEqual([
        '[[say One.]]',
        'One.',
        sent,
        '[[say Next.]]',
        'Next.',
      ])
    },
  )

  test.each([
    ['HTTP', 'generated again'],
    ['HTTP', 'edited'],
    ['a live session', 'generated again'],
    ['a live session', 'edited'],
  ])(
    '[TU1990] over %s, a message that has replaced stored ones is stored when the store works again; it is %s',
    async (mode, way) => {
      const limits = { sweepMs: 20 }
      await using testBridge = await TestBridge.open({ isLive: mode === 'a live session', limits })
      await using page = new ClientPage({ url: testBridge.url, version })
      const chat = await openAnswered(page, version, mode)
      const restore = failAppends(testBridge.store)
      const edited = { text: '[[say Three.]]', messageId: chat.messages[2]?.id ?? '' }
      await (way === 'edited'
        ? chat.attached.chat.sendMessage(edited)
        : chat.attached.chat.regenerate())
      expect(chat.error).toMatchObject({ code: 'unavailable' })
      restore()
      await expect.poll(async () => page.load('chat-1')).toHaveLength(4)
      const stored = await page.load('chat-1')
      expect(stored.map(textOf)).toEqual([
        '[[say One.]]',
        'One.',
        way === 'edited' ? '[[say Three.]]' : '[[say Two.]]',
        '',
      ])
      expect(stored.at(-1)?.metadata).toMatchObject({ error: { code: 'unavailable' } })
      await chat.attached.catchUp()
      expect(chat.messages).toEqual(stored)
      await chat.send('[[say Next.]]')
      expect((await page.load('chat-1')).slice(0, 4)).toEqual(stored)
      expect(chat.messages.map(textOf)).toEqual((await page.load('chat-1')).map(textOf))
      expect(chat.lastMessage && textOf(chat.lastMessage)).toBe('Next.')
    },
  )

  const ways: readonly [string, (page: ClientPage) => Promise<ClientChat>][] = [
    ['over an open socket', (page) => page.open()],
    ['in a request over a socket', (page) => page.open()],
    ['in a request over HTTP', (page) => openSse(page.sse(), version)],
    ['from an inbox', (page) => page.open()],
  ]

  test.each(ways)(
    '[CL1952] a decision that a server could not record because its database was away is sent again: %s',
    async (way, openChat) => {
      await using testBridge = await TestBridge.open()
      const live = { hold: way !== 'in a request over a socket' }
      await using page = new ClientPage({ url: testBridge.url, version, live })
      const chat = await openChat(page)
      const sent = chat.send(PAY)
      if (way.startsWith('in a request')) await sent
      const [id = ''] = await chat.untilAsked()
      const failures = failWrites(testBridge.store, 2)
      if (way === 'from an inbox') await inboxOf(testBridge).decide(id, APPROVED, { keep: true })
      else await chat.attached.approve(id)
      await chat.untilShown('Paid.')
      expect(failures.left).toBe(0)
      expect(chat.errors).toEqual([])
      expect(chat.error).toBeUndefined()
      expect(testBridge.wallet.payments).toHaveLength(1)
    },
  )

  test('[CL1952] a decision that a proxy could not pass on is sent again, unless the URL is wrong', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    void chat.send(PAY)
    const [id = ''] = await chat.untilAsked()
    const statuses = [404, 502, 503, 504]
    const ofProxy: typeof fetch = async (input, init) => {
      const status = init?.method === 'POST' ? statuses.shift() : undefined
      return status === undefined ? fetch(input, init) : new Response('<html>', { status })
    }
    const inbox = inboxOf(testBridge, ofProxy)
    const options = { keep: true }
    await expect(inbox.decide(id, APPROVED, options)).rejects.toThrow('404')
    await inbox.decide(id, APPROVED, options)
    await chat.untilShown('Paid.')
    expect(statuses).toEqual([])
  })

  test('[CL1952] a decision that no attempt could record is refused, and its approval is open', async () => {
    await using testBridge = await TestBridge.open()
    const backoff = { firstMs: 1, maxMs: 1, attempts: 3 }
    await using page = new ClientPage({ url: testBridge.url, version, live: { backoff } })
    const chat = await page.open()
    void chat.send(PAY)
    const [id = ''] = await chat.untilAsked()
    const failures = failWrites(testBridge.store, 4)
    await chat.attached.approve(id)
    expect(failures.left).toBe(0)
    expect(chat.errors).toMatchObject([{ code: 'unavailable' }])
    expect(chat.asked).toEqual([id])
    await chat.attached.approve(id)
    await chat.untilShown('Paid.')
    expect(testBridge.wallet.payments).toHaveLength(1)
  })

  test.each(['WebSocket', 'HTTP'])(
    '[CL1221] over %s, a message that is sent while a decision is in flight is not lost',
    async (mode) => {
      await using testBridge = await TestBridge.open()
      await using page = new ClientPage({ url: testBridge.url, version })
      const chat = mode === 'HTTP' ? await openSse(page.sse(), version) : await page.open()
      void chat.send(`${callPayment(50)}[[then]][[say Paid.]][[wait more]][[say Really.]]`)
      const [id = ''] = await chat.untilAsked()
      if (mode === 'HTTP') await chat.rest()
      void chat.attached.approve(id)
      await chat.untilShown('Paid.')
      const sent = chat.send('[[say Next.]]')
      testBridge.emulator.release('more')
      await sent
      await chat.untilShown('Next.')
      const texts = (await page.load('chat-1')).map(textOf)
      expect(texts).toContain('[[say Next.]]')
      expect(texts.at(-1)).toBe('Next.')
      expect(chat.error).toBeUndefined()
    },
  )

  test('[CL1221] a reply is generated again after the request of a decision, not beside it', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await openSse(page.sse(), version)
    await chat.send(`${callPayment(50)}[[then]][[say Denied.]][[wait more]][[say Really.]]`)
    const [id = ''] = chat.asked
    void chat.attached.deny(id)
    await chat.untilShown('Denied.')
    const generated = chat.attached.chat.regenerate()
    testBridge.emulator.release('more')
    await generated
    await chat.rest()
    const ids = (await page.load('chat-1')).map((message) => message.id)
    expect(chat.messages.map((message) => message.id)).toEqual(ids)
    expect(ids).toHaveLength(2)
    expect(testBridge.wallet.payments).toEqual([])
  })

  test.each(['WebSocket', 'HTTP'])(
    '[CL9] over %s, one vote of several leaves the approval open',
    async (mode) => {
      await using testBridge = await TestBridge.open(TWO_APPROVERS)
      await using page = new ClientPage({ url: testBridge.url, version })
      const chat = mode === 'HTTP' ? await openSse(page.sse(), version) : await page.open()
      void chat.send(PAY)
      const [id = ''] = await chat.untilAsked()
      if (mode === 'HTTP') await chat.rest()
      await chat.attached.approve(id)
      if (mode === 'HTTP') await chat.rest()
      await chat.until(() => chat.asked.length === 1)
      expect(callStates(chat)).toEqual(['approval-requested'])
      expect(testBridge.wallet.payments).toEqual([])
      const other = new ClientPage({ url: testBridge.url, version, key: 'taro' })
      await other.sse().decide({ approvalId: id, approved: true })
      await expect.poll(() => testBridge.wallet.payments).toHaveLength(1)
      // Over HTTP, the stream has ended at the approval request.
      if (mode === 'HTTP') return
      await chat.untilShown('Paid.')
      expect(callStates(chat)).toEqual(['output-available'])
    },
  )

  test('[CL32] over HTTP, a decision made elsewhere is shown without a further request', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const transport = page.sse()
    const { chat, refused } = open(transport, version)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    await transport.decide({ approvalId: id, approved: true })
    await chat.attached.deny(id)
    await chat.until(() => JSON.stringify(chat.messages).includes('"approved":true'))
    expect(refused).toEqual([id])
    expect(JSON.stringify(chat.messages)).not.toContain('"approved":false')
  })

  test.each(['no function that loads the messages', 'an error when they are loaded'])(
    '[CL32] a rejected decision is not shown as accepted if there is %s',
    async (given) => {
      await using testBridge = await TestBridge.open()
      await using page = new ClientPage({ url: testBridge.url, version, live: { hold: false } })
      const failing = { loadChat: () => Promise.reject(new TypeError('fetch failed')) }
      const options = given.startsWith('an error') ? failing : {}
      const { chat, refused } = open(page.transport, version, options)
      await chat.send(PAY)
      const [id = ''] = chat.asked
      await page.sse().decide({ approvalId: id, approved: false })
      await chat.attached.approve(id)
      await chat.until(() => chat.asked.length === 1 && refused.length === 1)
      expect(refused).toEqual([id])
      expect(testBridge.wallet.payments).toEqual([])
    },
  )
})

/** A chat that reports rejections, and loads its messages from the given function. */
function open(
  transport: WebSocketTransport | SseTransport,
  version: Version,
  options: AttachOptions = {},
): { chat: ClientChat; refused: string[] } {
  const chat = version.open({ id: 'chat-1', messages: [], transport })
  const refused: string[] = []
  const onRefused = (ids: readonly string[]): void => void refused.push(...ids)
  const attached = attachChat(chat, transport, { onRefused, ...options })
  return { chat: new ClientChat(chat, attached, []), refused }
}
