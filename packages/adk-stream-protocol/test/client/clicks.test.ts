import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { oneOf } from '../../../../test/support/long-run.ts'
import type { WireEvent } from '../../src/client/index.ts'
import { runBrowserTools } from '../../src/client/index.ts'
import { browserTool } from '../../src/modules/browser/browser-tool.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { ClientPage, versions } from './support/client-page.ts'

describe.each(oneOf(versions, 'ai 7'))('$name', (version) => {
  test('[CL3] a second click does not change what the first one approved', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    void chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
    const [id = ''] = await chat.untilAsked()
    await Promise.all([
      chat.attached.approve(id),
      chat.attached.approve(id, { args: { amount: 5_000, recipient: 'Mallory' } }),
    ])
    await chat.untilShown('Paid.')
    await chat.rest()
    expect(testBridge.wallet.payments).toMatchObject([{ amount: 50 }])
  })

  test('[CL2] a decision shows its outcome, also if the stream is about to end', async () => {
    await using testBridge = await TestBridge.open()
    const pages: ClientPage[] = []
    const live = {
      hold: false,
      observe: (event: WireEvent): void => {
        const isAsked = event.type === 'chunk' && event.chunk.type === 'tool-approval-request'
        // The rest of the reply does not arrive before the click.
        if (isAsked) pages[0]?.sockets[0]?.pause()
      },
    }
    await using page = new ClientPage({ url: testBridge.url, version, live })
    pages.push(page)
    const chat = await page.open()
    void chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
    const [id = ''] = await chat.untilAsked()
    const clicked = chat.attached.approve(id)
    page.sockets[0]?.resume()
    await clicked
    await chat.untilShown('Paid.')
    await chat.rest()
    expect(page.types.slice(0, 2)).toEqual(['send', 'decide'])
    expect(testBridge.wallet.payments).toHaveLength(1)
  })

  test('[CL12] two effects of one page run a call once', async () => {
    const location = browserTool({
      name: 'get_location',
      description: 'Where the person is.',
      parameters: z.object({}),
    })
    await using testBridge = await TestBridge.open({ tools: () => [location] })
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    let looked = 0
    const tools = { get_location: () => ({ looked: (looked += 1) }) }
    const endFirst = runBrowserTools(chat.attached, tools)
    runBrowserTools(chat.attached, tools)
    void chat.send('[[call get_location {}]][[then]][[say Found.]]')
    await chat.untilShown('Found.')
    endFirst()
    runBrowserTools(chat.attached, tools)
    await chat.rest()
    expect(looked).toBe(1)
  })
})
