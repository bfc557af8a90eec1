import { describe, expect, test, vi } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import { expectValid } from '../approvals/support/expect-record.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { ClientPage, versions } from './support/client-page.ts'

describe.each(oneOf(versions, 'ai 7'))('$name', (version) => {
  test.each([undefined, null])(
    '[CL23] a second resumeStream() does not stop the model, live %s; its stop() does',
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

  test('[CL23] stop() in another tab stops the reply that the first tab reads', async () => {
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
})
