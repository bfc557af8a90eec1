import { expect, test, vi } from 'vitest'

import type { SlackOptions } from '../../src/modules/notify/slack.ts'
import { slack } from '../../src/modules/notify/slack.ts'
import { collect } from '../../src/shared/async.ts'
import type { TestBridgeOptions } from '../approvals/support/test-bridge.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { signAsSlack, SIGNING_SECRET, startSlack } from './support/slack-server.ts'

/** The people of a workspace. */
const ACCOUNTS: Readonly<Record<string, { id: string; roles?: string[] }>> = {
  'T1/U1': { id: 'hanako' },
  'T1/U2': { id: 'taro' },
  'E1/U1': { id: 'hanako' },
}

/** A click on a button, as Slack reports it. */
function clickOn(value: string, fields: object = {}, action = 'adk-approve') {
  return {
    type: 'block_actions',
    user: { id: 'U1' },
    team: { id: 'T1' },
    channel: { id: 'C1' },
    message: { ts: '17.1' },
    trigger_id: 'trigger',
    actions: [{ action_id: action, value }],
    ...fields,
  }
}

async function open(options: Partial<SlackOptions> = {}, bridge: TestBridgeOptions = {}) {
  const server = await startSlack()
  const channel = slack({
    token: 'xoxb-test',
    signingSecret: SIGNING_SECRET,
    channel: 'C1',
    principalOf: ({ teamId, userId }) => ACCOUNTS[`${teamId}/${userId}`],
    apiUrl: server.url,
    ...options,
  })
  const testBridge = await TestBridge.open({
    isLive: false,
    notify: { channels: { slack: channel } },
    ...bridge,
  })
  const pay = async (recipient = '花子'): Promise<string> => {
    const text = `${callPayment(50, recipient)}[[then]][[say Paid.]]`
    const messages = [{ id: 'u-1', role: 'user', parts: [{ type: 'text', text }] }]
    await testBridge.page().post({ id: 'chat-1', messages })
    await expect.poll(server.methods).toContain('chat.postMessage')
    const { approvals = [] } = await testBridge.page().list('state=requested&limit=1')
    return approvals[0]?.id ?? ''
  }
  const send = async (payload: unknown, headers?: (body: string) => Record<string, string>) => {
    const body = new URLSearchParams({ payload: JSON.stringify(payload) }).toString()
    const url = `${testBridge.url}/channels/slack`
    const response = await fetch(url, {
      method: 'POST',
      headers: headers?.(body) ?? signAsSlack(body),
      body,
    })
    return response.status
  }
  return {
    server,
    testBridge,
    pay,
    send,
    click: (value: string, action: string, user = 'U1') =>
      send(clickOn(value, { user: { id: user } }, action)),
    clickAs: (value: string, clicks: object) => send(clickOn(value, clicks)),
    told: () =>
      server.calls
        .filter(({ method }) => method === 'chat.postEphemeral')
        .map(({ body }) => String(body['text'])),
    async [Symbol.asyncDispose]() {
      await testBridge[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

test('[NT1573] a person approves in Slack, the call runs once, and its card says so', async () => {
  await using opened = await open()
  const id = await opened.pay()
  const [posted] = opened.server.calls
  expect(posted?.body).toMatchObject({ channel: 'C1' })
  expect(JSON.stringify(posted?.body)).toContain(id)
  expect(await opened.click(id, 'adk-approve')).toBe(200)
  await expect
    .poll(opened.server.methods)
    .toEqual(['chat.postMessage', 'chat.update', 'chat.update'])
  const last = opened.server.calls.at(-1)?.body
  expect(last).toMatchObject({ channel: 'C1', ts: '17.1' })
  expect(last?.['text']).toContain('done')
  expect(JSON.stringify(last)).not.toContain('adk-approve')
  // A second click, and a click of a person whose page has not changed yet.
  expect(await opened.click(id, 'adk-approve')).toBe(200)
  expect(opened.told()).toHaveLength(1)
  expect(opened.testBridge.wallet.payments).toHaveLength(1)
  const events = await collect(opened.testBridge.store.approvals.audit({}))
  expect(events.find(({ event }) => event.type === 'approved')?.event).toMatchObject({
    by: 'hanako',
    via: { channel: 'slack', account: 'T1/U1' },
  })
})

test('[NT1573] a denial asks for a reason', async () => {
  await using opened = await open()
  const id = await opened.pay()
  await opened.click(id, 'adk-deny')
  const view = opened.server.calls.at(-1)
  expect(view?.method).toBe('views.open')
  const shown = view?.body['view'] as { readonly private_metadata: string } | undefined
  const private_metadata = shown?.private_metadata
  const values = { reason: { reason: { value: 'Too much.' } } }
  await opened.send({
    type: 'view_submission',
    user: { id: 'U1' },
    team: { id: 'T1' },
    view: { private_metadata, state: { values } },
  })
  await expect.poll(opened.server.methods).toContain('chat.update')
  expect(JSON.stringify(opened.server.calls.at(-1)?.body)).toContain('Too much.')
  expect(opened.testBridge.wallet.payments).toEqual([])
})

/** People who may not decide, as Slack reports them, and what they are told. */
const STRANGERS: readonly (readonly [who: string, clicks: object, told: string])[] = [
  ['nobody of the application', { user: { id: 'U9', team_id: 'T1' } }, 'not known'],
  ['a guest with another id', { user: { id: 'U1G', team_id: 'T1' } }, 'not known'],
  ['a person of another workspace', { team: { id: 'T2' } }, 'not known'],
  [
    'a person of another workspace, in a shared channel',
    { user: { id: 'U1', team_id: 'T2' } },
    'not known',
  ],
  [
    'a person of another organisation, in a shared channel',
    {
      user: { id: 'U1', team_id: 'E2' },
      team: { id: 'T1', enterprise_id: 'E1' },
      enterprise: { id: 'E1' },
    },
    'not known',
  ],
  [
    'a person of another organisation',
    { user: { id: 'U1', team_id: 'E2' }, team: null },
    'not known',
  ],
  ['a person who may not decide', { user: { id: 'U2' } }, 'no such approval'],
]

test('[NT1574] [NT1940] strangers of every kind decide nothing, and read why', async () => {
  await using opened = await open()
  const id = await opened.pay()
  for (const [, clicks] of STRANGERS) expect(await opened.clickAs(id, clicks)).toBe(200)
  expect(await opened.click('another approval', 'adk-approve')).toBe(200)
  const texts = [...STRANGERS.map(([, , told]) => told), 'no such approval']
  const told = opened.told()
  expect(told).toHaveLength(texts.length)
  for (const [index, text] of texts.entries()) expect(told[index]).toContain(text)
  expect(opened.testBridge.wallet.payments).toEqual([])
  expect(await opened.testBridge.page().inbox()).toHaveLength(1)
  // Somebody without a workspace is nobody.
  expect(await opened.clickAs(id, { team: null })).toBe(400)
})

test.each<[string, object]>([
  ['a workspace', { user: { id: 'U1', team_id: 'T1' } }],
  [
    'a workspace of an organisation',
    { user: { id: 'U1', team_id: 'E1' }, team: { id: 'T1', enterprise_id: 'E1' } },
  ],
  [
    'a workspace of an organisation that only the app names',
    { user: { id: 'U1', team_id: 'E1' }, enterprise: { id: 'E1' } },
  ],
  [
    'an organisation that has the app',
    { user: { id: 'U1', team_id: 'E1' }, team: null, enterprise: { id: 'E1' } },
  ],
])('[NT1940] a member of %s is known by it', async (_what, clicks) => {
  await using opened = await open()
  const id = await opened.pay()
  expect(await opened.clickAs(id, clicks)).toBe(200)
  expect(opened.told()).toEqual([])
  expect(opened.testBridge.wallet.payments).toHaveLength(1)
})

test('[NT1941] a refusal is in the language of the cards', async () => {
  await using opened = await open({ language: 'ja' })
  const id = await opened.pay()
  await opened.click(id, 'adk-approve', 'U2')
  await opened.click(id, 'adk-approve', 'U9')
  expect(opened.told()).toEqual([
    'この承認依頼は見つかりません。',
    expect.stringContaining('登録されていない'),
  ])
})

test.each([
  ['another secret', (body: string) => signAsSlack(body, { secret: 'other' }), 401],
  ['a changed body', (body: string) => signAsSlack(`${body}&x=1`), 401],
  ['a request of over five minutes ago', (body: string) => signAsSlack(body, { ageS: 301 }), 401],
  ['a request of the future', (body: string) => signAsSlack(body, { ageS: -400 }), 401],
  [
    'a request of a server whose clock is an hour ahead',
    (body: string) => signAsSlack(body, { ageS: -3_600 }),
    401,
  ],
  ['no signature', () => ({ 'content-type': 'application/x-www-form-urlencoded' }), 401],
])('[NT1574] %s decides nothing', async (_what, headers, status) => {
  await using opened = await open()
  const id = await opened.pay()
  expect(await opened.send(clickOn(id), headers)).toBe(status)
  expect(opened.testBridge.wallet.payments).toEqual([])
})

test('[NT1574] a signed request that is no interaction is refused', async () => {
  await using opened = await open()
  expect(await opened.send({ type: 'shortcut' })).toBe(400)
  expect(await opened.send({ type: 'block_actions', actions: [] })).toBe(400)
})

test('[NT1574] the signature of the example in the documentation of Slack is accepted', async () => {
  const body =
    'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c'
  const headers = new Headers({
    'x-slack-request-timestamp': '1531420618',
    'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
  })
  const channel = slack({
    token: 'xoxb-test',
    signingSecret: SIGNING_SECRET,
    channel: 'C1',
    principalOf: () => undefined,
  })
  const receive = async (seconds: number): Promise<unknown> => {
    const now = async (): Promise<number> => seconds * 1_000
    return channel.receive?.({ headers, body }, { now, read: vi.fn(), decide: vi.fn() })
  }
  // The signature is right; a command is no interaction of a card.
  for (const late of [-300, 300])
    await expect(receive(1_531_420_618 + late)).rejects.toMatchObject({ code: 'bad-request' })
  for (const late of [-301, 301])
    await expect(receive(1_531_420_618 + late)).rejects.toMatchObject({ code: 'unauthenticated' })
})

/** Shows the recipient in the headline. */
const describeRecipient = ({ recipient }: Readonly<Record<string, unknown>>) => ({
  headline: `Pay ${String(recipient)}`,
})

test.each([
  ['of high severity', { severity: 'high' }, '花子'],
  ['with a look-alike letter', {}, 'P\u0430ypal'],
  [
    'with a run of spaces that the headline contains',
    { preview: describeRecipient },
    'Alice   Bob',
  ],
] as const)(
  '[NT1575] a call %s cannot be approved in Slack, by its button or without one',
  async (_case, terms, recipient) => {
    await using opened = await open({}, { approvals: { process_payment: terms } })
    const id = await opened.pay(recipient)
    const card = JSON.stringify(opened.server.calls[0]?.body)
    expect([card.includes('adk-approve'), card.includes('adk-deny')]).toEqual([false, true])
    await opened.click(id, 'adk-approve')
    expect(opened.told()).toEqual([expect.stringContaining('cannot be approved here')])
    expect(opened.testBridge.wallet.payments).toEqual([])
  },
)

test.each([
  ['high', true],
  ['low', false],
] as const)(
  '[NT1575] `mayApprove` decides whether a call of severity %s may be approved in Slack: %s',
  async (severity, allowed) => {
    await using opened = await open(
      { mayApprove: (approval) => approval.severity === 'high' },
      { approvals: { process_payment: { severity } } },
    )
    const id = await opened.pay()
    expect(JSON.stringify(opened.server.calls[0]?.body).includes('adk-approve')).toBe(allowed)
    await opened.click(id, 'adk-approve')
    expect(opened.testBridge.wallet.payments).toHaveLength(allowed ? 1 : 0)
    expect(opened.told()).toHaveLength(allowed ? 0 : 1)
  },
)

test('[NT1577] a card without arguments shows neither them nor the preview, and cannot approve where a preview is required', async () => {
  const terms = { title: 'Payment', requirePreview: true, preview: describeRecipient }
  const approvals = { process_payment: terms }
  await using opened = await open({ includeArguments: false }, { approvals })
  const id = await opened.pay()
  await opened.click(id, 'adk-approve')
  expect(opened.told()).toEqual([expect.stringContaining('preview')])
  // The card that is shown again, too.
  const cards = JSON.stringify(opened.server.calls.filter(({ body }) => body['blocks']))
  for (const text of ['花子', 'amount', 'Pay ']) expect(cards).not.toContain(text)
  expect(opened.testBridge.wallet.payments).toEqual([])
})

test('[NT1576] values of the model cannot mention people, add links or hide characters in a card', async () => {
  await using opened = await open()
  await opened.pay('<!channel> <https://evil.example|bank>\nApproved \u202Eby your bank :tada:')
  const { blocks, text } = opened.server.calls[0]?.body ?? {}
  const card = JSON.stringify(blocks)
  expect(card).not.toContain('mrkdwn')
  expect(card).not.toContain('\u202E')
  expect(card).toContain('⟨U+202E⟩')
  expect(card).not.toContain('"emoji":true')
  expect(text).not.toContain('<')
  // The line break is in the value, not in the card.
  expect(card).toContain('\\\\nApproved')
})

test('[NT1576] a card with very long values stays within the limits of Slack', async () => {
  await using opened = await open()
  await opened.pay('x'.repeat(10_000))
  const blocks = opened.server.calls[0]?.body['blocks'] as readonly {
    readonly type: string
    readonly text?: { readonly text: string }
  }[]
  const lengths = Object.fromEntries(blocks.map(({ type, text }) => [type, text?.text.length ?? 0]))
  expect(lengths['header']).toBeLessThanOrEqual(150)
  expect(lengths['section']).toBeLessThanOrEqual(3_000)
})

test('[NT1574] a body with other bytes and the same meaning decides nothing', async () => {
  await using opened = await open()
  const id = await opened.pay()
  const payload = clickOn(id)
  const other = new URLSearchParams({ payload: JSON.stringify(payload) })
  expect(
    await opened.send(payload, () => signAsSlack(other.toString().replaceAll('%7B', '%7b'))),
  ).toBe(401)
  expect(opened.testBridge.wallet.payments).toEqual([])
})

test('[NT1577] a card shows the preview, a click names it, and a card whose preview has changed is shown again', async () => {
  let balance = 100
  const preview = ({ amount }: Readonly<Record<string, unknown>>) => ({
    headline: `Send $${String(amount)}`,
    lines: [{ label: 'Balance', value: `$${balance}` }],
    ...(balance < 50 && { blocked: 'The balance is too low.' }),
  })
  const approvals = { process_payment: { title: 'Payment', requirePreview: true, preview } }
  await using opened = await open({ language: 'ja' }, { approvals })
  const { server, click, testBridge } = opened
  await opened.pay()
  const card = (): string => JSON.stringify(server.calls.findLast(({ body }) => body['blocks']))
  const valueOf = (): string => /"value":"([^"]+ [^"]+)"/.exec(card())?.[1] ?? ''
  for (const text of ['Send $50', 'Balance: $100', 'recipient: ', '承認', '拒否'])
    expect(card()).toContain(text)
  const shown = valueOf()
  // A click that names none, as of a card that showed none.
  await click(shown.split(' ')[0] ?? '', 'adk-approve')
  balance = 90
  await click(shown, 'adk-approve')
  expect(opened.told()).toHaveLength(2)
  expect(testBridge.wallet.payments).toEqual([])
  expect(card()).toContain('Balance: $90')
  const value = valueOf()
  balance = 10
  await click(value, 'adk-approve')
  expect(card()).toContain('The balance is too low.')
  expect(card()).not.toContain('adk-approve')
  balance = 90
  await click(value, 'adk-approve')
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[NT1563] a card waits when Slack asks for it', async () => {
  let isBusy = true
  let refused = 0
  await using server = await startSlack(() => {
    if (!isBusy) return undefined
    refused += 1
    return { status: 429, headers: { 'retry-after': '1' } }
  })
  await using opened = await open({ apiUrl: server.url })
  const text = `${callPayment(50)}[[then]][[say Paid.]]`
  const messages = [{ id: 'u-1', role: 'user', parts: [{ type: 'text', text }] }]
  await opened.testBridge.page().post({ id: 'chat-1', messages })
  await expect.poll(() => refused).toBeGreaterThan(0)
  isBusy = false
  await expect.poll(server.methods, { timeout: 20_000 }).toEqual(['chat.postMessage'])
})
