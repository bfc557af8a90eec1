import { afterEach, describe, expect, test, vi } from 'vitest'

import type { ShownPreview } from '../../src/protocol/preview.ts'
import { callInTime } from '../../src/shared/async.ts'
import type { ApprovalPolicy } from '../../src/server/index.ts'
import { joinLive, openLiveTestBridge, untilAsked } from '../live/support/live-test-bridge.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { approvalOf, stockClient } from './support/approving-chat.ts'
import type { Page } from './support/page.ts'
import { callPayment, type Wallet } from './support/payments.ts'
import { TestBridge, type TestBridgeOptions } from './support/test-bridge.ts'

afterEach(() => void vi.useRealTimers())

/** A policy whose preview contains the balance before and after the payment. */
function previewing(balance: () => number, more: object = {}): ApprovalPolicy {
  return {
    process_payment: {
      preview: ({ amount }, { reader }) => ({
        headline: `Send $${String(amount)} for ${reader}`,
        action: `$${String(amount)}`,
        changes: [
          {
            label: 'Balance',
            before: String(balance()),
            after: String(balance() - Number(amount)),
          },
        ],
        ...(Number(amount) > balance() && { blocked: 'Not enough money.' }),
      }),
      ...more,
    },
  }
}

async function openAsked({ text = callPayment(50), ...options }: { text?: string } & Options = {}) {
  let wallet: Wallet | undefined
  const { policy = (balance) => previewing(balance), ...rest } = options
  const testBridge = await TestBridge.open({
    ...rest,
    approvals: policy(() => wallet?.balance ?? 0),
  })
  ;({ wallet } = testBridge)
  const page = testBridge.page()
  const chat = await page.open(stockClient('7'))
  await chat.send(`${text}[[then]][[say Paid.]]`)
  const [id = ''] = chat.asked
  return { testBridge, wallet, page, chat, id }
}

interface Options extends Omit<TestBridgeOptions, 'approvals'> {
  readonly policy?: (balance: () => number) => ApprovalPolicy
}

function raise(): never {
  throw new Error('There is no preview.')
}

/** Reads the preview that a person sees now. */
async function readPreview(page: Page, id: string): Promise<ShownPreview> {
  const { approval } = await page.approval(id)
  expect(approval['hasPreview']).toBe(true)
  // The guard of the client checks its form.
  return approval['preview'] as ShownPreview
}

test('[AP362] the preview is made when it is shown, for the person who reads it', async () => {
  const { testBridge, page, wallet, id } = await openAsked({
    policy: (balance) =>
      previewing(balance, { deciders: { principals: ['hanako'], roles: ['manager'] } }),
  })
  await using _ = testBridge
  const data = (await page.messages())[1]?.parts.find(({ type }) => type === 'data-approval')?.data
  const first = await readPreview(page, id)
  expect(data).toMatchObject({ hasPreview: true, preview: first })
  expect(first).toMatchObject({
    headline: 'Send $50 for hanako',
    changes: [{ before: '1000', after: '950' }],
  })
  wallet.pay({ amount: 900, recipient: 'Ann' })
  expect(await readPreview(page, id)).toMatchObject({ changes: [{ before: '100', after: '50' }] })
  expect(await readPreview(testBridge.page('mari'), id)).toMatchObject({
    headline: 'Send $50 for mari',
  })
  expect((await page.inbox())[0]).toMatchObject({ preview: { action: '$50' } })
})

test('[AP1100] an argument cannot add lines to the texts of a preview', async () => {
  const recipient = 'Alice\n\nBalance  $5,000.00\u202E'
  const shown = 'Alice⏎⏎Balance␣␣$5,000.00⟨U+202E⟩'
  const { testBridge, page, id } = await openAsked({
    policy: () => ({
      process_payment: {
        preview: () => ({
          headline: `Send to ${recipient}`,
          action: recipient,
          lines: [{ label: recipient, value: recipient }],
          changes: [{ label: 'To', before: recipient, after: recipient }],
          text: { label: recipient, before: recipient, after: recipient },
          blocked: recipient,
        }),
      },
    }),
  })
  await using _ = testBridge
  expect(await readPreview(page, id)).toMatchObject({
    headline: `Send to ${shown}`,
    action: shown,
    lines: [{ label: shown, value: shown }],
    changes: [{ before: shown, after: shown }],
    text: { label: shown, before: recipient, after: recipient },
    blocked: shown,
  })
})

