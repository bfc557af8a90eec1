import { expect, test } from 'vitest'

import { callPayment } from './support/payments.ts'
import { TestBridge, type TestBridgeOptions } from './support/test-bridge.ts'

const POLICY = { process_payment: { chain: [{ principals: ['hanako'] }, { roles: ['manager'] }] } }

/** The owner of the chat may invite a manager. */
const LINKS = {
  issue: ({ principal, approval, step }: LinkRequest) =>
    principal.id === approval.chat.principalId ? { roles: step.roles } : undefined,
}

interface LinkRequest {
  readonly principal: { readonly id: string }
  readonly approval: { readonly chat: { readonly principalId: string } }
  readonly step: { readonly roles: readonly string[] }
}

/** Requests a payment that its owner has approved, and that waits for a manager. */
async function open(options: TestBridgeOptions = {}) {
  const testBridge = await TestBridge.open({ approvals: POLICY, approvalLinks: LINKS, ...options })
  const ask = async (chatId: string) => {
    const page = testBridge.page()
    const text = `${callPayment(50)}[[then]][[say Paid.]]`
    const message = { id: `u-${chatId}`, role: 'user', parts: [{ type: 'text', text }] }
    await page.post({ id: chatId, messages: [message] })
    const { approvals = [] } = await page.list('state=requested&limit=1')
    const id = approvals[0]?.id ?? ''
    await page.decide(id, { approved: true })
    return id
  }
  const post = async (path: string, body?: unknown, headers: Record<string, string> = {}) => {
    const response = await fetch(`${testBridge.url}/approvals/${path}`, {
      method: 'POST',
      headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const json = (await response.json()) as Answer
    return { status: response.status, code: json.error?.code, ...json }
  }
  return {
    testBridge,
    ask,
    post,
    create: (id: string, as = 'hanako') => post(`${id}/links`, undefined, { 'x-api-key': as }),
    [Symbol.asyncDispose]: () => testBridge[Symbol.asyncDispose](),
  }
}

interface Answer {
  readonly error?: { readonly code: string; readonly message: string }
  readonly token?: string
  readonly key?: string
  readonly expiresAt?: number
  readonly approval?: Record<string, unknown>
  readonly from?: unknown
}

test('[AP455] a person without an account opens a link, sees the approval, and decides it once', async () => {
  await using scene = await open()
  const { testBridge, ask, post, create } = scene
  const id = await ask('chat-1')
  const created = await create(id)
  expect(created.status).toBe(201)
  const opened = await post(`${id}/link/open`, { token: created.token })
  expect(opened).toMatchObject({
    status: 200,
    from: { id: 'hanako' },
    approval: { id, toolName: 'process_payment', mayDecide: true, own: false },
  })
  // The holder sees the call, not the conversation.
  expect(JSON.stringify(opened)).not.toContain('chat-1')
  expect((await post(`${id}/link/read`, { key: opened.key })).status).toBe(200)
  const decided = await post(`${id}/link/decide`, { key: opened.key, approved: true })
  expect(decided.status).toBe(200)
  await testBridge.page().untilState(id, 'succeeded')
  expect(testBridge.wallet.payments).toHaveLength(1)
  // The record says how the person was identified, and who vouched for them.
  const { approval, history } = await testBridge.page().approval(id)
  const entry = history.find(({ type }) => type === 'link-created')
  expect(entry).toMatchObject({ by: 'hanako', as: { roles: ['manager'] } })
  expect(history.find(({ type }) => type === 'approved')).toMatchObject({
    by: `link-${String(entry?.['linkId'])}`,
    via: { linkId: entry?.['linkId'], createdBy: 'hanako' },
  })
  expect(approval['votes']).toMatchObject([{}, { linkBy: { id: 'hanako' } }])
  // Neither the database nor the record contains a secret.
  const stored = JSON.stringify([await testBridge.store.approvals.get(id), history])
  for (const secret of [created.token, opened.key]) expect(stored).not.toContain(secret)
})

test('[TU91] the holder of a link reads the approval while the bridge drains, and decides nothing', async () => {
  await using scene = await open({ isLive: false })
  const { testBridge, ask, post, create } = scene
  const id = await ask('chat-1')
  const { token } = await create(id)
  const { key } = await post(`${id}/link/open`, { token })
  const running = testBridge.page().post({
    id: 'chat-2',
    messages: [{ id: 'u2', role: 'user', parts: [{ type: 'text', text: '[[wait never]]' }] }],
  })
  await testBridge.untilAsked('never')
  const closing = testBridge.bridge.close()
  expect((await post(`${id}/link/read`, { key })).status).toBe(200)
  const decision = { key, approved: true }
  expect(await post(`${id}/link/decide`, decision)).toMatchObject({ code: 'unavailable' })
  void testBridge.bridge.close({ drainMs: 0 })
  await Promise.all([closing, running])
})

test('[AP456] a link cannot be replayed, guessed, used for another approval, or used after it expired', async () => {
  await using scene = await open({ approvalLinks: { ...LINKS, expiresMs: 60_000 } })
  const { testBridge, ask, post, create } = scene
  const id = await ask('chat-1')
  const other = await ask('chat-2')
  const { token } = await create(id)
  const REFUSED = { status: 404, code: 'unknown-approval' }
  expect(await post(`${id}/link/open`, { token: `${token}x` })).toMatchObject(REFUSED)
  expect(await post(`${other}/link/open`, { token })).toMatchObject(REFUSED)
  expect(await post('none/link/open', { token })).toMatchObject(REFUSED)
  // The token opens and does not decide. A browser that opens the link takes it from the one before.
  expect(await post(`${id}/link/decide`, { key: token, approved: true })).toMatchObject(REFUSED)
  const both = await Promise.all([1, 2].map(() => post(`${id}/link/open`, { token })))
  const { key } = await post(`${id}/link/open`, { token })
  for (const { key: before } of both) {
    expect(await post(`${id}/link/read`, { key: before })).toMatchObject(REFUSED)
    expect(await post(`${id}/link/decide`, { key: before, approved: true })).toMatchObject(REFUSED)
  }
  expect(await post(`${id}/link/open`, { token: key })).toMatchObject(REFUSED)
  expect(await post(`${other}/link/decide`, { key, approved: true })).toMatchObject(REFUSED)
  const twice = await Promise.all(
    [1, 2].map(() => post(`${id}/link/decide`, { key, approved: true })),
  )
  expect(twice.filter(({ status }) => status === 200)).toHaveLength(1)
  await testBridge.page().untilState(id, 'succeeded')
  expect(await post(`${id}/link/decide`, { key, approved: false })).toMatchObject(REFUSED)
  expect(await post(`${id}/link/read`, { key })).toMatchObject(REFUSED)
  expect(testBridge.wallet.payments).toHaveLength(1)
})

test('[AP1042] a link opens again until it has decided, ten times, with an audit entry for each', async () => {
  await using scene = await open()
  const { testBridge, ask, post, create } = scene
  const id = await ask('chat-1')
  const { token } = await create(id)
  const before = (await testBridge.page().history(id)).length
  const statuses: number[] = []
  for (let index = 0; index < 11; index += 1)
    statuses.push((await post(`${id}/link/open`, { token })).status)
  expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 404])
  const history = await testBridge.page().history(id)
  expect(history.slice(before)).toEqual(Array.from({ length: 10 }, () => 'link-opened'))
})

