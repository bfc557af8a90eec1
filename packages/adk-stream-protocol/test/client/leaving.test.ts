import { describe, expect, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { textOf } from '../support/chat-probe.ts'
import { ClientPage, versions } from './support/client-page.ts'

const PAY = `${callPayment(50)}[[then]][[say Paid.]]`
/** Fewer than the chats or visits of a test. A stream that stays open would exceed it. */
const limits = { maxRequestsPerSocket: 3 }

describe.each(oneOf(versions, 'ai 7'))('$name', (version) => {
  test('[CL28] a chat that is closed and opened again has one stream on the socket', async () => {
    await using testBridge = await TestBridge.open({ limits })
    await using page = new ClientPage({ url: testBridge.url, version })
    let chat = await page.open()
    void chat.send(PAY)
    const [id = ''] = await chat.untilAsked()
    for (let visit = 0; visit < 5; visit += 1) {
      const before = chat
      before.attached.detach()
      chat = await page.open()
      void chat.resume()
      await chat.untilAsked()
      await before.rest()
    }
    await chat.attached.approve(id)
    await chat.untilShown('Paid.')
    await chat.rest()
    expect(chat.errors).toEqual([])
    expect(testBridge.wallet.payments).toHaveLength(1)
  })

  test('[CL28] [WS25] closed chats that wait for approval have no stream, and are complete when they are opened again', async () => {
    await using testBridge = await TestBridge.open({ limits })
    await using page = new ClientPage({ url: testBridge.url, version })
    for (const name of ['a', 'b', 'c', 'd', 'e']) {
      const chat = await page.open(name)
      void chat.send(PAY)
      await chat.untilAsked()
      chat.attached.detach()
      await chat.rest()
      expect(chat.error).toBeUndefined()
    }
    const chat = await page.open('a')
    void chat.resume()
    const [id = ''] = await chat.untilAsked()
    await chat.attached.approve(id)
    await chat.untilShown('Paid.')
    await chat.rest()
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(page.types).not.toContain('abort')
  })

  test('[CL28] a reply continues to its end when its chat is closed', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const left = await page.open()
    void left.send('[[say One.]][[wait more]][[say Two.]]')
    await left.untilShown('One.')
    left.attached.detach()
    await page.transport.ping()
    testBridge.emulator.release('more')
    await left.untilShown('One.Two.')
    expect((await page.load('chat-1')).map(textOf).at(-1)).toBe('One.Two.')
    expect(page.types).not.toContain('leave')
  })

  test('[CL28] chunks for a closed chat are not passed to the next chat with the same id', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const left = await page.open()
    void left.send('[[say One.]][[wait more]][[say Two.]]')
    await left.untilShown('One.')
    left.attached.detach()
    const chat = await page.open()
    let progress = 0
    chat.attached.onProgress(() => (progress += 1))
    testBridge.emulator.release('more')
    await left.untilShown('One.Two.')
    await left.rest()
    expect(progress).toBe(0)
  })
})
