import { expect, test } from 'vitest'

import type { Notice, NoticeChannel } from '../../src/modules/notify/notice.ts'
import { encryptPush } from '../../src/modules/notify/push-message.ts'
import { webPush } from '../../src/modules/notify/web-push.ts'
import { callPayment } from '../approvals/support/payments.ts'
import type { Person } from '../approvals/support/test-bridge.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { Browser, newVapid, readVapid, startPushService } from './support/push-service.ts'

const VAPID = newVapid()
const OPTIONS = { vapid: VAPID, subject: 'mailto:ops@example.com', allowPrivateNetwork: true }

function decode(text: string): Buffer {
  return Buffer.from(text, 'base64url')
}

async function open(answer?: (path: string) => number) {
  const service = await startPushService(answer)
  const testBridge = await TestBridge.open({
    isLive: false,
    approvals: { process_payment: { title: 'Payment', severity: 'high' } },
    notify: {
      channels: {
        phone: webPush({ ...OPTIONS, approvalUrl: ({ id }) => `/inbox/${id}` }),
      },
    },
  })
  const call = async (person: Person, method: string, path = '', body?: unknown) => {
    const response = await fetch(`${testBridge.url}/channels/phone/addresses${path}`, {
      method,
      headers: { 'x-api-key': person, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = (await response.json()) as { id?: string; addresses?: unknown[]; info?: unknown }
    return { status: response.status, ...text }
  }
  return {
    service,
    testBridge,
    call,
    pay: async () => {
      const text = `${callPayment(50, 'canary')}[[then]][[say Paid.]]`
      const messages = [{ id: 'u-1', role: 'user', parts: [{ type: 'text', text }] }]
      await testBridge.page().post({ id: 'chat-1', messages })
      return (await testBridge.page().inbox())[0]?.id ?? ''
    },
    async [Symbol.asyncDispose]() {
      await testBridge[Symbol.asyncDispose]()
      await service[Symbol.asyncDispose]()
    },
  }
}

test('[NT1580] a message is encrypted as in the example of RFC 8291', () => {
  const encrypted = encryptPush(
    'When I grow up, I want to be a watermelon',
    {
      p256dh:
        'BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4',
      auth: 'BTBZMqHH6r4Tts7J_aSIgg',
    },
    {
      salt: decode('DGv6ra1nlYgDCS1FRnbzlw'),
      privateKey: decode('yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw'),
    },
  )
  expect(encrypted.toString('base64url')).toBe(
    'DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN',
  )
})

test('[NT1580] the browsers of the people who decide learn of a request and of its end, without arguments', async () => {
  await using opened = await open()
  const { service, call } = opened
  const browser = service.browser('one')
  expect(await call('hanako', 'GET')).toMatchObject({ info: { publicKey: VAPID.publicKey } })
  expect((await call('hanako', 'POST', '', browser.subscription)).status).toBe(201)
  expect((await call('taro', 'POST', '', service.browser('two').subscription)).status).toBe(201)
  const id = await opened.pay()
  await expect.poll(() => service.pushed.length).toBe(1)
  const [asked] = service.pushed
  expect(asked?.path).toBe('/one')
  expect(asked?.headers).toMatchObject({ urgency: 'high', 'content-encoding': 'aes128gcm' })
  expect(Number(asked?.headers['ttl'])).toBeGreaterThan(80_000)
  expect(asked?.headers['topic']).toMatch(/^[\w-]{32}$/)
  const claims = readVapid(asked?.headers.authorization)
  expect(claims).toMatchObject({ aud: service.url, sub: 'mailto:ops@example.com' })
  const shown = browser.decrypt(asked?.body ?? Buffer.alloc(0))
  expect(shown).toEqual({
    type: 'approval.requested',
    approvalId: id,
    title: 'Payment',
    severity: 'high',
    url: `/inbox/${id}`,
  })
  await opened.testBridge.page().decide(id, { approved: false })
  await expect.poll(() => service.pushed.length).toBe(2)
  const [, ended] = service.pushed
  expect(ended?.headers['topic']).toBe(asked?.headers['topic'])
  expect(browser.decrypt(ended?.body ?? Buffer.alloc(0))).toMatchObject({ type: 'approval.denied' })
})

test('[NT1581] a browser whose subscription has ended is removed, and a person who removes theirs is not told', async () => {
  await using opened = await open((path) => (path === '/gone' ? 410 : 201))
  const { service, call } = opened
  await call('hanako', 'POST', '', service.browser('gone').subscription)
  const { id: kept } = await call('hanako', 'POST', '', service.browser('kept').subscription)
  const { id: left } = await call('hanako', 'POST', '', service.browser('left').subscription)
  await call('hanako', 'DELETE', `/${left}`)
  await opened.pay()
  await expect
    .poll(() => service.pushed.map(({ path }) => path).toSorted())
    .toEqual(['/gone', '/kept'])
  await expect
    .poll(async () => (await call('hanako', 'GET')).addresses)
    .toMatchObject([{ id: kept }])
})

test('[NT1581] a browser belongs to one person, and nobody reads or removes those of others', async () => {
  await using opened = await open()
  const { service, call } = opened
  const shared = service.browser('shared').subscription
  const { id } = await call('hanako', 'POST', '', shared)
  expect((await call('taro', 'GET')).addresses).toEqual([])
  expect(await call('taro', 'DELETE', `/${id}`)).toMatchObject({ removed: false })
  // Taro signs in to the same browser, which Hanako has not left.
  await call('taro', 'POST', '', shared)
  expect((await call('hanako', 'GET')).addresses).toEqual([])
  await opened.pay()
  const read = async () =>
    opened.testBridge.store.notices?.list(
      'adk-stream-protocol',
      (await opened.testBridge.page().inbox())[0]?.id ?? '',
    )
  await expect.poll(async () => (await read())?.map(({ state }) => state)).toEqual(['ended'])
  expect(service.pushed).toEqual([])
})

const KEYS = new Browser('https://push.example.com/1').subscription.keys
const POINT = Buffer.from(KEYS.p256dh, 'base64url')
const OFF_CURVE = Buffer.concat([POINT.subarray(0, 64), Buffer.of((POINT.at(-1) ?? 0) ^ 1)])

test.each<[string, unknown]>([
  ['no subscription', {}],
  ['an endpoint without https:', { endpoint: 'http://push.example.com/1', keys: KEYS }],
  ['an endpoint that is no URL', { endpoint: 'push', keys: KEYS }],
  ['an endpoint with a password', { endpoint: 'https://a:b@push.example.com/1', keys: KEYS }],
  ['no keys', { endpoint: 'https://push.example.com/1' }],
  ['a short secret', { endpoint: 'https://push.example.com/1', keys: { ...KEYS, auth: 'AAAA' } }],
  [
    'a key that is not on the curve',
    {
      endpoint: 'https://push.example.com/1',
      keys: { ...KEYS, p256dh: OFF_CURVE.toString('base64url') },
    },
  ],
])('[NT1582] %s is refused as an address', (_what, given) => {
  const { vapid, subject } = OPTIONS
  expect(webPush({ vapid, subject }).addresses?.read(given)).toBe(undefined)
})

const NOTICE: Notice = {
  id: '1-0',
  type: 'approval.requested',
  at: 0,
  approval: {
    id: 'approval-1',
    state: 'requested',
    toolName: 'process_payment',
    args: {},
    principalId: 'hanako',
    chatId: 'chat-1',
    requestedAt: 0,
    deadline: 8.64e15,
    deciders: { principals: ['hanako'], roles: [] },
  },
}

/** Sends a notice to one browser of each person. */
async function send(channel: NoticeChannel, endpoint: string): Promise<unknown> {
  const { subscription } = new Browser(endpoint)
  const value = JSON.stringify(subscription)
  const addresses = { list: async () => [{ id: 'a', value }], remove: async () => undefined }
  return channel.send(NOTICE, {
    number: 1,
    at: Date.now(),
    signal: AbortSignal.timeout(20_000),
    addresses,
  })
}

test('[NT1582] a push service in a private network is not reached, and one that asks to wait is tried later', async () => {
  const { vapid, subject } = OPTIONS
  const inside = send(webPush({ vapid, subject }), 'https://169.254.169.254/latest')
  await expect(inside).rejects.toThrow('private network')
  await using service = await startPushService(() => 429)
  await expect(send(webPush(OPTIONS), `${service.url}/1`)).rejects.toMatchObject({ retryMs: 7_000 })
})

test('[NT1582] keys that are no pair, and a subject that is no address, are refused', () => {
  const vapid = { ...VAPID, privateKey: newVapid().privateKey }
  expect(() => webPush({ ...OPTIONS, vapid })).toThrow('pair')
  expect(() => webPush({ ...OPTIONS, subject: 'ops' })).toThrow('mailto:')
})
