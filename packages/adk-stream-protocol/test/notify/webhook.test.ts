import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { inspect } from 'node:util'

import { expect, test } from 'vitest'

import type { Notice } from '../../src/modules/notify/notice.ts'
import { slack } from '../../src/modules/notify/slack.ts'
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

const attempt = { number: 1, at: Date.now(), signal: AbortSignal.timeout(20_000) }

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

/** Starts a server that answers a webhook as `write` does. */
async function startAnswering(write: (response: ServerResponse) => void) {
  const server = createServer((_request, response) => write(response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    channel: webhook({
      url: `http://127.0.0.1:${port}/hook`,
      secret: SECRET,
      allowPrivateNetwork: true,
    }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

test('[NT1571] an answer of 10 MB is not read', async () => {
  let isClosed = false
  let written = 0
  await using answering = await startAnswering((response) => {
    response.on('close', () => {
      isClosed = true
    })
    response.writeHead(200)
    const more = (): void => {
      if (response.closed || written >= 10_000_000) return
      written += 100_000
      response.write('x'.repeat(100_000), more)
    }
    more()
  })
  expect(await answering.channel.send(notice, attempt)).toEqual({ answer: 'HTTP 200' })
  await expect.poll(() => isClosed).toBe(true)
  expect(written).toBeLessThan(10_000_000)
})

test('[NT1571] an answer that never ends does not hold the sender, neither its body nor its head', async () => {
  await using dripping = await startAnswering((response) => {
    response.writeHead(204)
    response.flushHeaders()
  })
  expect(await dripping.channel.send(notice, attempt)).toEqual({ answer: 'HTTP 204' })
  // The time of the attempt is over when the request has arrived.
  const time = new AbortController()
  await using silent = await startAnswering(() => time.abort())
  const sent = silent.channel.send(notice, { ...attempt, signal: time.signal })
  await expect(sent).rejects.toThrow('abort')
})

test('[NT1572] no error and no answer contains the secret, the token or the arguments', async () => {
  await using answering = await startAnswering((response) => response.destroy())
  const options = { token: 'xoxb-canary', signingSecret: 'signing-canary', channel: 'C1' }
  const channels = [
    answering.channel,
    slack({ ...options, principalOf: () => undefined, apiUrl: 'http://127.0.0.1:9/' }),
    webhook({ url: 'https://127.0.0.1/hook', secret: SECRET }),
  ]
  for (const channel of channels) {
    const error: unknown = await Promise.resolve(channel.send(notice, attempt)).catch(
      (thrown: unknown) => thrown,
    )
    expect(error).toBeInstanceOf(Error)
    const text = inspect(error, { depth: 10 })
    for (const canary of ['canary', SECRET, SECRET.slice(6), '花子'])
      expect(text).not.toContain(canary)
  }
})