const MISLEADING = [
  { what: 'hidden characters', recipient: 'Ann\u202E', headline: 'Pay' },
  { what: 'look-alike letters', recipient: '\u0410nn', headline: 'Pay' },
  { what: 'spaces only', recipient: '  ', headline: 'Pay' },
  { what: 'a line break in the headline', recipient: 'Ann\nBob', headline: 'Pay Ann\nBob' },
]

test.each(MISLEADING)(
  '[AP1102] $what in a value raise the severity for every client',
  async ({ recipient, headline }) => {
    const call = { amount: 50, recipient }
    const { testBridge, page, chat, wallet, id } = await openAsked({
      text: `[[call process_payment ${JSON.stringify(call)}]]`,
      policy: () => ({
        process_payment: { acceptReplies: true, severity: 'low', preview: () => ({ headline }) },
      }),
    })
    await using _ = testBridge
    const raised = { severity: 'medium', misleading: true }
    const part = (await page.messages())[1]?.parts.find(({ type }) => type === 'data-approval')
    expect(part?.data).toMatchObject(raised)
    expect((await page.approval(id)).approval).toMatchObject(raised)
    expect((await page.inbox())[0]).toMatchObject(raised)
    expect((await previewEdit(page, id, call)).body).toMatchObject(raised)
    const { body } = await previewEdit(page, id, { amount: 50, recipient: 'Carol' })
    expect(body).toMatchObject({ severity: 'low' })
    expect(body).not.toHaveProperty('misleading')
    await chat.send('yes')
    expect(await page.history(id)).toEqual(['requested'])
    expect(wallet.payments).toEqual([])
  },
)

test('[AP1102] lines of a value that no text describes the call with are no risk', async () => {
  const { testBridge, page, id } = await openAsked({
    text: `[[call process_payment ${JSON.stringify({ amount: 5, recipient: 'Dear\n  Bob' })}]]`,
    policy: () => ({ process_payment: { preview: () => ({ headline: 'Pay Bob' }) } }),
  })
  await using _ = testBridge
  const { approval } = await page.approval(id)
  expect(approval).not.toHaveProperty('severity')
  expect(approval).not.toHaveProperty('misleading')
})

type Answer = { readonly code?: string | undefined; readonly preview?: ShownPreview | undefined }

const WAYS: readonly {
  readonly way: string
  readonly decide: (
    context: { page: Page; testBridge: TestBridge },
    id: string,
    preview: string | undefined,
  ) => Promise<Answer>
}[] = [
  {
    way: 'POST /approvals/:id',
    decide: async ({ page }, id, preview) => {
      const { status, body } = await page.decide(id, { approved: true, preview })
      expect(status).toBe(body.error ? 409 : 200)
      return body.error ?? {}
    },
  },
  {
    way: 'POST /stream',
    decide: async ({ page }, id, preview) => {
      const [user, asked] = await page.messages()
      const parts = asked?.parts.map((part) =>
        part.state === 'approval-requested'
          ? {
              ...part,
              state: 'approval-responded',
              approval: { ...approvalOf(part), approved: true },
            }
          : part,
      )
      const previews = preview !== undefined && { previews: { [id]: preview } }
      const response = await page.fetch('http://page/stream', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ id: 'chat-1', messages: [user, { ...asked, parts }], ...previews }),
      })
      const text = await response.text()
      return response.ok ? {} : (JSON.parse(text) as { error: Answer }).error
    },
  },
  {
    way: 'the frame `decide`',
    decide: async ({ testBridge }, approvalId, preview) => {
      await using client = await SocketClient.open(testBridge.url, {
        headers: { 'x-api-key': 'hanako' },
      })
      const decision = { approvalId, approved: true, ...(preview !== undefined && { preview }) }
      client.send({ type: 'decide', id: 'chat-1', decisionId: 'd1', ...decision })
      const { ok, ...rest } = await client.nextOf('decided')
      return ok === true ? {} : (rest as Answer)
    },
  },
]