/** A lead vouches for the holders of their links, as in the recipe. */
const LEADS: TestBridgeOptions = {
  approvals: { process_payment: { deciders: { roles: ['manager'] }, approvers: 2 } },
  approvalLinks: {
    issue: ({ principal: { roles = [] }, step }) =>
      roles.includes('manager') ? { roles: step.roles } : undefined,
  },
}

test('[AP1041] one person cannot be two approvers with links, over HTTP', async () => {
  await using scene = await open(LEADS)
  const { testBridge, ask, post, create } = scene
  const REFUSED = { status: 403, code: 'not-allowed' }
  const openAs = async (id: string, creator: string, browser?: string) => {
    const { token } = await create(id, creator)
    const headers = browser === undefined ? {} : { 'x-api-key': browser }
    const opened = await post(`${id}/link/open`, { token }, headers)
    const { key } = opened
    const vote = () => post(`${id}/link/decide`, { key, approved: true }, headers)
    return { ...opened, vote }
  }
  // The same signed-in person has a link of each of two leads.
  const first = await ask('chat-1')
  const [one, two] = [await openAs(first, 'mari', 'taro'), await openAs(first, 'mike', 'taro')]
  expect(await one.vote()).toMatchObject({ status: 200 })
  expect(await two.vote()).toMatchObject(REFUSED)
  expect(await openAs(first, 'mike', 'taro')).toMatchObject(REFUSED)
  // A browser that signs in after it has opened the link is that person too.
  const { token } = await create(first, 'mike')
  const { key } = await post(`${first}/link/open`, { token })
  const late = await post(`${first}/link/decide`, { key, approved: true }, { 'x-api-key': 'taro' })
  expect(late).toMatchObject(REFUSED)

  // A lead votes, and opens their own link without credentials.
  const second = await ask('chat-2')
  const early = await openAs(second, 'mari')
  expect(await testBridge.page('mari').decide(second, { approved: true })).toMatchObject({
    status: 200,
  })
  expect(await early.vote()).toMatchObject(REFUSED)
  expect(await create(second, 'mari')).toMatchObject(REFUSED)

  // Two links of one lead, and then the lead.
  const third = await ask('chat-3')
  const [left, right] = [await openAs(third, 'mari'), await openAs(third, 'mari')]
  expect(await left.vote()).toMatchObject({ status: 200 })
  expect(await right.vote()).toMatchObject(REFUSED)
  const { approval } = await testBridge.page('mari').approval(third)
  expect(approval).toMatchObject({ mayDecide: false, whyNot: 'link-used' })
  expect(await testBridge.page('mari').decide(third, { approved: true })).toMatchObject({
    status: 403,
  })
  expect(testBridge.wallet.payments).toEqual([])
  expect(await testBridge.page('mike').decide(third, { approved: true })).toMatchObject({
    status: 200,
  })
  await testBridge.page().untilState(third, 'succeeded')
})

