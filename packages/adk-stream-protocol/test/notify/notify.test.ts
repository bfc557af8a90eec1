import { expect, test, vi } from 'vitest'

import type { Notice, NoticeChannel, NotifyOptions } from '../../src/modules/notify/notice.ts'
import { NoticeError } from '../../src/modules/notify/notice.ts'
import { webhook } from '../../src/modules/notify/webhook.ts'
import { callPayment } from '../approvals/support/payments.ts'
import type { TestBridgeOptions } from '../approvals/support/test-bridge.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { SECRET, startReceiver } from './support/receiver.ts'

/** A channel that keeps what it sends. */
function recorder(fail?: (notice: Notice, count: number) => unknown) {
  const notices: Notice[] = []
  const references: (string | undefined)[] = []
  const channel: NoticeChannel = {
    send: async (notice, { reference }) => {
      notices.push(notice)
      references.push(reference)
      const error = fail?.(notice, notices.length)
      if (error !== undefined) throw error
      return { answer: 'OK', reference: `message ${notice.approval.id}` }
    },
  }
  const types = (): string[] => notices.map(({ type }) => type.replace('approval.', ''))
  return { notices, references, channel, types }
}

async function open(notify: NotifyOptions, options: TestBridgeOptions = {}) {
  const testBridge = await TestBridge.open({ isLive: false, notify, ...options })
  const pay = async (chatId = 'chat-1', amount = 50) => {
    const page = testBridge.page()
    const text = `${callPayment(amount)}[[then]][[say Paid.]]`
    const message = { id: `u-${chatId}`, role: 'user', parts: [{ type: 'text', text }] }
    await page.post({ id: chatId, messages: [message] })
    const { approvals = [] } = await page.list('state=requested&limit=1')
    return approvals[0]?.id ?? ''
  }
  return {
    testBridge,
    pay,
    [Symbol.asyncDispose]: () => testBridge[Symbol.asyncDispose](),
  }
}

test('[NT1560] [NT1566] a webhook learns of a request, the decision and the result, in order, signed and without arguments', async () => {
  await using receiver = await startReceiver()
  const { url } = receiver
  const ops = webhook({ url, secret: SECRET, allowPrivateNetwork: true })
  await using opened = await open({ channels: { ops } })
  const id = await opened.pay()
  await expect.poll(() => receiver.received.length).toBe(1)
  await opened.testBridge.page('hanako').decide(id, { approved: true })
  await expect
    .poll(receiver.types)
    .toEqual(['approval.requested', 'approval.approved', 'approval.succeeded'])
  const [requested, approved] = receiver.received
  expect(requested?.data).toMatchObject({
    approvalId: id,
    state: 'requested',
    toolName: 'process_payment',
    principalId: 'hanako',
    deciders: { principals: ['hanako'], roles: [] },
  })
  expect(JSON.stringify(receiver.received.map(({ data }) => data))).not.toContain('amount')
  expect(approved?.data).toMatchObject({ by: 'hanako' })
  expect(new Set(receiver.received.map((one) => one.id)).size).toBe(3)
  expect(receiver.received.every((one) => /^msg_\w+$/.test(one.id))).toBe(true)
})

test('[NT1561] a plan says who is told when, and a reminder is not sent after the decision', async () => {
  const [chat, phone] = [recorder(), recorder()]
  await using opened = await open({
    channels: { chat: chat.channel, phone: phone.channel },
    plan: ({ toolName, deciders }) => [
      { tell: 'chat', to: `${toolName} ${deciders.principals.join()}` },
      { tell: 'chat', after: 300 },
      { tell: 'phone', after: 24 * 3_600_000, to: 'backup' },
    ],
  })
  const id = await opened.pay()
  await expect.poll(chat.types).toEqual(['requested', 'reminder'])
  expect(chat.notices[0]?.to).toBe('process_payment hanako')
  expect(chat.references).toEqual([undefined, `message ${id}`])
  const page = opened.testBridge.page()
  await page.decide(id, { approved: false, reason: 'No.' })
  await expect.poll(chat.types).toEqual(['requested', 'reminder', 'denied'])
  expect(chat.notices[2]).toMatchObject({ by: 'hanako', reason: 'No.' })
  expect(phone.notices).toEqual([])
  const log = await readLog(opened.testBridge, id)
  expect(log).toMatchObject([
    { channel: 'chat', type: 'approval.requested', state: 'sent', attempts: 1 },
    { channel: 'chat', type: 'approval.reminder', state: 'sent' },
    { channel: 'phone', to: 'backup', state: 'ended', attempts: 0 },
    { channel: 'chat', type: 'approval.denied', state: 'sent' },
  ])
})

