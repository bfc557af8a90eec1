import { BasePlugin } from '@google/adk'
import { describe, expect, test } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { defer } from '../support/agents.ts'
import { toolParts } from '../support/chat-probe.ts'
import { locationTool, TOKYO } from '../support/locating.ts'
import type { ApprovingChat } from './support/approving-chat.ts'
import { approvingClients, liveClient } from './support/approving-chat.ts'
import type { TestBridgeOptions } from './support/test-bridge.ts'
import { TestBridge } from './support/test-bridge.ts'
import type { Page } from './support/page.ts'
import { callPayment, paymentTool } from './support/payments.ts'

const PAY = `${callPayment(50)}[[then]][[say Paid.]]`

interface Scene {
  readonly testBridge: TestBridge
  readonly page: Page
  readonly chat: ApprovingChat
  readonly id: string
}

interface State {
  readonly name: string
  readonly options?: TestBridgeOptions
  /** Brings the server into the state. May return a function to call after the click. */
  readonly enter: (scene: Scene) => Promise<void | (() => void)>
  readonly approved: boolean
  readonly paid: number
}

const STATES: readonly State[] = [
  {
    name: 'approved elsewhere, and done',
    enter: async ({ page, id }) => {
      await page.decide(id, { approved: true })
      await page.untilState(id, 'succeeded')
    },
    approved: true,
    paid: 1,
  },
  {
    name: 'denied elsewhere, and approved here',
    enter: async ({ page, id }) => void (await page.decide(id, { approved: false })),
    approved: true,
    paid: 0,
  },
  {
    name: 'denied elsewhere, and denied here',
    enter: async ({ page, id }) => void (await page.decide(id, { approved: false })),
    approved: false,
    paid: 0,
  },
  {
    name: 'expired',
    options: { approvalDeadlineMs: 30 },
    enter: ({ page, id }) => page.untilState(id, 'expired'),
    approved: true,
    paid: 0,
  },
  {
    name: 'expired, and denied here',
    options: { approvalDeadlineMs: 30 },
    enter: ({ page, id }) => page.untilState(id, 'expired'),
    approved: false,
    paid: 0,
  },
  {
    name: 'a chat that is deleted',
    enter: async ({ page }) => void (await page.delete()),
    approved: true,
    paid: 0,
  },
]

const clients = [...approvingClients, liveClient]

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it.each(STATES)(
    '[AP130] a stock client does not send in a loop: $name',
    async ({ options, enter, approved, paid }) => {
      await using testBridge = await TestBridge.open(options)
      const page = testBridge.page()
      const chat = await page.open(client, { autoSend: 'both' })
      let id = ''
      // A live question may have expired when its stream has ended.
      const asked = chat.until(() => (id = chat.asked[0] ?? id) !== '')
      await chat.send(PAY)
      await asked
      await enter({ testBridge, page, chat, id })
      await chat.click({ id, approved })
      await chat.rest()
      expect(page.sent.length).toBeLessThanOrEqual(3)
      expect(testBridge.wallet.payments).toHaveLength(paid)
    },
  )

  it('[AP130] a stock client does not send in a loop while the call runs', async () => {
    const gate = defer()
    await using testBridge = await TestBridge.open({
      tools: (wallet) => [paymentTool(wallet, { before: () => gate.promise })],
    })
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'both' })
    await chat.send(PAY)
    const [id = ''] = chat.asked
    await page.decide(id, { approved: true })
    await page.untilState(id, 'executing')
    await chat.click({ id, approved: true })
    gate.resolve()
    await chat.rest()
    expect(page.sent.length).toBeLessThanOrEqual(3)
    await page.untilState(id, 'succeeded')
    expect(testBridge.wallet.payments).toHaveLength(1)
  })

  it('[AP130] a stock client does not send in a loop when the agent does not continue', async () => {
    await using testBridge = await TestBridge.open({ plugins: [new Silence('silence')] })
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'both' })
    await chat.send(PAY)
    const [id = ''] = chat.asked
    await chat.click({ id, approved: true })
    await chat.rest()
    expect(page.sent.length).toBeLessThanOrEqual(3)
  })

  it('[DI3] an output for a call that waits for approval is rejected, and the error says what to send', async () => {
    await using testBridge = await TestBridge.open()
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'tool-calls' })
    await chat.send(PAY)
    const [id = ''] = chat.asked
    const [part] = toolParts(chat.lastMessage)
    const toolCallId = part?.toolCallId ?? ''
    await chat.give({ tool: 'process_payment', toolCallId, output: { approved: true } })
    await chat.rest()
    expect(page.sent).toHaveLength(2)
    expect(chat.error?.message).toContain('process_payment waits for approval and has not run.')
    expect(chat.error?.message).toContain(id)
    expect(chat.error?.message).toContain('confirmed')
    expect(testBridge.wallet.payments).toEqual([])
    expect(await page.history(id)).toEqual(['requested'])
  })

  it('[AP130] an output that nothing waits for is rejected, and not sent again', async () => {
    await using testBridge = await TestBridge.open({ tools: () => [locationTool()] })
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'both' })
    await chat.send('[[call get_location {}]][[then]][[say There.]]')
    const toolCallId = toolParts(chat.lastMessage)[0]?.toolCallId ?? ''
    await page.delete()
    await chat.give({ tool: 'get_location', toolCallId, output: TOKYO })
    await chat.rest()
    expect(page.sent).toHaveLength(2)
    expect(chat.status).toBe('error')
  })

  it('[BT130] with both helpers, a stock client sends the output of an approved tool', async () => {
    await using testBridge = await TestBridge.open({ tools: () => [locationTool({ gated: true })] })
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'both' })
    await chat.send('[[call get_location {}]][[then]][[say There.]]')
    await chat.decide(true)
    expect(page.sent).toHaveLength(2)
    const [part] = toolParts(chat.lastMessage)
    expect(toolParts(chat.lastMessage)).toMatchObject([{ state: 'input-available' }])
    await chat.give({ tool: 'get_location', toolCallId: part?.toolCallId ?? '', output: TOKYO })
    await chat.rest()
    expect(page.sent).toHaveLength(3)
    expect(chat.text).toBe('There.')
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state: 'output-available', output: TOKYO },
    ])
    expect(testBridge.results).toEqual([TOKYO])
  })
})