test('[AP456] an expired link neither opens, shows nor decides', async () => {
  await using scene = await open({ approvalLinks: { ...LINKS, expiresMs: 1 } })
  const { testBridge, ask, post, create } = scene
  const id = await ask('chat-1')
  const { token, expiresAt = 0 } = await create(id)
  await expect.poll(() => testBridge.store.approvals.now()).toBeGreaterThan(expiresAt)
  expect(await post(`${id}/link/open`, { token })).toMatchObject({ status: 404 })
  expect((await testBridge.page().approval(id)).approval.state).toBe('requested')
})

test('[AP457] only a principal whom the host allows creates a link, and only for a person whom the policy names', async () => {
  const REFUSED = { status: 403, code: 'not-allowed' }
  await using scene = await open()
  const id = await scene.ask('chat-1')
  expect(await scene.create(id, 'mari')).toMatchObject(REFUSED)
  expect(await scene.create(id, 'taro')).toMatchObject({ status: 404, code: 'unknown-approval' })
  expect(await scene.post(`${id}/links`)).toMatchObject({ status: 401 })

  // A host that allows too much cannot override the policy: neither a stranger, nor the requester, nor a person who has voted.
  for (const holder of [{}, { roles: ['staff'] }, { principalId: 'hanako', roles: ['manager'] }]) {
    await using lax = await open({ approvalLinks: { issue: () => holder } })
    const asked = await lax.ask('chat-1')
    expect([holder, await lax.create(asked)]).toMatchObject([holder, REFUSED])
    // A person who may decide passes on nothing but their own right.
    expect([holder, (await lax.create(asked, 'mari')).status]).toEqual([holder, 403])
  }
  await using own = await open({
    approvalLinks: {
      issue: ({ principal: { id: principalId, roles = [] } }) => ({ principalId, roles }),
    },
  })
  const asked = await own.ask('chat-1')
  const { token } = await own.create(asked, 'mari')
  const { key } = await own.post(`${asked}/link/open`, { token })
  await own.post(`${asked}/link/decide`, { key, approved: true })
  await own.testBridge.page().untilState(asked, 'succeeded')
  // Hanako has voted, so there is nothing to pass on.
  const again = await own.ask('chat-2')
  expect(await own.create(again)).toMatchObject(REFUSED)
})

test('[AP457] the requester, the creator and voters cannot open a link with their own credentials', async () => {
  await using scene = await open()
  const { ask, post, create } = scene
  const id = await ask('chat-1')
  const { token } = await create(id)
  expect(await post(`${id}/link/open`, { token }, { 'x-api-key': 'hanako' })).toMatchObject({
    status: 403,
    code: 'not-allowed',
  })
  // The attempt does not use the link up. Another person with an account opens it.
  expect((await post(`${id}/link/open`, { token }, { 'x-api-key': 'taro' })).status).toBe(200)
})

test('[AP455] other sites cannot create, open or use a link, and a bridge without the option has none', async () => {
  await using scene = await open()
  const { testBridge, ask, post, create } = scene
  const id = await ask('chat-1')
  const foreign = { origin: 'https://evil.example', 'x-api-key': 'hanako' }
  expect(await post(`${id}/links`, undefined, foreign)).toMatchObject({ status: 403 })
  const { token } = await create(id)
  expect(await post(`${id}/link/open`, { token }, foreign)).toMatchObject({ status: 403 })
  // A form of another site cannot send JSON, and a link in a URL is never read.
  const form = await fetch(`${testBridge.url}/approvals/${id}/link/open?token=${token}`, {
    method: 'POST',
    headers: { 'content-type': 'text/plain' },
    body: JSON.stringify({ token }),
  })
  expect(form.status).toBe(415)
  expect((await fetch(`${testBridge.url}/approvals/${id}/link/open?token=${token}`)).status).toBe(
    405,
  )
  expect((await post(`${id}/link/open`, { token })).status).toBe(200)

  await using off = await TestBridge.open({ approvals: POLICY })
  const response = await fetch(`${off.url}/approvals/x/links`, { method: 'POST' })
  expect(response.status).toBe(404)
})

test('[AP455] a denial by link decides, and the person learns nothing more', async () => {
  await using scene = await open()
  const { testBridge, ask, post, create } = scene
  const id = await ask('chat-1')
  const { token } = await create(id)
  const { key } = await post(`${id}/link/open`, { token })
  const decided = await post(`${id}/link/decide`, { key, approved: false, reason: 'No' })
  expect(decided.approval).toEqual({ id, state: 'denied' })
  expect(testBridge.wallet.payments).toEqual([])
  expect((await testBridge.page().approval(id)).approval).toMatchObject({ reason: 'No' })
})
