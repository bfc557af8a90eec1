import { FunctionTool } from '@google/adk'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { oneOf } from '../../../../test/support/long-run.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { FREE_MODEL, TestBridge } from '../approvals/support/test-bridge.ts'
import { lastSession } from '../live/support/live-test-bridge.ts'
import { defer } from '../support/agents.ts'
import { type ChatPart, toolParts } from '../support/chat-probe.ts'
import { ASK, locationTool, TOKYO } from '../support/locating.ts'
import { sseTransport } from '../../src/client/index.ts'
import { type ClientChat, ClientPage, openSse, versions } from './support/client-page.ts'

const OSAKA = { latitude: 34.7, longitude: 135.5 }
const HEADERS = { 'x-api-key': 'hanako' }

let testBridge: TestBridge
let slow = defer()

beforeAll(async () => {
  const wait = new FunctionTool({
    name: 'wait',
    description: 'Waits.',
    parameters: z.object({}),
    execute: async () => {
      await slow.promise
      return 'waited'
    },
  })
  testBridge = await TestBridge.open({
    tools: (wallet) => [locationTool(), wait, paymentTool(wallet)],
    liveModel: FREE_MODEL,
  })
})

afterAll(() => testBridge[Symbol.asyncDispose]())

/** The call that waits for the page. */
function callOf(chat: ClientChat): ChatPart | undefined {
  return toolParts(chat.lastMessage).find(({ type }) => type === 'tool-get_location')
}

async function give(chat: ClientChat, output: object): Promise<void> {
  const { toolCallId = '' } = callOf(chat) ?? {}
  await chat.give({ tool: 'get_location', toolCallId, output })
}