test('[NT1562] the people of the next step are told when the step before is complete', async () => {
  const chat = recorder()
  const chain = [{ principals: ['hanako'] }, { roles: ['manager'] }]
  await using opened = await open(
    {
      channels: { chat: chat.channel },
      plan: ({ step, deciders }) => [{ tell: 'chat', to: `${step} ${deciders.roles.join()}` }],
    },
    { approvals: { process_payment: { chain } } },
  )
  const id = await opened.pay()
  await opened.testBridge.page().decide(id, { approved: true })
  await expect.poll(chat.types).toEqual(['requested', 'voted', 'requested'])
  expect(chat.notices.map(({ to }) => to)).toEqual(['0 ', undefined, '1 manager'])
})

test('[NT1563] a notice that fails is tried again with its id, also after a restart, and later ones wait for it', async () => {
  let isUp = false
  const chat = recorder(() => (isUp ? undefined : new NoticeError('Down.', { retryMs: 50 })))
  await using opened = await open({ channels: { chat: chat.channel } })
  const id = await opened.pay()
  await expect.poll(() => chat.notices.length).toBeGreaterThan(1)
  await opened.testBridge.page().decide(id, { approved: true })
  expect(new Set(chat.types())).toEqual(new Set(['requested']))
  await opened.testBridge.restart()
  isUp = true
  const count = chat.notices.length
  await expect.poll(() => chat.types().slice(-2)).toEqual(['approved', 'succeeded'])
  expect(chat.notices.length).toBeGreaterThan(count)
  const ids = chat.notices.filter(({ type }) => type === 'approval.requested').map((one) => one.id)
  expect(new Set(ids).size).toBe(1)
})

test('[NT1563] a channel that throws before it returns a promise has failed', async () => {
  const broken: NoticeChannel = {
    send: () => {
      throw new NoticeError('Broken.', { retryMs: 60_000 })
    },
  }
  const other = recorder()
  await using opened = await open({ channels: { broken, other: other.channel } })
  const id = await opened.pay()
  await expect.poll(() => other.notices.length).toBe(1)
  const read = async () => await opened.testBridge.store.notices?.list('adk-stream-protocol', id)
  await expect
    .poll(async () => (await read())?.find(({ channel }) => channel === 'broken'))
    .toMatchObject({ state: 'waiting', attempts: 1, answer: 'Broken.' })
})

test('[NT1564] status 410 ends a channel until its URL changes, and not what another endpoint has still to receive', async () => {
  await using receiver = await startReceiver(() => ({ status: 410 }))
  let isUp = false
  const busy = { status: 503, headers: { 'retry-after': '1' } }
  await using other = await startReceiver(() => (isUp ? { status: 204 } : busy))
  const options = { secret: SECRET, allowPrivateNetwork: true }
  const channels = {
    ops: webhook({ url: receiver.url, ...options }),
    other: webhook({ url: other.url, ...options }),
  }
  await using opened = await open({ channels })
  const first = await opened.pay('chat-1')
  await expect.poll(() => opened.testBridge.errors.map(String).join()).toContain('ops')
  await expect.poll(() => other.received.length).toBeGreaterThan(0)
  isUp = true
  await opened.testBridge.restart()
  const second = await opened.pay('chat-2')
  const arrived = () => new Set(other.received.slice(1).map(({ data }) => data['approvalId']))
  await expect.poll(arrived, { timeout: 20_000 }).toEqual(new Set([first, second]))
  expect(receiver.received).toHaveLength(1)
  await using next = await startReceiver()
  channels.ops = webhook({ url: next.url, ...options })
  await opened.testBridge.restart()
  const third = await opened.pay('chat-3')
  await expect.poll(() => next.received.map(({ data }) => data['approvalId'])).toEqual([third])
  expect(receiver.received).toHaveLength(1)
})

