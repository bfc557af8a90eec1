import { describe, expect, test } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { tool } from '../support/agents.ts'
import { partTypes, toolParts } from '../support/chat-probe.ts'
import { approvingClients, clientsWith } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { TestBridge } from './support/test-bridge.ts'
import { callPayment } from './support/payments.ts'

const PAY = `${callPayment(50)}[[then]][[say Paid.]]`
const LIFE = ['requested', 'approved', 'started', 'succeeded']

test('[AP160] a pending approval is read with the hint that the policy gives now', async () => {
  let fails = false
  await using testBridge = await TestBridge.open({
    approvals: {
      process_payment: ({ args }) => {
        if (fails) throw new Error('The bank does not answer.')
        return {
          hint: `Balance: ${testBridge.wallet.balance}.`,
          severity: 'high',
          title: String(args['recipient']),
        }
      },
    },
  })
  const page = testBridge.page()
  const [client] = approvingClients
  if (!client) throw new Error('There is no client.')
  const chat = await page.open(client)
  await chat.send(PAY)
  const [id = ''] = chat.asked
  testBridge.wallet.pay({ amount: 900, recipient: 'somebody else' })
  const current = { hint: 'Balance: 100.', severity: 'high', title: '花子' }
  expect(await page.inbox()).toMatchObject([current])
  expect((await page.approval(id)).approval).toMatchObject(current)
  // A policy that fails must not hide the approval.
  fails = true
  expect(await page.inbox()).toMatchObject([{ hint: 'Balance: 1000.' }])
})