describe.each(WAYS)('by $way', ({ way, decide }) => {
  test('[AP363] an approval of a preview that has changed is rejected with the new one, and stays open', async () => {
    const { testBridge, page, wallet, id } = await openAsked()
    await using _ = testBridge
    const { digest } = await readPreview(page, id)
    wallet.pay({ amount: 100, recipient: 'Ann' })
    const refused = await decide({ page, testBridge }, id, digest)
    expect(refused).toMatchObject({
      code: 'preview-changed',
      preview: { changes: [{ before: '900', after: '850' }] },
    })
    expect(wallet.payments).toHaveLength(1)
    const noted = way === 'POST /stream' ? ['decision-refused'] : []
    expect(await page.history(id)).toEqual(['requested', ...noted])
    expect(await decide({ page, testBridge }, id, refused.preview?.digest)).toEqual({})
    await page.untilState(id, 'succeeded')
    expect(wallet.payments).toHaveLength(2)
    const { history } = await page.approval(id)
    expect(history[1 + noted.length]).toMatchObject({ type: 'approved', preview: refused.preview })
  })

  test('[AP364] the preview of a client that names none is not compared, unless the policy requires one', async () => {
    const free = await openAsked()
    await using _ = free.testBridge
    expect(await decide(free, free.id, undefined)).toEqual({})
    await free.page.untilState(free.id, 'succeeded')
    const strict = await openAsked({
      policy: (balance) => previewing(balance, { requirePreview: true }),
    })
    await using second = strict.testBridge
    expect(second.errors).toEqual([])
    expect(await decide(strict, strict.id, undefined)).toMatchObject({
      code: 'preview-changed',
      preview: { headline: 'Send $50 for hanako' },
    })
    expect(strict.wallet.payments).toEqual([])
    const { digest } = await readPreview(strict.page, strict.id)
    expect(await decide(strict, strict.id, digest)).toEqual({})
    await strict.page.untilState(strict.id, 'succeeded')
  })
})

test('[AP363] a live session rejects a preview that has changed', async () => {
  let wallet: Wallet | undefined
  await using testBridge = await openLiveTestBridge({
    approvals: previewing(() => wallet?.balance ?? 0),
  })
  ;({ wallet } = testBridge)
  await using client = await joinLive(testBridge)
  client.say(`${callPayment(50)}[[then]][[say Paid.]]`)
  const [approvalId = ''] = await untilAsked(client)
  const page = testBridge.page()
  const before = await readPreview(page, approvalId)
  wallet.pay({ amount: 100, recipient: 'Ann' })
  const frame = { type: 'decide', id: 'chat-1', approvalId, approved: true }
  client.send({ ...frame, decisionId: 'd1', preview: before.digest })
  expect(await client.nextOf('decided')).toMatchObject({
    ok: false,
    code: 'preview-changed',
    preview: { changes: [{ before: '900' }] },
  })
  const { digest } = await readPreview(page, approvalId)
  client.send({ ...frame, decisionId: 'd2', preview: digest })
  expect(await client.next(({ decisionId }) => decisionId === 'd2')).toMatchObject({ ok: true })
  await page.untilState(approvalId, 'succeeded')
})