test('[NT1564] a status other than 2xx is tried again when Retry-After says, and a redirect is not followed', async () => {
  await using elsewhere = await startReceiver()
  const soon = { 'retry-after': '1' }
  const answers = [
    { status: 503, headers: soon },
    { status: 307, headers: { ...soon, location: elsewhere.url } },
  ]
  await using receiver = await startReceiver(
    (_received, number) => answers[number - 1] ?? { status: 200 },
  )
  const ops = webhook({ url: receiver.url, secret: SECRET, allowPrivateNetwork: true })
  await using opened = await open({ channels: { ops } })
  await opened.pay()
  await expect.poll(() => receiver.received.length, { timeout: 20_000 }).toBe(3)
  expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1)
  expect(elsewhere.received).toEqual([])
})

test('[NT1565] a plan that fails or names an unknown channel tells everyone', async () => {
  const [one, two] = [recorder(), recorder()]
  const plan = vi
    .fn()
    .mockReturnValueOnce([{ tell: 'three' }])
    .mockImplementationOnce(() => {
      throw new Error('No plan.')
    })
  await using opened = await open({ channels: { one: one.channel, two: two.channel }, plan })
  await opened.pay('chat-1')
  await opened.pay('chat-2')
  await expect.poll(() => [one.notices.length, two.notices.length]).toEqual([2, 2])
  expect(opened.testBridge.errors.map(String)).toHaveLength(2)
})

test('[NT1567] only those who may see an approval read who was told, and not what a receiver answered', async () => {
  const chat = recorder()
  await using opened = await open({ channels: { chat: chat.channel } })
  const id = await opened.pay()
  await expect.poll(() => chat.notices.length).toBe(1)
  expect(JSON.stringify(await readLog(opened.testBridge, id))).not.toContain('OK')
  const response = await fetch(`${opened.testBridge.url}/approvals/${id}/notices`, {
    headers: { 'x-api-key': 'taro' },
  })
  expect(await response.json()).toMatchObject({ error: { code: 'unknown-approval' } })
})

test('[NT1579] a person who approves every call at once is reported once, in the log and to a channel', async () => {
  const [chat, audit] = [recorder(), recorder()]
  const entries: { readonly event: string; readonly decidedBy?: string }[] = []
  await using opened = await open(
    {
      channels: { chat: chat.channel, audit: audit.channel },
      plan: () => [{ tell: 'chat' }],
      // The machine of a test may be slow.
      fastApprovals: { tell: 'audit', to: 'risk', decisions: 3, withinMs: 3_600_000 },
    },
    { log: (entry) => entries.push(entry) },
  )
  const decide = async (chatId: string, approved = true): Promise<void> => {
    const id = await opened.pay(chatId)
    await opened.testBridge.page().decide(id, { approved })
  }
  for (const chatId of ['1', '2']) await decide(chatId)
  // A denial is a sign that the person reads.
  await decide('3', false)
  for (const chatId of ['4', '5']) await decide(chatId)
  await expect.poll(() => chat.types().filter((type) => type === 'succeeded').length).toBe(4)
  expect(audit.notices).toEqual([])
  await decide('6')
  await expect.poll(audit.types).toEqual(['approver.fast'])
  expect(audit.notices[0]).toMatchObject({
    to: 'risk',
    by: 'hanako',
    pace: { decisions: 3, fast: 3, withinMs: 3_600_000 },
  })
  const log = await readLog(opened.testBridge, audit.notices[0]?.approval.id ?? '')
  expect(JSON.stringify(log)).not.toContain('approver.fast')
  const logged = entries.filter(({ event }) => event === 'approver.fast')
  expect(logged).toMatchObject([{ decidedBy: 'hanako' }])
  // It starts again.
  for (const chatId of ['7', '8']) await decide(chatId)
  await expect.poll(() => chat.types().filter((type) => type === 'succeeded').length).toBe(7)
  // The channel hears nothing else of the approval with which the person was reported.
  expect(audit.types()).toEqual(['approver.fast'])
})

test('[NT1579] a channel that does not exist cannot be told', async () => {
  const channels = { chat: recorder().channel }
  await expect(open({ channels, fastApprovals: { tell: 'audit' } })).rejects.toThrow('audit')
})

async function readLog(testBridge: TestBridge, id: string): Promise<unknown> {
  const url = `${testBridge.url}/approvals/${id}/notices`
  const read = async (): Promise<{ readonly notices: readonly { readonly state: string }[] }> =>
    (await (await fetch(url, { headers: { 'x-api-key': 'hanako' } })).json()) as never
  await expect
    .poll(async () => (await read()).notices.map(({ state }) => state))
    .not.toContain('waiting')
  return (await read()).notices
}
