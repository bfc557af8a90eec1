import { expect, test } from 'vitest'

import type { Notice } from '../../src/modules/notify/notice.ts'
import { webhook } from '../../src/modules/notify/webhook.ts'
import { SECRET, startReceiver } from './support/receiver.ts'

const notice: Notice = {
  id: '7-0',
  type: 'approval.requested',
  at: 1_800_000_000_000,
  approval: {
    id: 'approval-1',
    state: 'requested',
    toolName: 'process_payment',
    args: { recipient: '花子' },
    title: 'Pay',
    principalId: 'hanako',
    chatId: 'chat-1',
    requestedAt: 1_800_000_000_000,
    deadline: 1_800_000_060_000,
    deciders: { principals: ['hanako'], roles: [] },
  },
}

const attempt = { number: 1, signal: AbortSignal.timeout(20_000) }

test('[NT1566] during a change of secrets each request has a signature for both', async () => {
  const next = `whsec_${Buffer.from('another secret of more than 24').toString('base64')}`
  for (const secret of [SECRET, next]) {
    await using receiver = await startReceiver(undefined, secret)
    const channel = webhook({
      url: receiver.url,
      secret: [SECRET, next],
      allowPrivateNetwork: true,
      includeArguments: true,
      approvalUrl: ({ id }) => `https://example.com/${id}`,
    })
    expect(await channel.send(notice, attempt)).toEqual({ answer: 'HTTP 204' })
    expect(receiver.received[0]?.data).toMatchObject({
      args: { recipient: '花子' },
      url: 'https://example.com/approval-1',
    })
  }
})

test.each([
  ['http://example.com/hook', 'https://'],
  ['ftp://example.com/hook', 'https://'],
  ['https://user:pass@example.com/hook', 'password'],
  ['example.com', 'a URL'],
])('[NT1568] %s is no URL of a webhook', (url, reason) => {
  expect(() => webhook({ url, secret: SECRET })).toThrow(reason)
})

test.each(['', 'secret', 'whsec_', 'whsec_c2hvcnQ=', `whsk_${SECRET.slice(6)}`])(
  '[NT1568] %j is no secret of a webhook',
  (secret) => {
    expect(() => webhook({ url: 'https://example.com', secret })).toThrow('whsec_')
  },
)

test.each([
  '127.0.0.1',
  '10.1.2.3',
  '172.31.0.1',
  '192.168.0.1',
  '169.254.169.254',
  '100.64.0.1',
  '0.0.0.0',
  '[::1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[::ffff:a9fe:a9fe]',
  '[fd00::1]',
  '[fe80::1]',
  '[64:ff9b::7f00:1]',
  '2130706433',
  '0x7f.1',
  'localhost',
])('[NT1568] a webhook does not reach %s', async (host) => {
  const channel = webhook({ url: `https://${host}:9/hook`, secret: SECRET })
  await expect(channel.send(notice, attempt)).rejects.toThrow('private network')
})