/** Posts an output. Returns the error code, or the status. */
async function post(id: string, call: ChatPart | undefined, body: object, key = 'hanako') {
  const response = await fetch(`${testBridge.url}/chats/${id}/outputs/${call?.toolCallId}`, {
    method: 'POST',
    headers: { 'x-api-key': key, 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  if (response.ok) return response.status
  const { error } = (await response.json()) as { error: { code: string } }
  return error.code
}

describe.each(oneOf(versions, 'ai 7'))('$name', (version) => {
  const clients = ['HTTP', 'socket', 'the page that speaks'] as const
  const rows = clients.flatMap((client) =>
    [true, false].flatMap((isOpen) =>
      (['once', 'repeated', 'by two pages'] as const).map((given) => ({ client, isOpen, given })),
    ),
  )

  test.each(rows)(
    '[CL1600] the result of a live call is stored once, and the model gets it once: from $client, stream open: $isOpen, given $given',
    async ({ client, isOpen, given }) => {
      const id = crypto.randomUUID()
      const { url } = testBridge
      await using speaking = new ClientPage({ url, version, live: { hold: isOpen } })
      await using other = new ClientPage({ url, version })
      const speaker = await speaking.open(id)
      void speaker.send(ASK)
      await speaker.until(() => callOf(speaker)?.state === 'input-available')
      if (!isOpen) await speaker.rest()
      const open = async (on: 'HTTP' | 'socket'): Promise<ClientChat> => {
        const chat = await (on === 'HTTP' ? openSse(other.sse(), version, id) : other.open(id))
        if (isOpen) void chat.resume()
        await chat.until(() => callOf(chat)?.state === 'input-available')
        return chat
      }
      const chat = client === 'the page that speaks' ? speaker : await open(client)
      const second = given === 'by two pages' ? await open('HTTP') : undefined
      const call = callOf(chat)
      await Promise.all([give(chat, TOKYO), second && give(second, OSAKA)])
      if (given === 'repeated') await give(chat, OSAKA)
      const chats = [chat, ...(second ? [second] : [])]
      for (const each of chats) {
        await each.untilShown('There you are.')
        await each.rest()
      }
      expect(await post(id, call, { output: OSAKA })).toBe('nothing-new')
      const [, stored] = await other.load(id)
      const shown = toolParts(stored)
      expect(shown).toMatchObject([{ state: 'output-available' }])
      expect(second ? [TOKYO, OSAKA] : [TOKYO]).toContainEqual(shown[0]?.output)
      const results = lastSession(testBridge).received.filter((frame) => 'toolResponse' in frame)
      expect(results).toHaveLength(1)
      for (const each of chats) {
        await each.until(() => callOf(each)?.output !== undefined)
        await each.attached.catchUp()
        expect(callOf(each)).toMatchObject({ output: shown[0]?.output })
        expect(each.error).toBeUndefined()
      }
    },
  )

  test.each([true, false])(
    '[CL1600] [CL3] over HTTP, a decision about a live call is sent at once, and stays open if it is rejected; approved: %s',
    async (approved) => {
      const id = crypto.randomUUID()
      await using page = new ClientPage({ url: testBridge.url, version })
      const speaker = await page.open(id)
      void speaker.send(`${callPayment(30, 'Alice')}[[then]][[say Done.]]`)
      await speaker.untilAsked()
      const chat = await openSse(page.sse(), version, id)
      void chat.resume()
      const [approvalId = ''] = await chat.untilAsked()
      await chat.attached.approve(approvalId, { args: { amount: 'much', recipient: 'Alice' } })
      await chat.until(() => chat.errors.length > 0)
      expect(chat.errors).toMatchObject([{ code: 'bad-request' }])
      await chat.untilAsked()
      const { balance } = testBridge.wallet
      await chat.click({ id: approvalId, approved })
      await Promise.all([speaker.untilShown('Done.'), chat.untilShown('Done.')])
      await chat.rest()
      expect(testBridge.wallet.balance).toBe(approved ? balance - 30 : balance)
      const state = approved ? 'output-available' : 'output-denied'
      expect(toolParts(chat.lastMessage)).toMatchObject([{ state }])
      expect(chat.errors).toHaveLength(1)
    },
  )

  test('[BT1601] the result of a browser tool can be posted by the owner of the chat, once', async () => {
    const id = crypto.randomUUID()
    const chat = await openSse(sseTransport({ url: testBridge.url, headers: HEADERS }), version, id)
    await chat.send(ASK)
    const call = callOf(chat)
    const output = { output: TOKYO }
    for (const body of [{}, { ...output, errorText: 'both' }, { result: TOKYO }])
      expect(await post(id, call, body)).toBe('bad-request')
    expect(await post(id, call, output, 'taro')).toBe('nothing-new')
    expect(await post(id, call, output)).toBe(204)
    expect(await post(id, call, { errorText: 'No.' })).toBe('nothing-new')
    await chat.resume()
    await chat.attached.catchUp()
    expect(callOf(chat)).toMatchObject({ state: 'output-available', output: TOKYO })
  })

  test('[CL1600] an output is sent beside a turn of another page, and counts once if its response is lost', async () => {
    slow = defer()
    const id = crypto.randomUUID()
    const { url } = testBridge
    let isLost = true
    const sent: string[] = []
    const transport = sseTransport({
      url,
      headers: HEADERS,
      fetch: async (input, init) => {
        const response = await fetch(input, init)
        if (!String(input).includes('/outputs/')) return response
        sent.push(String(init?.body))
        if (!isLost) return response
        isLost = false
        throw new TypeError('fetch failed')
      },
    })
    const first = await openSse(sseTransport({ url, headers: HEADERS }), version, id)
    void first.send('[[call wait {}]][[call get_location {}]][[then]][[say There you are.]]')
    await first.until(() => callOf(first)?.state === 'input-available')
    const chat = await openSse(transport, version, id)
    void chat.resume()
    await chat.until(() => callOf(chat)?.state === 'input-available')
    const given = give(chat, TOKYO)
    await chat.until(() => sent.length > 0 || callOf(chat)?.state === 'output-available')
    slow.resolve()
    await given
    await chat.untilShown('There you are.')
    await chat.until(() => sent.length === 2)
    await chat.rest()
    expect(sent).toEqual([JSON.stringify({ output: TOKYO }), JSON.stringify({ output: TOKYO })])
    expect(testBridge.lastPrompt.split('139.7')).toHaveLength(2)
    expect(chat.error).toBeUndefined()
  })
})
