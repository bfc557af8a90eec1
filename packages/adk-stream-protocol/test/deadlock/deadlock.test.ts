import { Chat as Chat6 } from '@ai-sdk/react'
import { Chat as Chat7 } from '@ai-sdk/react-7'
import * as ai6 from 'ai'
import * as ai7 from 'ai-7'
import { describe, expect, test } from 'vitest'

import { ApprovingChat, approvingClients, liveClient } from '../approvals/support/approving-chat.ts'
import { FREE_MODEL, TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment, paymentTool } from '../approvals/support/payments.ts'
import { BidiClient } from '../bidi/support/bidi-client.ts'
import { defer } from '../support/agents.ts'
import { toolParts } from '../support/chat-probe.ts'
import { holdStreams } from './support/held-server.ts'
import { EarlierTransport } from './support/earlier-transport.ts'

const PAY = `${callPayment(50)}[[then]][[say Paid.]]`

/** Many turns of the event loop: a client has then done everything that it does by itself after a click. */
async function letClientsAct(): Promise<void> {
  for (let turn = 0; turn < 200; turn += 1) await new Promise(setImmediate)
}

const stock = [
  {
    name: 'ai 6',
    open: (api: string, onAsked: () => void) =>
      new Chat6({
        transport: new ai6.DefaultChatTransport({ api }),
        sendAutomaticallyWhen: (state) => {
          onAsked()
          return ai6.lastAssistantMessageIsCompleteWithApprovalResponses(state)
        },
      }),
  },
  {
    name: 'ai 7',
    open: (api: string, onAsked: () => void) =>
      new Chat7({
        transport: new ai7.DefaultChatTransport({ api }),
        sendAutomaticallyWhen: (state) => {
          onAsked()
          return ai7.lastAssistantMessageIsCompleteWithApprovalResponses(state)
        },
      }),
  },
]

test.each(stock)(
  '[DL1] $name against a server that keeps the stream open: the decision is sent only when the server has given up',
  async ({ open }) => {
    const log: string[] = []
    await using server = await holdStreams((what) => log.push(what))
    const chat = new ApprovingChat(
      open(server.url, () => log.push('may it send?')),
      {},
    )
    const sent = chat.send('Pay.')
    await chat.until(() => chat.asked.length === 1)
    expect(chat.status).toBe('streaming')
    await chat.click({ id: 'a1', approved: true })
    log.push('clicked')
    await letClientsAct()
    // The click is in the message, and was not sent.
    expect(chat.lastMessage?.parts.at(-1)).toMatchObject({ state: 'approval-responded' })
    expect(server.requests()).toBe(1)
    server.endStreams()
    await sent
    await chat.rest()
    expect(log.slice(0, 5)).toEqual([
      'request 1',
      'clicked',
      'server gives up',
      'may it send?',
      'request 2',
    ])
  },
)

/** A test bridge whose tool reports that it has started, and then waits. */
async function openPendingTestBridge() {
  const started = defer()
  const go = defer()
  const before = (): Promise<void> => {
    started.resolve()
    return go.promise
  }
  // The deadline is a day away, so a test that waited for it would time out.
  const testBridge = await TestBridge.open({
    approvalDeadlineMs: 24 * 3_600_000,
    tools: (wallet) => [paymentTool(wallet, { before })],
  })
  return { testBridge, started: started.promise, go: go.resolve }
}

const LIFE = ['requested', 'approved', 'started', 'succeeded']

describe.each([...approvingClients, liveClient])('$name', (client) => {
  test('[DL2] against our server, the click alone starts the tool', async () => {
    const { testBridge: opened, started, go } = await openPendingTestBridge()
    await using testBridge = opened
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    // The pause has ended the stream, so that the client may send.
    expect(chat.status).toBe('ready')
    const [id = ''] = chat.asked
    await chat.click({ id, approved: true })
    await started
    expect(page.sent).toHaveLength(2)
    go()
    await chat.rest()
    expect(chat.text).toBe('Paid.')
    expect(await page.history(id)).toEqual(LIFE)
  })
})