test.each([
  {
    name: 'throws',
    preview: () => {
      throw new Error('The bank does not answer.')
    },
  },
  { name: 'is invalid', preview: () => ({ lines: [{ label: 'x' }] }) as never },
])(
  '[AP364] if the preview $name, an approval that depends on it is rejected, and a denial is accepted',
  async ({ preview }) => {
    const { testBridge, page, wallet, id } = await openAsked({
      policy: () => ({ process_payment: { preview, requirePreview: true } }),
    })
    await using _ = testBridge
    const { approval } = await page.approval(id)
    expect(approval).toMatchObject({ hasPreview: true })
    expect(approval).not.toHaveProperty('preview')
    expect(await page.decide(id, { approved: true, preview: 'x' })).toMatchObject({
      status: 503,
      body: { error: { code: 'preview-failed' } },
    })
    expect(await page.decide(id, { approved: true })).toMatchObject({ status: 503 })
    expect(testBridge.errors.length).toBeGreaterThan(0)
    expect(await page.decide(id, { approved: false })).toMatchObject({ status: 200 })
    expect(wallet.payments).toEqual([])
  },
)

test('[AP364] a function of the policy that takes too long counts as failed', async () => {
  vi.useFakeTimers()
  const late = callInTime('`preview` of the policy', () => new Promise(() => undefined))
  const failure = late.catch((error: unknown) => error)
  await vi.advanceTimersByTimeAsync(5_000)
  expect(String(await failure)).toContain('`preview` of the policy took longer than 5000 ms.')
  expect(await callInTime('preview', () => 1)).toBe(1)
  expect(vi.getTimerCount()).toBe(0)
})

/** Asks what a call would do with other arguments. */
async function previewEdit(page: Page, id: string, args: object) {
  const response = await page.fetch(`http://page/approvals/${id}/preview`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ args }),
  })
  // The assertions check its form.
  const body = (await response.json()) as { preview?: ShownPreview; error?: { code: string } }
  return { status: response.status, code: body.error?.code, body }
}

test('[AP1101] the server previews a call with edited arguments, and the approval names that preview', async () => {
  const { testBridge, page, wallet, id } = await openAsked({
    policy: (balance) => ({
      process_payment: ({ args: { amount } }) => ({
        ...(previewing(balance)['process_payment' as never] as object),
        severity: Number(amount) > 100 ? 'high' : 'low',
      }),
    }),
  })
  await using _ = testBridge
  const edited = { amount: 480, recipient: 'Mallory' }
  const { status, body } = await previewEdit(page, id, edited)
  expect(status).toBe(200)
  expect(body).toMatchObject({
    hasPreview: true,
    severity: 'high',
    preview: { headline: 'Send $480 for hanako', changes: [{ before: '1000', after: '520' }] },
  })
  const { digest } = body.preview ?? raise()
  wallet.pay({ amount: 1, recipient: 'Ann' })
  const changed = await page.decide(id, { approved: true, args: edited, preview: digest })
  expect(changed.body.error?.code).toBe('preview-changed')
  const again = await previewEdit(page, id, edited)
  const preview = again.body.preview?.digest
  expect((await page.decide(id, { approved: true, args: edited, preview })).status).toBe(200)
  const { history } = await page.approval(id)
  expect(history).toContainEqual(expect.objectContaining({ preview: again.body.preview }))
  await vi.waitFor(() => expect(wallet.balance).toBe(519))
  expect(await previewEdit(page, id, edited)).toMatchObject({
    status: 409,
    code: 'approval-decided',
  })
})

test('[AP1101] the preview of an edit is refused for the same reasons as the edit', async () => {
  const { testBridge, page, id } = await openAsked({
    policy: () => ({
      process_payment: ({ args: { amount }, chat: { principalId } }) => ({
        chain: [
          { principals: [principalId] },
          ...(Number(amount) > 500 ? [{ roles: ['manager'] }] : []),
        ],
      }),
    }),
  })
  await using _ = testBridge
  const codes = async (args: object, reader = page) => (await previewEdit(reader, id, args)).code
  expect(await previewEdit(page, id, { amount: 500, recipient: 'Bob' })).toMatchObject({
    status: 200,
    body: {},
  })
  expect(await codes({ amount: 501, recipient: 'Bob' })).toBe('not-editable')
  expect(await codes({ amount: 'all', recipient: 'Bob' })).toBe('bad-request')
  expect(await codes({ amount: 5, recipient: 'Bob' }, testBridge.page('mari'))).toBe(
    'unknown-approval',
  )
})

