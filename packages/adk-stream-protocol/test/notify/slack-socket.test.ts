import { expect, test } from 'vitest'

import { slack } from '../../src/modules/notify/slack.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { APP_TOKEN, startSlack } from './support/slack-server.ts'

/** Opens a bridge with a card in Slack, and the socket over which clicks arrive. */
async function open(appToken = APP_TOKEN) {
  let isUp = true
  const server = await startSlack(({ method }) =>
    !isUp && method === 'apps.connections.open' ? { status: 503 } : undefined,
  )
  const channel = slack({
    token: 'xoxb-test',
    appToken,
    channel: 'C1',
    principalOf: ({ teamId, userId }) =>
      `${teamId}/${userId}` === 'T1/U1' ? { id: 'hanako' } : undefined,
    apiUrl: server.url,
  })
  const testBridge = await TestBridge.open({
    isLive: false,
    notify: { channels: { slack: channel } },
  })
  const socket = async (index: number) => {
    await expect.poll(() => server.sockets.length, { timeout: 20_000 }).toBeGreaterThan(index)
    const found = server.sockets[index]
    if (!found) throw new Error('There is no such socket.')
    return found
  }
  return {
    server,
    testBridge,
    socket,
    setUp: (next: boolean) => {
      isUp = next
    },
    pay: async (chatId = 'chat-1') => {
      const count = server.methods().length
      const text = `${callPayment(50)}[[then]][[say Paid.]]`
      const messages = [{ id: `u-${chatId}`, role: 'user', parts: [{ type: 'text', text }] }]
      await testBridge.page().post({ id: chatId, messages })
      await expect.poll(() => server.methods().length).toBeGreaterThan(count)
      const { approvals = [] } = await testBridge.page().list('state=requested&limit=1')
      return approvals[0]?.id ?? ''
    },
    async [Symbol.asyncDispose]() {
      await testBridge[Symbol.asyncDispose]()
      await server[Symbol.asyncDispose]()
    },
  }
}

function click(envelope_id: string, value: string, user = 'U1'): unknown {
  const payload = {
    type: 'block_actions',
    user: { id: user },
    team: { id: 'T1' },
    channel: { id: 'C1' },
    message: { ts: '17.1' },
    trigger_id: 'trigger',
    actions: [{ action_id: 'adk-approve', value }],
  }
  return { envelope_id, type: 'interactive', accepts_response_payload: false, payload }
}

test('[NT1578] a click over the socket is acknowledged and decides once, also if Slack sends it again', async () => {
  await using opened = await open()
  const { socket, pay, server, testBridge } = opened
  const id = await pay()
  const { send, acknowledged } = await socket(0)
  send(click('e-0', id, 'U9'))
  send(click('e-1', id))
  send(click('e-1', id))
  await expect.poll(() => acknowledged).toEqual(['e-0', 'e-1', 'e-1'])
  await expect.poll(() => testBridge.wallet.payments).toHaveLength(1)
  // The stranger, and the repeated click.
  const told = (): number =>
    server.methods().filter((method) => method === 'chat.postEphemeral').length
  await expect.poll(told).toBe(2)
  expect(testBridge.wallet.payments).toHaveLength(1)
  // Without a signing secret, no request can claim to come from Slack.
  const posted = await fetch(`${testBridge.url}/channels/slack`, { method: 'POST' })
  expect(posted.status).toBe(404)
})

test('[NT1578] another socket is opened when Slack asks for it, and clicks on both decide', async () => {
  await using opened = await open()
  const [first, second] = [await opened.pay('chat-1'), await opened.pay('chat-2')]
  const old = await opened.socket(0)
  old.send({ type: 'disconnect', reason: 'refresh_requested' })
  const next = await opened.socket(1)
  old.send(click('e-1', first))
  next.send(click('e-2', second))
  await expect.poll(() => opened.testBridge.wallet.payments).toHaveLength(2)
  await expect.poll(() => [old.acknowledged, next.acknowledged]).toEqual([['e-1'], ['e-2']])
})

test('[NT1578] a lost socket is opened again, also after Slack was not available, and one loss is reported once', async () => {
  await using opened = await open()
  const id = await opened.pay()
  const { socket } = await opened.socket(0)
  opened.setUp(false)
  socket.terminate()
  const reports = (): string[] => opened.testBridge.errors.map(String)
  await expect.poll(reports).toEqual([expect.stringContaining('Slack does not accept a socket')])
  opened.setUp(true)
  const next = await opened.socket(1)
  next.send('no envelope')
  next.send({ envelope_id: 'e-1', type: 'events_api', payload: {} })
  next.send(click('e-2', id))
  await expect.poll(() => opened.testBridge.wallet.payments).toHaveLength(1)
  await expect.poll(() => next.acknowledged).toEqual(['e-1', 'e-2'])
  expect(reports()).toHaveLength(1)
})

test('[NT1578] a wrong app token is reported without the token, and cards are still sent', async () => {
  await using opened = await open('xapp-wrong-secret')
  await opened.pay()
  await expect.poll(() => opened.testBridge.errors.length).toBe(1)
  const [error] = opened.testBridge.errors as Error[]
  expect(String(error?.cause)).toContain('invalid_auth')
  expect(JSON.stringify([String(error), String(error?.cause)])).not.toContain('xapp-wrong-secret')
})

test('[NT1578] a channel without a way to receive clicks is refused', () => {
  const options = { token: 'xoxb-test', channel: 'C1', principalOf: () => undefined }
  expect(() => slack(options)).toThrow('appToken')
})
