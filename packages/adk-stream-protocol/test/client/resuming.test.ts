import { describe, expect, test, vi } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import { expectValid } from '../approvals/support/expect-record.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { sseTransport } from '../../src/client/index.ts'
import { defer } from '../support/agents.ts'
import { textOf } from '../support/chat-probe.ts'
import { ClientPage, openSse, versions } from './support/client-page.ts'

describe.each(oneOf(versions, 'ai 7'))('$name', (version) => {
  test.each([undefined, null])(
    '[CL10] a second resumeStream() does not stop the model, live %s; its stop() does',
    async (live) => {
      const turns = live === null ? { live: undefined as never } : {}
      await using testBridge = await TestBridge.open({ ...turns, disconnectGraceMs: 60_000 })
      await using before = new ClientPage({ url: testBridge.url, version })
      const first = await before.open()
      const asked = first.send('[[say One.]][[wait more]][[say Two.]][[wait never]]')
      await first.untilShown('One.')
      await using page = new ClientPage({ url: testBridge.url, version })
      const chat = await page.open()
      void chat.resume()
      await chat.untilShown('One.')
      // Only the page that resumes reads it.
      before.transport.close()
      await asked
      // When the server responds, it has processed the earlier close.
      await page.transport.ping()
      const second = chat.resume()
      const third = chat.resume()
      await chat.until(({ status }) => status === 'streaming')
      testBridge.emulator.release('more')
      await chat.untilShown('One.Two.')
      await chat.stop()
      await Promise.all([second, third])
      expect(chat.error).toBeUndefined()
      const { api } = page.sse()
      await vi.waitFor(
        async () => {
          const { messages, running } = await api.loadChat('chat-1')
          expect(running).toBe(false)
          expect(messages.at(-1)).toMatchObject({ metadata: { stopped: true } })
        },
        { timeout: 120_000, interval: 10 },
      )
      await expectValid(chat.messages)
    },
  )

  test('[CL10] stop() in another tab stops the reply that the first tab reads', async () => {
    await using testBridge = await TestBridge.open({ disconnectGraceMs: 60_000 })
    await using first = new ClientPage({ url: testBridge.url, version })
    const started = await first.open()
    const reply = started.send('[[say One.]][[wait never]]')
    await started.untilShown('One.')
    await using second = new ClientPage({ url: testBridge.url, version })
    const chat = await second.open()
    const resumed = chat.resume()
    await chat.untilShown('One.')
    await chat.stop()
    // The reply ends in both tabs. Without the stop, the first tab would wait for ever.
    await Promise.all([resumed, reply])
    const { messages } = await second.sse().api.loadChat('chat-1')
    expect(messages.at(-1)).toMatchObject({ metadata: { stopped: true } })
  })

  test.each(['HTTP', 'socket', 'a socket that was cut'])(
    '[CL10] stop() before the server has found the reply to resume stops it, over %s',
    async (mode) => {
      await using testBridge = await TestBridge.open({
        live: undefined as never,
        disconnectGraceMs: 60_000,
      })
      await using first = new ClientPage({ url: testBridge.url, version })
      const started = await first.open()
      const reply = started.send('[[wait never]]')
      await testBridge.emulator.nextRequest()
      await using second = new ClientPage({ url: testBridge.url, version })
      const chat = mode === 'HTTP' ? await openSse(second.sse(), version) : await second.open()
      if (mode !== 'HTTP') await second.transport.ping()
      const resumed = chat.resume()
      if (mode === 'a socket that was cut') second.cut()
      await chat.stop()
      await Promise.all([resumed, reply])
      const { messages } = await second.sse().loadChat('chat-1')
      expect(messages.at(-1)).toMatchObject({ metadata: { stopped: true } })
      // A stop that names nothing could be late, and stop the next reply.
      expect(second.sent).not.toContainEqual(expect.objectContaining({ type: 'stop' }))
    },
  )

  test('[CL10] [CL1951] a stop before the server has found the reply to resume, over a socket, does not stop the next reply', async () => {
    await using testBridge = await TestBridge.open({ disconnectGraceMs: 60_000 })
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    await page.transport.ping()
    const resumed = chat.resume()
    await chat.stop()
    await chat.send('[[say Next.]]')
    await resumed
    expect(chat.text).toBe('Next.')
    // The server could receive an `abort` late, and find the next reply.
    expect(page.types).toEqual(['ping', 'resume', 'leave', 'send'])
  })

  test.each(['HTTP', 'socket'])(
    '[CL1602] the error of a message stays if nothing is running that could be resumed, %s',
    async (mode) => {
      await using testBridge = await TestBridge.open({ limits: { maxTextLength: 100 } })
      await using page = new ClientPage({ url: testBridge.url, version })
      const chat = mode === 'HTTP' ? await openSse(page.sse(), version) : await page.open()
      await chat.send('x'.repeat(200))
      const { error } = chat
      expect(chat.refusal).toBe('too-large')
      await chat.resume()
      expect(chat.error).toBe(error)
      expect(chat.status).toBe('error')
      await chat.send('[[say Next.]]')
      expect(chat.error).toBeUndefined()
    },
  )

  test('[CL1602] a message that could not be sent while the page resumed a running turn stays, with its error', async () => {
    await using testBridge = await TestBridge.open({ disconnectGraceMs: 600_000 })
    const [asked, responds] = [defer(), defer()]
    let isLost = false
    const transport = sseTransport({
      url: testBridge.url,
      headers: { 'x-api-key': 'hanako' },
      fetch: async (input, init) => {
        if (init?.method === 'POST' && isLost) throw new TypeError('fetch failed')
        const response = await fetch(input, init)
        if (init?.method !== 'POST' && String(input).includes('/stream')) {
          asked.resolve()
          await responds.promise
        }
        return response
      },
    })
    await using before = new ClientPage({ url: testBridge.url, version })
    const first = await openSse(before.sse(), version)
    const started = first.send('[[say One.]][[wait more]][[say Two.]]')
    await first.untilShown('One.')
    const chat = await openSse(transport, version)
    const resumed = chat.resume()
    await asked.promise
    isLost = true
    await chat.send('[[say Never.]]')
    expect(chat.status).toBe('error')
    responds.resolve()
    await chat.untilShown('One.')
    testBridge.emulator.release('more')
    await Promise.all([started, resumed])
    expect(chat.status).toBe('error')
    expect(chat.error?.message).toBe('fetch failed')
    expect(chat.messages.map(textOf)).toContain('[[say Never.]]')
  })

  test.each([
    { sent: 'fails', error: 'fetch failed' },
    { sent: 'is answered', error: undefined },
  ])(
    '[CL1602] a message that is sent while the page looks for a running turn, and $sent, has the error $error',
    async ({ sent, error }) => {
      await using testBridge = await TestBridge.open()
      const [asked, responds] = [defer(), defer()]
      let isLost = true
      const transport = sseTransport({
        url: testBridge.url,
        headers: { 'x-api-key': 'hanako' },
        fetch: async (input, init) => {
          if (init?.method === 'POST' && isLost) throw new TypeError('fetch failed')
          const response = await fetch(input, init)
          if (response.status !== 204) return response
          asked.resolve()
          await responds.promise
          return response
        },
      })
      const chat = await openSse(transport, version)
      await chat.send('[[say Never.]]')
      expect(chat.status).toBe('error')
      const resumed = chat.resume()
      await asked.promise
      isLost = sent === 'fails'
      const reply = chat.send('[[say One.]][[wait more]][[say Two.]]')
      await chat.until(({ status }) => status === 'streaming' || status === 'error')
      responds.resolve()
      await resumed
      expect(chat.error?.message).toBe(error)
      testBridge.emulator.release('more')
      await reply
      expect(chat.error?.message).toBe(error)
    },
  )
})
