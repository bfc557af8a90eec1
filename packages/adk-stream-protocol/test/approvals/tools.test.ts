import { LlmAgent } from '@google/adk'
import { describe, expect } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { weather } from '../support/agents.ts'
import { toolParts } from '../support/chat-probe.ts'
import { clientsWith } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { TestBridge } from './support/test-bridge.ts'
import { callPayment, paymentTool } from './support/payments.ts'

const clients = clientsWith('6')

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it('[AP21] an approved tool that throws has failed; its error message stays on the server', async () => {
    const secret = 'connect ECONNREFUSED db.internal password=hunter2'
    await using testBridge = await TestBridge.open({
      tools: (wallet) => [
        paymentTool(wallet, {
          before: () => {
            throw new Error(secret)
          },
        }),
      ],
    })
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'both' })
    await chat.send(`${callPayment(50)}[[then]][[say Sorry.]]`)
    const [id = ''] = chat.asked
    await chat.decide(true)
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state: 'output-error', errorText: 'The tool process_payment failed.' },
    ])
    expect(chat.text).toBe('Sorry.')
    const shown = [chat.messages, await page.messages(), await page.approval(id)]
    expect(JSON.stringify(shown)).not.toContain('hunter2')
    expect(testBridge.errors.map(String).join()).toContain(secret)
    expect(testBridge.wallet).toMatchObject({ payments: [], balance: 1_000 })
    expect(await page.history(id)).toEqual(['requested', 'approved', 'started', 'failed'])
    expect(page.sent).toHaveLength(2)
    await expectRecord(page, chat)
  })

  it('[AP21] the audit record of a failure contains no more for a client than the chat', async () => {
    await using testBridge = await TestBridge.open({
      tools: (wallet) => [
        paymentTool(wallet, {
          before: () => {
            throw new Error('password=hunter2')
          },
        }),
      ],
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(50)}[[then]][[say Sorry.]]`)
    const [id = ''] = chat.asked
    await chat.decide(true)
    const record = await page.approval(id)
    expect(record).toMatchObject({
      approval: { state: 'failed' },
      history: [
        { type: 'requested' },
        { type: 'approved' },
        { type: 'started' },
        { type: 'failed', error: 'The tool process_payment failed.' },
      ],
    })
    expect(JSON.stringify(record)).not.toContain('hunter2')
  })

  it.each([true, false])(
    '[AP3] after a decision (approved: %s) the model calls further tools, and replies',
    async (approved) => {
      await using testBridge = await TestBridge.open({
        tools: (wallet) => [paymentTool(wallet), weather],
      })
      const page = testBridge.page()
      const chat = await page.open(client)
      const look = '[[call get_weather {"place":"東京"}]][[then]]'
      await chat.send(`${callPayment(50)}[[then]]${look}${look}[[say Done.]]`)
      await chat.decide(approved)
      expect(toolParts(chat.lastMessage)).toHaveLength(3)
      expect(chat.text).toBe('Done.')
      await expectRecord(page, chat)
    },
  )

  it('[AP21] one of two approved calls fails; the other takes effect', async () => {
    let calls = 0
    await using testBridge = await TestBridge.open({
      tools: (wallet) => [
        paymentTool(wallet, {
          before: () => {
            calls += 1
            if (calls === 1) throw new Error('no')
          },
        }),
      ],
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(30, 'Alice')}${callPayment(40, 'Bob')}[[then]][[say Half.]]`)
    await chat.decide(true)
    expect(toolParts(chat.lastMessage).map(({ state }) => state)).toEqual([
      'output-error',
      'output-available',
    ])
    expect(testBridge.wallet.payments).toEqual([{ amount: 40, recipient: 'Bob' }])
    expect(page.sent).toHaveLength(client.ours ? 3 : 2)
    await expectRecord(page, chat)
  })

  it.each([true, false])(
    '[AP3] a sub-agent requests approval and continues itself; approved: %s',
    async (approved) => {
      await using testBridge = await TestBridge.open({
        agent: (model, tools) => {
          const teller = new LlmAgent({ name: 'teller', model, description: 'Pays.', tools })
          return new LlmAgent({ name: 'assistant', model, subAgents: [teller] })
        },
      })
      const page = testBridge.page()
      const chat = await page.open(client, { autoSend: 'both' })
      const transfer = '[[call transfer_to_agent {"agentName":"teller"}]]'
      await chat.send(`${transfer}[[then]]${callPayment(50)}[[then]][[say The teller is done.]]`)
      expect(chat.asked).toHaveLength(1)
      const [id = ''] = chat.asked
      await expectRecord(page, chat)
      await chat.decide(approved)
      expect(chat.text).toBe('The teller is done.')
      expect(toolParts(chat.lastMessage)).toMatchObject([
        { state: approved ? 'output-available' : 'output-denied' },
      ])
      expect(testBridge.wallet.payments).toHaveLength(approved ? 1 : 0)
      expect(await page.history(id)).toEqual(
        approved ? ['requested', 'approved', 'started', 'succeeded'] : ['requested', 'denied'],
      )
      expect(page.sent).toHaveLength(2)
      await expectRecord(page, chat)
    },
  )

  it('[AP3] an approval of a sub-agent is decided after a restart', async () => {
    await using testBridge = await TestBridge.open({
      agent: (model, tools) => {
        const teller = new LlmAgent({ name: 'teller', model, description: 'Pays.', tools })
        return new LlmAgent({ name: 'assistant', model, subAgents: [teller] })
      },
    })
    const page = testBridge.page()
    const before = await page.open(client)
    const transfer = '[[call transfer_to_agent {"agentName":"teller"}]]'
    await before.send(`${transfer}[[then]]${callPayment(50)}[[then]][[say The teller is done.]]`)
    await testBridge.restart()
    const chat = await page.open(client)
    await chat.decide(true)
    expect(chat.text).toBe('The teller is done.')
    expect(testBridge.wallet.payments).toHaveLength(1)
    await expectRecord(page, chat)
  })
})