test.each(approvingClients)(
  '[AP11] $name: a client that sends a decision twice, because two of its streams overlap, receives the outcome twice',
  async (client) => {
    const call = defer()
    await using testBridge = await TestBridge.open({
      tools: (wallet) => [paymentTool(wallet, { before: () => call.promise })],
    })
    const page = testBridge.page()
    const resumed = new HeldEnd(page.fetch)
    const chat = await page.open(client, { fetch: resumed.fetch })
    // With `resume`, `useChat` asks for a running turn when the page opens. If the response is slow, the user has sent a message,
    // and the client reads its turn twice.
    const reply = chat.send(`[[say I'll pay.]][[wait resumed]]${PAY}`)
    await chat.untilShown("I'll pay.")
    const resumption = chat.resume()
    await resumed.opened
    testBridge.emulator.release('resumed')
    await reply
    await chat.until(({ status }) => status === 'ready')
    const [id = ''] = chat.asked
    await chat.click({ id, approved: true })
    await page.untilState(id, 'executing')
    resumed.end()
    await expect.poll(() => page.sent).toHaveLength(3)
    call.resolve()
    await resumption
    await chat.rest()
    expect(page.sent).toHaveLength(3)
    expect(page.sent[2]).toEqual(page.sent[1])
    expect(await page.history(id)).toEqual(['requested', 'approved', 'started', 'succeeded'])
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(chat.error).toBeUndefined()
    expect(chat.lastMessage).toEqual((await page.messages()).at(-1))
  },
)

/** Delays the end of the stream that a `GET` requests, and lets the other stream end after all of its chunks have arrived. */
class HeldEnd {
  readonly #opened = defer()
  readonly #received = defer()
  readonly #ended = defer()
  readonly opened = this.#opened.promise
  readonly #fetch: typeof globalThis.fetch

  constructor(fetch: typeof globalThis.fetch) {
    this.#fetch = fetch
  }

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    const response = await this.#fetch(input, init)
    const { body } = response
    if (!body) return response
    const isResumed = new Request(input, init).method === 'GET'
    if (isResumed) this.#opened.resolve()
    const held = new TransformStream<Uint8Array, Uint8Array>({
      flush: async () => {
        if (!isResumed) return this.#received.promise
        // The client handles what it has received in microtasks.
        await new Promise(setImmediate)
        this.#received.resolve()
        await this.#ended.promise
      },
    })
    return new Response(body.pipeThrough(held), response)
  }

  end(): void {
    this.#ended.resolve()
  }
}

/** Ends every run but the first before the agent does anything. */
class Silence extends BasePlugin {
  #runs = 0

  override async beforeRunCallback() {
    this.#runs += 1
    return this.#runs > 1 ? { role: 'model', parts: [] } : undefined
  }
}
