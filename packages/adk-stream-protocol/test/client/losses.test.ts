import type { Chat } from '@ai-sdk/react'
import { WebSocketServer } from 'ws'
import { once } from 'node:events'
import { describe, expect, test, vi } from 'vitest'

import { portOf } from '../../../../test/support/listen.ts'
import { oneOf } from '../../../../test/support/long-run.ts'
import type { AdkUIMessage, WireEvent } from '../../src/client/index.ts'
import { recoverChat } from '../../src/react/hooks/chat-actions.ts'
import { expectValid } from '../approvals/support/expect-record.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { defer } from '../support/agents.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { ClientPage, versions } from './support/client-page.ts'

const WAIT = { timeout: 120_000, interval: 10 }
const PAY = `${callPayment(50)}[[then]][[say Done.]]`

/** Loses what a page sends over its socket. */
function loseFrames({ sockets }: ClientPage): void {
  const [socket] = sockets
  if (socket) socket.send = () => undefined
}

describe.each(oneOf(versions, 'ai 6'))('$name', (version) => {
  test('[CL7] a connection that is lost during a reply is restored, and the message is complete', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    void chat.send('[[say One.]][[wait more]][[say Two.]]')
    await chat.untilShown('One.')
    page.cut()
    await vi.waitFor(() => expect(page.types).toEqual(['send', 'resume']), WAIT)
    testBridge.emulator.release('more')
    await chat.untilShown('One.Two.')
    await chat.rest()
    expect(chat.error).toBeUndefined()
    expect(chat.messages).toHaveLength(2)
    expect(page.types).toEqual(['send', 'resume'])
    await expectValid(chat.messages)
  })

  test('[CL7] an approval stays open when the connection is lost, is decided afterwards, and the rest is read', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    void chat.send(PAY)
    const [id = ''] = await chat.untilAsked()
    for (const sockets of [2, 3]) {
      page.cut()
      await vi.waitFor(
        () => expect([page.sockets.length, page.types.at(-1)]).toEqual([sockets, 'resume']),
        WAIT,
      )
      await page.transport.ping()
      expect([chat.status, chat.asked.length]).toEqual(['streaming', 1])
    }
    await chat.click({ id, approved: true })
    await chat.untilShown('Done.')
    await chat.rest()
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(chat.messages).toHaveLength(2)
    expect(chat.error).toBeUndefined()
    expect(toolParts(chat.lastMessage)).toMatchObject([{ state: 'output-available' }])
    await expectValid(chat.messages)
  })

  test('[CL7] a decision whose acknowledgement is lost is sent again, and counts once', async () => {
    const started = defer()
    const gate = defer()
    const before = (): Promise<void> => {
      started.resolve()
      return gate.promise
    }
    await using testBridge = await TestBridge.open({
      tools: (wallet) => [paymentTool(wallet, { before })],
    })
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    void chat.send(PAY)
    const [id = ''] = await chat.untilAsked()
    // The socket closes after the frame was sent and before the response can arrive.
    page.sockets[0]?.pause()
    const clicked = chat.click({ id, approved: true })
    await started.promise
    page.cut()
    await clicked
    gate.resolve()
    await chat.untilShown('Done.')
    await chat.rest()
    expect(page.types.filter((type) => type === 'decide')).toHaveLength(2)
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(chat.errors).toEqual([])
    await expectValid(chat.messages)
  })

  test('[CL7] a reply that ended while the connection was lost is loaded from the server', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    void chat.send('[[say One.]][[wait more]][[say Two.]]')
    await chat.untilShown('One.')
    await using other = new ClientPage({ url: testBridge.url, version })
    const second = await other.open()
    const read = second.resume()
    await second.untilShown('One.')
    page.sockets[0]?.pause()
    testBridge.emulator.release('more')
    await read
    page.cut()
    await chat.untilShown('One.Two.')
    await chat.rest()
    expect(chat.error).toBeUndefined()
    await expectValid(chat.messages)
  })

  test.each(['hello', 'start', 'chunk'])(
    '[CL7] a message whose connection is lost after "%s" gets one reply',
    async (moment) => {
      await using testBridge = await TestBridge.open()
      const seen: string[] = []
      const pages: ClientPage[] = []
      const live = {
        observe: (event: WireEvent): void => {
          if (event.type !== 'frame' || event.direction !== 'in') return
          const type = 'type' in event.frame ? String(event.frame.type) : ''
          seen.push(type)
          if (seen.filter((each) => each === moment).length === 1 && type === moment)
            pages[0]?.cut()
        },
      }
      await using page = new ClientPage({ url: testBridge.url, version, live })
      pages.push(page)
      const chat = await page.open()
      void chat.send('[[say Hello.]]')
      await chat.untilShown('Hello.')
      await chat.rest()
      expect(page.sockets).toHaveLength(2)
      expect(chat.error).toBeUndefined()
      expect(chat.messages).toHaveLength(2)
      expect(await page.load('chat-1')).toHaveLength(2)
    },
  )

  test('[CL7] a message whose frame is lost while another turn of the chat runs is sent again', async () => {
    await using testBridge = await TestBridge.open({ whileRunning: 'queue' })
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = page.openBare()
    await chat.send('[[say Hello.]]')
    loseFrames(page)
    const sent = chat.send('[[say Second.]]')
    await using other = new ClientPage({ url: testBridge.url, version })
    const second = await other.open()
    const begun = second.send('[[say One.]][[wait more]]')
    await second.untilShown('One.')
    await vi.waitFor(() => expect(page.types).toEqual(['send', 'send']), WAIT)
    page.cut()
    await vi.waitFor(() => expect(page.types).toHaveLength(3), WAIT)
    testBridge.emulator.release('more')
    await Promise.all([sent, begun])
    expect(chat.text).toBe('Second.')
    expect(await page.load('chat-1')).toHaveLength(6)
    expect(chat.error).toBeUndefined()
  })

  test('[CL7] a regenerate whose frame is lost while another turn of the chat runs fails, and the person can try again', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    await chat.send('[[say Hello.]]')
    loseFrames(page)
    const again = chat.regenerate()
    await vi.waitFor(() => expect(page.types.slice(-2)).toEqual(['send', 'send']), WAIT)
    await using other = new ClientPage({ url: testBridge.url, version })
    const second = await other.open()
    const begun = second.send('[[say One.]][[wait more]]')
    await second.untilShown('One.')
    page.cut()
    await vi.waitFor(() => expect(page.types.at(-1)).toBe('resume'), WAIT)
    await page.transport.ping()
    testBridge.emulator.release('more')
    await Promise.all([again.catch(() => undefined), begun])
    await chat.rest()
    expect(chat.error).toBeDefined()
    expect(await page.load('chat-1')).toHaveLength(4)
  })

  test('[CL7] a regenerate whose frame is lost is sent again', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    await chat.send('[[say Hello.]]')
    const old = chat.lastMessage?.id
    loseFrames(page)
    const again = chat.regenerate()
    await vi.waitFor(() => expect(page.types).toEqual(['send', 'send']), {
      timeout: 120_000,
      interval: 10,
    })
    page.cut()
    await again
    await chat.rest()
    expect(chat.text).toBe('Hello.')
    expect(chat.lastMessage?.id).not.toBe(old)
    expect(page.types.slice(-2)).toEqual(['resume', 'send'])
    expect(await page.load('chat-1')).toHaveLength(2)
    expect(chat.error).toBeUndefined()
  })

  test('[CL7] an edited message whose frame is lost is sent again', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    await chat.send('[[say Hello.]]')
    loseFrames(page)
    const messageId = chat.messages[0]?.id ?? ''
    const edited = chat.attached.chat.sendMessage({ text: '[[say Changed.]]', messageId })
    await vi.waitFor(() => expect(page.types).toEqual(['send', 'send']), WAIT)
    page.cut()
    await edited
    await chat.rest()
    expect(chat.error).toBeUndefined()
    expect(page.types.slice(-2)).toEqual(['resume', 'send'])
    expect(chat.messages.map(textOf)).toEqual(['[[say Changed.]]', 'Changed.'])
    expect((await page.load('chat-1')).map(textOf)).toEqual(['[[say Changed.]]', 'Changed.'])
  })

  test('[CL7] [CL903] an edited message whose frame is lost while another turn of the chat runs fails and stays in the page; it removes no message that the page has not shown', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    await chat.send('[[say Hello.]]')
    await using other = new ClientPage({ url: testBridge.url, version })
    const second = await other.open()
    loseFrames(page)
    const messageId = chat.messages[0]?.id ?? ''
    const edited = chat.attached.chat.sendMessage({ text: '[[say Changed.]]', messageId })
    await vi.waitFor(() => expect(page.types).toEqual(['send', 'send']), WAIT)
    const begun = second.send('[[say One.]][[wait more]]')
    await second.untilShown('One.')
    page.cut()
    await vi.waitFor(() => expect(page.types.at(-1)).toBe('resume'), WAIT)
    await page.transport.ping()
    testBridge.emulator.release('more')
    await Promise.all([edited, begun])
    await chat.rest()
    expect(chat.error).toBeInstanceOf(TypeError)
    expect(chat.messages[0]).toMatchObject({ id: messageId, parts: [{ text: '[[say Changed.]]' }] })
    // The person has not seen the message of the other page.
    await recoverChat(chat.attached.chat as unknown as Chat<AdkUIMessage>, page.sse().api)
    expect(chat.error).toMatchObject({ code: 'newer-messages' })
    expect(chat.messages).toHaveLength(4)
    expect(await page.load('chat-1')).toHaveLength(4)
  })

  test.each(['request', 'reply'])(
    '[CL7] a message that is sent with regenerate() gets one reply if the %s is lost',
    async (lost) => {
      await using testBridge = await TestBridge.open()
      await using page = new ClientPage({ url: testBridge.url, version })
      const chat = await page.open()
      await chat.send('[[say Hello.]]')
      if (lost === 'request') loseFrames(page)
      else page.sockets[0]?.pause()
      const parts = [{ type: 'text', text: '[[say Second.]]' }]
      chat.attached.chat.messages = [...chat.messages, { id: 'unsent', role: 'user', parts }]
      const again = chat.regenerate()
      await vi.waitFor(() => expect(page.types).toEqual(['send', 'send']), WAIT)
      const stored = lost === 'reply' ? 4 : 2
      await vi.waitFor(async () => expect(await page.load('chat-1')).toHaveLength(stored), WAIT)
      page.cut()
      await again
      await chat.rest()
      expect(chat.error).toBeUndefined()
      expect(chat.messages).toHaveLength(4)
      expect(chat.text).toBe('Second.')
      expect(testBridge.asked).toBe(2)
    },
  )

  test.each([true, false])(
    '[CL8] a reply that the server stopped without grace time is not shown as complete, reloads: %s',
    async (reloads) => {
      await using testBridge = await TestBridge.open({
        live: undefined as never,
        disconnectGraceMs: 0,
      })
      await using page = new ClientPage({ url: testBridge.url, version })
      const chat = await page.open('chat-1', { reloads })
      const answer = chat.send('[[say One.]][[wait never]]')
      await chat.untilShown('One.')
      page.cut()
      await answer
      await chat.rest()
      const isStopped = JSON.stringify(chat.lastMessage).includes('"stopped":true')
      const isDisconnect = chat.error instanceof TypeError && chat.error.message.includes('network')
      expect(isDisconnect || (reloads && isStopped)).toBe(true)
    },
  )

  test('[CL8] a chat that is not attached gets an error, and can resume', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = page.openBare()
    const answer = chat.send('[[say One.]][[wait more]][[say Two.]]')
    await chat.untilShown('One.')
    page.cut()
    await answer
    expect(chat.error).toBeInstanceOf(TypeError)
    expect(chat.error?.message).toContain('network')
    const resumed = chat.resume()
    await chat.until(({ status }) => status === 'streaming')
    testBridge.emulator.release('more')
    await resumed
    expect(chat.text).toBe('One.Two.')
  })

  test('[CL8] the transport gives up after the configured attempts; the next message tries again', async () => {
    await using testBridge = await TestBridge.open()
    let isThere = false
    const url = (): string => `${isThere ? testBridge.url : 'http://127.0.0.1:1'}/live`
    const live = {
      url: () => url().replace('http', 'ws'),
      backoff: { firstMs: 1, maxMs: 2, attempts: 3 },
    }
    await using page = new ClientPage({ url: testBridge.url, version, live })
    const chat = await page.open()
    await chat.send('[[say Hello.]]')
    expect(chat.status).toBe('error')
    expect(chat.error?.message).toContain('network')
    expect(page.sockets).toHaveLength(4)
    isThere = true
    await chat.send('[[say Hello.]]')
    expect(chat.text).toBe('Hello.')
  })

  test.each([
    { code: 4401, sockets: 1, error: 'signed out' },
    { code: 1008, sockets: 1 },
    { code: 4408, sockets: 3 },
    { code: 1001, sockets: 3 },
    { code: 1011, sockets: 3 },
  ])(
    '[CL8] a socket that closes with $code is opened again or not',
    async ({ code, sockets, error = 'network' }) => {
      const server = new WebSocketServer({ port: 0, host: '127.0.0.1' })
      server.on('connection', (socket) => socket.on('message', () => socket.close(code)))
      await once(server, 'listening')
      const port = portOf(server)
      const live = {
        url: `ws://127.0.0.1:${port}`,
        backoff: { firstMs: 1, maxMs: 2, attempts: 2 },
      }
      await using page = new ClientPage({ url: '', version, live })
      const failed = page.transport.decide({ chatId: 'chat-1', approvalId: 'a', approved: true })
      page.transport.watch('chat-1')
      await expect(failed).rejects.toThrow(error)
      expect(page.sockets).toHaveLength(sockets)
      server.close()
    },
  )

  test('[CL10] stop() stops the model, also while there is no connection', async () => {
    await using testBridge = await TestBridge.open({ disconnectGraceMs: 60_000 })
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    const answer = chat.send('[[say So far.]][[wait never]][[say Not this.]]')
    await chat.untilShown('So far.')
    await chat.stop()
    await answer
    expect(page.types).toEqual(['send', 'abort', 'ping'])
    expect(chat.text).toBe('So far.')
    const again = chat.send('[[say Once more.]][[wait never]]')
    await chat.untilShown('Once more.')
    page.cut()
    await chat.stop()
    await again
    await chat.send('[[say Next.]]')
    expect(chat.text).toBe('Next.')
    expect(chat.error).toBeUndefined()
  })

  test('[CL10] a stop that is lost with its connection is sent again over the next one', async () => {
    await using testBridge = await TestBridge.open({ disconnectGraceMs: 60_000 })
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    const reply = chat.send('[[say So far.]][[wait never]]')
    await chat.untilShown('So far.')
    loseFrames(page)
    await chat.stop()
    await reply
    page.cut()
    const { id } = chat.lastMessage ?? {}
    await expect
      .poll(async () => (await page.load('chat-1')).at(-1), WAIT)
      .toMatchObject({ id, metadata: { stopped: true } })
    expect(page.sent).toContainEqual({ type: 'stop', id: 'chat-1', messageId: id })
    await chat.rest()
    expect(chat.text).toBe('So far.')
    expect(chat.errors).toEqual([])
  })

  test('[CL10] [CL1951] stop() of a reply that the page resumes without a connection stops it', async () => {
    await using testBridge = await TestBridge.open({ disconnectGraceMs: 60_000 })
    await using first = new ClientPage({ url: testBridge.url, version })
    const started = await first.open()
    const reply = started.send('[[say So far.]][[wait never]]')
    await started.untilShown('So far.')
    await using second = new ClientPage({ url: testBridge.url, version })
    const chat = await second.open()
    const resumed = chat.resume()
    expect(second.types).toEqual([])
    await chat.stop()
    await Promise.all([resumed, reply])
    const { messages } = await second.sse().loadChat('chat-1')
    expect(messages.at(-1)).toMatchObject({ metadata: { stopped: true } })
  })
})