test('[DL3] a client of text frames decides during its open stream, and that event alone starts the tool', async () => {
  const { testBridge: opened, started, go } = await openPendingTestBridge()
  await using testBridge = opened
  await using client = await BidiClient.open(testBridge.url)
  client.say(PAY)
  await client.untilAsked()
  const [asked] = client.asked
  client.confirm(asked?.approvalId ?? '', true)
  await started
  expect(client.sent).toBe(2)
  expect(client.done).toBe(0)
  go()
  await client.untilDone()
  expect(client.text).toBe('Paid.')
  expect(await testBridge.page().history(asked?.approvalId ?? '')).toEqual(LIFE)
})

/** `useChat` of each version with the transport of the earlier system. */
const earlierClients = [
  {
    name: 'ai 6',
    open: (transport: EarlierTransport) =>
      new ApprovingChat(
        new Chat6({
          id: 'chat-1',
          // The transport passes chunks on that both versions know.
          transport: transport as unknown as ai6.ChatTransport<ai6.UIMessage>,
          sendAutomaticallyWhen: ({ messages }) => isAnswered(messages.at(-1)),
        }),
        {},
      ),
  },
  {
    name: 'ai 7',
    open: (transport: EarlierTransport) =>
      new ApprovingChat(
        new Chat7({
          id: 'chat-1',
          transport,
          // As the earlier client did: the helper of the AI SDK looks at the step after that of the approval request.
          sendAutomaticallyWhen: ({ messages }) => isAnswered(messages.at(-1)),
        }),
        {},
      ),
  },
]

describe.each(earlierClients)('$name with the transport of the earlier system', ({ open }) => {
  test('[DL3] [BD4] the end of the step lets the client send over the open socket, and nothing is lost', async () => {
    const { testBridge: opened, started, go } = await openPendingTestBridge()
    await using testBridge = opened
    await using client = await BidiClient.open(testBridge.url)
    const transport = new EarlierTransport(client)
    const chat = open(transport)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    expect(client.done).toBe(0)
    await chat.click({ id, approved: true })
    await started
    go()
    await chat.rest()
    expect(chat.text).toBe('Paid.')
    expect(chat.messages).toHaveLength(2)
    expect(client.sent).toBe(2)
    expect(client.done).toBe(1)
    expect(transport.lost).toEqual([])
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(await testBridge.page().history(id)).toEqual(LIFE)
  })

  test.each([
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ])('[DL3] [BD100] two payments at once, Alice %s, Bob %s', async (...answers) => {
    await using testBridge = await TestBridge.open()
    await using client = await BidiClient.open(testBridge.url)
    const transport = new EarlierTransport(client)
    const chat = open(transport)
    const calls = [callPayment(30, 'Alice'), callPayment(40, 'Bob')]
    await chat.send(`${calls.join('')}[[then]][[say Both are decided.]]`)
    for (const approved of answers) {
      const [id = ''] = chat.asked
      expect(chat.asked).toHaveLength(1)
      await chat.click({ id, approved })
      await chat.rest()
    }
    expect(chat.status).toBe('ready')
    expect(chat.text).toBe('Both are decided.')
    expect(chat.messages).toHaveLength(2)
    expect(transport.lost).toEqual([])
    expect(client.sent).toBe(3)
    expect(client.done).toBe(1)
    expect(testBridge.wallet.payments).toHaveLength(answers.filter(Boolean).length)
    const states = answers.map((approved) => (approved ? 'output-available' : 'output-denied'))
    expect(toolParts(chat.lastMessage).map(({ state }) => state)).toEqual(states)
  })

  test('[DL3] [BD100] text of the model during the approval request is not lost', async () => {
    await using testBridge = await TestBridge.open({ liveModel: FREE_MODEL })
    await using client = await BidiClient.open(testBridge.url)
    const transport = new EarlierTransport(client)
    const chat = open(transport)
    await chat.send(`${callPayment(50)}[[say Please decide.]][[then]][[say Paid.]]`)
    await letClientsAct()
    await chat.decide(true)
    expect(chat.text).toBe('Please decide.Paid.')
    expect(transport.lost).toEqual([])
    expect(testBridge.wallet.payments).toHaveLength(1)
  })
})

function isAnswered(message: ai6.UIMessage | ai7.UIMessage | undefined): boolean {
  const states = (message?.parts ?? []).flatMap((part) => ('state' in part ? part.state : []))
  return states.includes('approval-responded') && !states.includes('approval-requested')
}