const clients = clientsWith('6')

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it('[AP17] two people of a role decide; the owner and a voter alone do not', async () => {
    await using testBridge = await TestBridge.open({
      approvals: { process_payment: { deciders: { roles: ['manager'] }, approvers: 2 } },
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    expect(chat.lastMessage?.parts.at(-1)?.data).toMatchObject({ approvers: 2 })
    await chat.decide(true)
    expect(chat.refusal).toBe('not-allowed')
    expect(page.sent).toHaveLength(2)
    const [mari, mike, erin] = [
      testBridge.page('mari'),
      testBridge.page('mike'),
      testBridge.page('erin'),
    ]
    expect(await mari.inbox()).toMatchObject([{ id, own: false }])
    expect(JSON.stringify(await mari.inbox())).not.toContain('chat-1')
    expect(await erin.inbox()).toEqual([])
    expect(await mari.decide(id, { approved: true })).toMatchObject({
      status: 200,
      body: { approval: { state: 'requested', approvals: { given: 1, needed: 2 }, voted: true } },
    })
    expect(await mari.decide(id, { approved: true })).toMatchObject({
      status: 409,
      body: { error: { code: 'approval-voted' } },
    })
    expect(await page.decide(id, { approved: true })).toMatchObject({
      status: 403,
      body: { error: { code: 'not-allowed' } },
    })
    expect(await mari.inbox()).toMatchObject([{ id, voted: true }])
    expect(await mike.inbox()).toMatchObject([{ id, voted: false }])
    expect(testBridge.wallet.payments).toEqual([])
    expect(await mike.decide(id, { approved: true, args: { amount: 1 } })).toMatchObject({
      status: 400,
    })
    expect(
      await mike.decide(id, { approved: true, args: { amount: 1, recipient: 'M' } }),
    ).toMatchObject({ status: 409, body: { error: { code: 'not-editable' } } })
    expect(await mike.decide(id, { approved: true })).toMatchObject({ status: 200 })
    await page.untilMessages((messages) => partTypes(messages.at(-1)).at(-1) === 'text')
    expect(testBridge.wallet.payments).toEqual([{ amount: 50, recipient: '花子' }])
    expect((await page.approval(id)).history).toMatchObject([
      { type: 'requested' },
      { type: 'decision-refused', by: 'hanako', code: 'not-allowed' },
      { type: 'voted', by: 'mari' },
      { type: 'approved', by: 'mike' },
      { type: 'started' },
      { type: 'succeeded' },
    ])
    await expectRecord(page, await page.open(client))
  })

  it('[AP17] a vote of the owner in the chat is not enough and no error, and the client does not loop', async () => {
    await using testBridge = await TestBridge.open({
      approvals: {
        process_payment: ({ args }) => ({
          deciders: { principals: ['hanako'], roles: ['manager'] },
          approvers: args['recipient'] === 'Bob' ? 2 : 1,
        }),
      },
    })
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'both' })
    await chat.send(`${callPayment(30, 'Alice')}${callPayment(40, 'Bob')}[[then]][[say Paid.]]`)
    const [alice = '', bob = ''] = chat.asked
    await chat.decide(true)
    expect([chat.status, chat.refusal]).toEqual(['ready', undefined])
    // The client library sends each decision by itself.
    expect(page.sent).toHaveLength(client.ours ? 3 : 2)
    // The call that needed no second person continues, and the other one is still asked.
    await page.untilState(alice, 'succeeded')
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state: 'output-available' },
      { state: 'approval-requested', approval: { id: bob } },
    ])
    expect(testBridge.wallet.payments).toEqual([{ amount: 30, recipient: 'Alice' }])
    expect(await page.decide(bob, { approved: true })).toMatchObject({
      body: { error: { code: 'approval-voted' } },
    })
    await testBridge.page('mike').decide(bob, { approved: true })
    await page.untilMessages((messages) => partTypes(messages.at(-1)).at(-1) === 'text')
    expect(testBridge.wallet.payments).toHaveLength(2)
    expect(await page.history(bob)).toEqual(['requested', 'voted', ...LIFE.slice(1)])
    await expectRecord(page, await page.open(client))
  })

  it('[AP17] one denial of several people decides', async () => {
    await using testBridge = await TestBridge.open({
      approvals: { process_payment: { deciders: { roles: ['manager'] }, approvers: 2 } },
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    await testBridge.page('mari').decide(id, { approved: true })
    const denied = await testBridge
      .page('mike')
      .decide(id, { approved: false, reason: 'no budget' })
    expect(denied).toMatchObject({ status: 200, body: { approval: { state: 'denied' } } })
    await page.untilMessages((messages) => partTypes(messages.at(-1)).at(-1) === 'text')
    expect(testBridge.results).toMatchObject([{ status: 'denied', reason: 'no budget' }])
    expect(testBridge.wallet.payments).toEqual([])
    expect(await page.history(id)).toEqual(['requested', 'voted', 'denied'])
    await expectRecord(page, await page.open(client))
  })

  it('[AP17] the people of a chain decide in order', async () => {
    await using testBridge = await TestBridge.open({
      approvals: {
        process_payment: { chain: [{ roles: ['manager'] }, { roles: ['executive'] }] },
      },
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    const [id = ''] = chat.asked
    const [mari, erin] = [testBridge.page('mari'), testBridge.page('erin')]
    expect(await erin.decide(id, { approved: true })).toMatchObject({
      body: { error: { code: 'not-allowed' } },
    })
    expect(await mari.decide(id, { approved: true })).toMatchObject({
      body: { approval: { state: 'requested', step: 1 } },
    })
    expect(testBridge.wallet.payments).toEqual([])
    expect(await erin.decide(id, { approved: true })).toMatchObject({ status: 200 })
    await page.untilMessages((messages) => partTypes(messages.at(-1)).at(-1) === 'text')
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect((await page.approval(id)).history).toMatchObject([
      { type: 'requested' },
      { type: 'voted', by: 'mari', step: 0 },
      { type: 'approved', by: 'erin', step: 1 },
      { type: 'started' },
      { type: 'succeeded' },
    ])
    await expectRecord(page, await page.open(client))
  })

  it('[AP19] a policy decides by the arguments, and sets the hint and the severity', async () => {
    await using testBridge = await TestBridge.open({
      approvals: {
        process_payment: ({ args }) =>
          Number(args['amount']) >= 10 && {
            title: '送金',
            hint: 'Over 10.',
            severity: 'high',
            icon: 'money',
          },
      },
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(`${callPayment(9)}${callPayment(10)}[[then]][[say Paid.]]`)
    expect(testBridge.wallet.payments).toHaveLength(1)
    expect(chat.asked).toHaveLength(1)
    const [id = ''] = chat.asked
    const shown = { title: '送金', hint: 'Over 10.', severity: 'high', icon: 'money' }
    expect(chat.lastMessage?.parts.at(-1)?.data).toMatchObject(shown)
    expect((await page.approval(id)).approval).toMatchObject(shown)
    await chat.decide(true)
    expect(testBridge.wallet).toMatchObject({ balance: 981 })
    expect(page.sent).toHaveLength(2)
    await expectRecord(page, chat)
    await chat.send(`${callPayment(1)}[[then]][[say Paid.]]`)
    expect(testBridge.wallet.payments).toHaveLength(3)
    await expectRecord(page, chat)
  })

  it.each([
    [
      'throws',
      () => {
        throw new Error('no database')
      },
    ],
    ['says nonsense', () => 'maybe' as unknown as boolean],
  ])('[AP19] a policy that %s requires approval', async (_case, policy) => {
    await using testBridge = await TestBridge.open({ approvals: { process_payment: policy } })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    expect(testBridge.wallet.payments).toEqual([])
    expect(testBridge.errors).toHaveLength(1)
    expect(chat.asked).toHaveLength(1)
    await chat.decide(true)
    expect(testBridge.wallet.payments).toHaveLength(1)
    await expectRecord(page, chat)
  })

  it('[AP1044] a call for which the policy names too few people is reported, and nobody can approve it alone', async () => {
    await using testBridge = await TestBridge.open({
      approvals: { process_payment: () => ({ approvers: 2 }) },
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send(PAY)
    expect(String(testBridge.errors)).toContain(
      'The policy for process_payment needs more different people than it names',
    )
    const [id = ''] = chat.asked
    await chat.decide(true)
    expect(testBridge.wallet.payments).toEqual([])
    expect(await page.withdraw(id)).toMatchObject({ status: 200 })
    expect(await page.decide(id, { approved: false })).toMatchObject({ status: 200 })
    expect(testBridge.wallet.payments).toEqual([])
  })

  it('[AP19] the error of an invalid verdict is one sentence with the tool and the field', async () => {
    await using testBridge = await TestBridge.open({
      approvals: { process_payment: () => ({ approvers: 'two' as unknown as number }) },
    })
    const chat = await testBridge.page().open(client)
    await chat.send(PAY)
    expect(testBridge.errors.map(String)).toEqual([
      'TypeError: The policy for process_payment returned an invalid verdict (`approvers`: Invalid input: expected number, received string), so the call needs the approval of the owner of the chat.',
    ])
    expect(chat.asked).toHaveLength(1)
  })

  it.each([true, false])(
    '[AP20] a tool requests confirmation itself, with its own hint and payload; the decision is %s',
    async (approved) => {
      let effects = 0
      let asked = 0
      await using testBridge = await TestBridge.open({
        tools: () => [
          tool('send_mail', (_args, context) => {
            if (!context?.toolConfirmation?.confirmed) {
              asked += 1
              context?.requestConfirmation({ hint: '本当に?', payload: { to: 'a@example.com' } })
              return { status: 'pending' }
            }
            effects += 1
            return { sent: true }
          }),
        ],
      })
      const page = testBridge.page()
      const chat = await page.open(client, { autoSend: 'both' })
      await chat.send('[[call send_mail {}]][[then]][[say Done.]]')
      expect([asked, effects]).toEqual([1, 0])
      const [id = ''] = chat.asked
      expect(chat.lastMessage?.parts.at(-1)?.data).toMatchObject({
        hint: '本当に?',
        payload: { to: 'a@example.com' },
      })
      await expectRecord(page, chat)
      await chat.decide(approved)
      expect([asked, effects]).toEqual([1, approved ? 1 : 0])
      expect(toolParts(chat.lastMessage)).toMatchObject([
        { state: approved ? 'output-available' : 'output-denied' },
      ])
      expect(testBridge.results).toMatchObject([approved ? { sent: true } : { status: 'denied' }])
      expect(chat.text).toBe('Done.')
      expect(await page.history(id)).toEqual(approved ? LIFE : ['requested', 'denied'])
      expect(page.sent).toHaveLength(2)
      await expectRecord(page, chat)
    },
  )

  it('[AP20] a confirmation that a tool requests itself is requested, whatever the policy says', async () => {
    let effects = 0
    await using testBridge = await TestBridge.open({
      approvals: { send_mail: false },
      tools: () => [
        tool('send_mail', (_args, context) => {
          if (!context?.toolConfirmation?.confirmed) {
            context?.requestConfirmation({ hint: 'Really?' })
            return { status: 'pending' }
          }
          effects += 1
          return { sent: true }
        }),
      ],
    })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send('[[call send_mail {}]][[then]][[say Done.]]')
    expect(chat.lastMessage?.parts.at(-1)?.data).toMatchObject({ hint: 'Really?' })
    await chat.decide(true)
    expect(effects).toBe(1)
    expect(chat.text).toBe('Done.')
    expect(page.sent).toHaveLength(2)
    await expectRecord(page, chat)
  })
})
