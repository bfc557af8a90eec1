import { describe, expect, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import { attachChat, webSocketTransport, sseTransport } from '../../src/client/index.ts'
import type { WebSocketTransport, SseTransport } from '../../src/client/index.ts'
import { WebSocket } from 'ws'

import { expectValid } from '../approvals/support/expect-record.ts'
import { FREE_MODEL, TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { toLiveUrl } from '../sockets/support/socket-client.ts'
import { ClientChat, versions, type Version } from './support/client-page.ts'
import { CuttableFetch } from './support/cuttable-fetch.ts'

const HEADERS = { 'x-api-key': 'hanako' }
const PAY = `${callPayment(50)}[[then]][[say Paid.]]`

class PageSocket extends WebSocket {
  static newest: PageSocket | undefined

  constructor(address: string, protocols?: string | string[]) {
    super(address, protocols, { headers: HEADERS })
    PageSocket.newest = this
  }
}

/** A tab with a chat that follows the feed. */
class Tab implements AsyncDisposable {
  readonly chat: ClientChat
  readonly net: CuttableFetch
  readonly approvals: string[]
  readonly #transport: SseTransport | WebSocketTransport

  private constructor(transport: SseTransport | WebSocketTransport, opened: Omit<Tab, never>) {
    this.#transport = transport
    this.chat = opened.chat
    this.net = opened.net
    this.approvals = opened.approvals
  }

  static async open(testBridge: TestBridge, version: Version, mode: string): Promise<Tab> {
    const net = new CuttableFetch()
    const { url } = testBridge
    const http = sseTransport({ url, headers: HEADERS, fetch: net.fetch })
    const { api } = http
    const live = { url: toLiveUrl(url), webSocket: PageSocket, hold: mode === 'held' }
    const transport = mode === 'HTTP' ? http : webSocketTransport(live)
    const { messages } = await api.loadChat('chat-1')
    const chat = version.open({ id: 'chat-1', messages, transport })
    const errors: unknown[] = []
    const approvals: string[] = []
    const attached = attachChat(chat, transport, {
      api: {
        loadChat: (id) => api.loadChat(id),
        watchChat: (id, listener) =>
          api.watchChat(id, listener, { backoff: { firstMs: 1, maxMs: 5 } }),
      },
      onApproval: ({ state }) => approvals.push(state),
      onError: (error) => errors.push(error),
    })
    const opened = { chat: new ClientChat(chat, attached, errors), net, approvals }
    return new Tab(transport, opened as Tab)
  }

  [Symbol.asyncDispose](): Promise<void> {
    this.chat.attached.detach()
    if ('close' in this.#transport) this.#transport.close()
    return Promise.resolve()
  }
}

describe.each(oneOf(versions, 'ai 7'))('$name', (version) => {
  describe.each(['held', 'turn by turn', 'HTTP'])('%s', (mode) => {
    test('[CL21] two tabs with one chat: messages and decisions of one are shown in the other', async () => {
      await using testBridge = await TestBridge.open()
      await using one = await Tab.open(testBridge, version, mode)
      await using two = await Tab.open(testBridge, version, mode)
      void one.chat.send(PAY)
      const [id = ''] = await two.chat.untilAsked()
      await one.chat.untilAsked()
      await two.chat.attached.approve(id)
      await Promise.all([one.chat.untilShown('Paid.'), two.chat.untilShown('Paid.')])
      await Promise.all([one.chat.rest(), two.chat.rest()])
      for (const { chat, approvals } of [one, two]) {
        expect(chat.messages).toHaveLength(2)
        // A tab that read the turn from its start knows the decision when it has loaded the message again.
        await expect
          .poll(() => toolParts(chat.lastMessage))
          .toMatchObject([{ state: 'output-available', approval: { id, approved: true } }])
        expect(chat.error).toBeUndefined()
        expect(chat.errors).toEqual([])
        expect(approvals).toContain('approved')
        await expectValid(chat.messages)
      }
      expect(testBridge.wallet.payments).toHaveLength(1)
      void two.chat.send('[[say Back.]]')
      await Promise.all([one.chat.untilShown('Back.'), two.chat.untilShown('Back.')])
    })

    test('[CL916] a tab that stops a reply which has ended on the server shows the whole reply', async () => {
      await using testBridge = await TestBridge.open()
      await using tab = await Tab.open(testBridge, version, mode)
      tab.net.stallAfter('One.')
      const reply = tab.chat.send('[[say One.]][[wait more]][[say Two.]]')
      await tab.chat.untilShown('One.')
      PageSocket.newest?.pause()
      testBridge.emulator.release('more')
      const { api } = sseTransport({ url: testBridge.url, headers: HEADERS })
      await expect.poll(async () => (await api.loadChat('chat-1')).running).toBe(false)
      await tab.chat.stop()
      await reply
      expect(tab.chat.text).toBe('One.')
      PageSocket.newest?.resume()
      await tab.chat.untilShown('One.Two.')
    })

    test('[CL21] a tab whose reply has failed shows what another tab writes after it', async () => {
      await using testBridge = await TestBridge.open()
      await using one = await Tab.open(testBridge, version, mode)
      await using two = await Tab.open(testBridge, version, mode)
      await one.chat.send('[[say No]][[fail 400 broken]]')
      expect(one.chat.error).toBeDefined()
      void two.chat.send('[[say Back.]]')
      await Promise.all([one.chat.untilShown('Back.'), two.chat.untilShown('Back.')])
    })

    test('[CL21] [CL32] of two tabs that decide at the same time, one decision counts, and both show the whole reply', async () => {
      await using testBridge = await TestBridge.open()
      await using one = await Tab.open(testBridge, version, mode)
      await using two = await Tab.open(testBridge, version, mode)
      void one.chat.send(`${callPayment(50)}[[then]][[wait paid]][[say Paid.]]`)
      const [id = ''] = await two.chat.untilAsked()
      await one.chat.untilAsked()
      if (mode !== 'held') await one.chat.rest()
      const decisions = [one.chat.attached.approve(id), two.chat.attached.deny(id)]
      // The reply after the accepted decision is being written while the other decision is rejected.
      await Promise.all(decisions)
      await two.chat.until(() => two.chat.errors.length > 0 || two.chat.error !== undefined)
      expect(toolParts(two.chat.messages.at(-1))).toHaveLength(1)
      testBridge.emulator.release('paid')
      await Promise.all([one.chat.untilShown('Paid.'), two.chat.untilShown('Paid.')])
      await Promise.all([one.chat.rest(), two.chat.rest()])
      for (const { chat } of [one, two]) {
        expect(chat.messages).toHaveLength(2)
        expect(toolParts(chat.lastMessage)).toMatchObject([
          { state: 'output-available', approval: { id, approved: true } },
        ])
      }
      expect(testBridge.wallet.payments).toHaveLength(1)
    })

    test.each([
      { by: 'an inbox', deadlineMs: 60_000, state: 'output-denied' },
      { by: 'the clock', deadlineMs: 300, state: 'output-error' },
    ])(
      '[CL21] a decision by $by is shown in a tab that only watches',
      async ({ by, deadlineMs, state }) => {
        await using testBridge = await TestBridge.open({ approvalDeadlineMs: deadlineMs })
        await using tab = await Tab.open(testBridge, version, mode)
        const inbox = sseTransport({ url: testBridge.url, headers: HEADERS })
        const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: PAY }] }
        const response = await fetch(`${testBridge.url}/stream`, {
          method: 'POST',
          headers: { ...HEADERS, 'content-type': 'application/json' },
          body: JSON.stringify({ id: 'chat-1', messages: [message] }),
        })
        await response.text()
        // On a busy machine, the approval may expire before the tab has shown it.
        if (by === 'an inbox') {
          const [id = ''] = await tab.chat.untilAsked()
          await inbox.api.decide(id, { approved: false, reason: 'too much' })
        }
        await tab.chat.untilShown('Paid.')
        await tab.chat.rest()
        expect(toolParts(tab.chat.lastMessage)).toMatchObject([{ state }])
        await expectValid(tab.chat.messages)
      },
    )

    test('[CL21] a tab whose feed was lost catches up when it is back', async () => {
      await using testBridge = await TestBridge.open()
      await using one = await Tab.open(testBridge, version, mode)
      await using two = await Tab.open(testBridge, version, mode)
      await one.chat.send('[[say One.]]')
      await two.chat.untilShown('One.')
      await two.chat.rest()
      two.net.hold()
      two.net.cut()
      await one.chat.send('[[say Two.]]')
      two.net.go()
      await two.chat.untilShown('Two.')
      expect(two.chat.messages).toHaveLength(4)
    })
  })

  test('[CL21] a turn that the chat requested is not read twice', async () => {
    await using testBridge = await TestBridge.open()
    await using tab = await Tab.open(testBridge, version, 'HTTP')
    await tab.chat.send('[[say One.]]')
    await tab.chat.send('[[say Two.]]')
    await tab.chat.rest()
    const streams = tab.net.requests.filter((request) => request.endsWith('/stream'))
    expect(streams).toEqual(['POST /stream', 'POST /stream'])
  })

  test.each(['HTTP', 'held'])(
    '[AP510] over %s, tabs show the outcome of a typed reply without a reload',
    async (mode) => {
      await using testBridge = await TestBridge.open({
        approvals: { process_payment: { acceptReplies: true } },
      })
      await using one = await Tab.open(testBridge, version, mode)
      await using two = await Tab.open(testBridge, version, mode)
      void one.chat.send(PAY)
      await one.chat.untilAsked()
      await two.chat.untilAsked()
      await one.chat.send('yes, send it')
      for (const { chat } of [one, two]) {
        await chat.until(({ messages }) => textOf(messages[1]) === 'Paid.' && messages.length === 4)
        expect(toolParts(chat.messages[1])).toMatchObject([{ state: 'output-available' }])
        expect(chat.messages.map(textOf)).toEqual([PAY, 'Paid.', 'yes, send it', ''])
      }
      await expectValid(one.chat.messages)
      expect(testBridge.wallet.payments).toHaveLength(1)
    },
  )

  test('[CL21] an older approval that another tab decides continues in its own message', async () => {
    await using testBridge = await TestBridge.open({ liveModel: FREE_MODEL })
    await using one = await Tab.open(testBridge, version, 'held')
    await using two = await Tab.open(testBridge, version, 'held')
    void one.chat.send(callPayment(50))
    const [id = ''] = await one.chat.untilAsked()
    await one.chat.send('[[say Meanwhile.]]')
    await two.chat.until(({ messages }) => messages.map(textOf).at(-1) === 'Meanwhile.')
    await one.chat.attached.approve(id)
    for (const { chat } of [one, two])
      await chat.until(() => toolParts(chat.messages[1])[0]?.state === 'output-available')
    expect(two.chat.messages).toHaveLength(4)
  })
})