test('[AP366] a call that would fail cannot be approved, as shown or as edited', async () => {
  const { testBridge, page, wallet, id } = await openAsked()
  await using _ = testBridge
  const { digest } = await readPreview(page, id)
  const args = { amount: 5000, recipient: 'Ann' }
  expect(await page.decide(id, { approved: true, preview: digest, args })).toMatchObject({
    status: 409,
    body: {
      error: { code: 'call-blocked', message: 'Not enough money.', preview: { action: '$5000' } },
    },
  })
  wallet.pay({ amount: 990, recipient: 'Ben' })
  const now = await readPreview(page, id)
  expect(now.blocked).toBe('Not enough money.')
  expect(await page.decide(id, { approved: true, preview: now.digest })).toMatchObject({
    status: 409,
    body: { error: { code: 'call-blocked' } },
  })
  expect(
    await page.decide(id, {
      approved: true,
      preview: now.digest,
      args: { amount: 5, recipient: 'Ann' },
    }),
  ).toMatchObject({ status: 200 })
  await page.untilState(id, 'succeeded')
})

test('[AP366] a preview that the policy gives of the edited call only is made too', async () => {
  const { testBridge, page, wallet, id } = await openAsked({
    policy: (balance) => ({
      process_payment: ({ args: { amount } }) =>
        Number(amount) > 100 ? { preview: () => ({ blocked: `Only $${balance()}.` }) } : true,
    }),
  })
  await using _ = testBridge
  const args = { amount: 500, recipient: 'Ann' }
  expect(await page.decide(id, { approved: true, args })).toMatchObject({
    status: 409,
    body: { error: { code: 'call-blocked', message: 'Only $1000.' } },
  })
  expect(wallet.payments).toEqual([])
  const less = { ...args, amount: 90 }
  expect(await page.decide(id, { approved: true, args: less })).toMatchObject({ status: 200 })
})

test('[AP363] no preview is made for a decision that the ledger rejects anyway', async () => {
  let made = 0
  const { testBridge, page, id } = await openAsked({
    policy: () => ({
      process_payment: {
        deciders: { principals: ['hanako'] },
        preview: () => {
          made += 1
          return {}
        },
      },
    }),
  })
  await using _ = testBridge
  const { digest } = await readPreview(page, id)
  expect(await page.decide(id, { approved: true, preview: digest })).toMatchObject({ status: 200 })
  const before = made
  expect(await page.decide(id, { approved: true, preview: 'old' })).toMatchObject({
    status: 409,
    body: { error: { code: 'approval-decided' } },
  })
  expect(made).toBe(before)
})

test('[AP367] the inbox and an approval have the schema of the arguments, if one person can edit them', async () => {
  const { testBridge, page, id } = await openAsked()
  await using _ = testBridge
  const { approval } = await page.approval(id)
  expect(approval['argsSchema']).toMatchObject({
    type: 'object',
    properties: {
      amount: { type: 'number', exclusiveMinimum: 0 },
      recipient: { type: 'string', minLength: 1 },
      currency: { enum: ['USD', 'JPY'], default: 'USD' },
    },
    required: ['amount', 'recipient'],
  })
  expect((await page.inbox())[0]).toHaveProperty('argsSchema')
  const several = await openAsked({
    policy: (balance) =>
      previewing(balance, { chain: [{ principals: ['hanako'] }, { roles: ['manager'] }] }),
  })
  await using second = several.testBridge
  expect(second.errors).toEqual([])
  expect((await several.page.approval(several.id)).approval).not.toHaveProperty('argsSchema')
})
