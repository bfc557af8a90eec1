import { expect, test } from 'vitest'

import { type WireEvent, adkApi } from '../../src/client/index.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { ClientPage, versions } from './support/client-page.ts'
import { CuttableFetch } from './support/cuttable-fetch.ts'

const [, version] = versions
const everyone = { principals: ['hanako', 'taro'] }

/** Opens a bridge with an approval that two people may decide. */
async function openAsked() {
  const approvals = { process_payment: { deciders: everyone } }
  const testBridge = await TestBridge.open({ approvals })
  const received: string[] = []
  const observe = (event: WireEvent): void => {
    if (event.type === 'frame' && event.direction === 'in')
      received.push(JSON.stringify(event.frame))
  }
  const page = new ClientPage({ url: testBridge.url, version, live: { hold: false, observe } })
  const chat = await page.open()
  await chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
  const [id = ''] = await chat.untilAsked()
  return {
    testBridge,
    page,
    chat,
    id,
    received,
    async [Symbol.asyncDispose]() {
      await page[Symbol.asyncDispose]()
      await testBridge[Symbol.asyncDispose]()
    },
  }
}

test('[SE1120] a decision that waited for the connection is not sent as another person who has signed in since', async () => {
  await using asked = await openAsked()
  const { testBridge, id } = asked
  const net = new CuttableFetch()
  let key = 'hanako'
  const api = adkApi({
    url: testBridge.url,
    headers: () => ({ 'x-api-key': key }),
    fetch: net.fetch,
  })
  await api.listApprovals()
  net.fail(1)
  const decided = api.decide(id, { approved: true }, { keep: true })
  key = 'taro'
  await expect(decided).rejects.toMatchObject({ code: 'other-principal' })
  expect(api.refusedDecisions).toMatchObject([{ approvalId: id }])
  expect((await testBridge.page().approval(id)).approval.state).toBe('requested')
  expect(testBridge.wallet.payments).toEqual([])
  // The person who is signed in now decides for themselves.
  await api.decide(id, { approved: true }, { keep: true })
  await testBridge.page().untilState(id, 'succeeded')
  const { history } = await testBridge.page().approval(id)
  expect(history).toMatchObject([{}, { type: 'approved', by: 'taro' }, {}, {}])
})

test('[SE1120] over a socket, a decision names the principal of the socket, and the server refuses another one', async () => {
  await using asked = await openAsked()
  const { testBridge, page, chat, id, received } = asked
  const decision = { id: 'chat-1', approvalId: id, approved: true, decidedAs: 'another-person' }
  page.sockets.at(-1)?.send(JSON.stringify({ type: 'decide', decisionId: 'd1', ...decision }))
  await page.transport.ping()
  expect(received.find((frame) => frame.includes('"decided"'))).toContain('other-principal')
  const parts = [
    { type: 'tool-process_payment', toolCallId: 'c', state: 'approval-responded' },
  ].map((part) => ({ ...part, approval: { id, approved: true } }))
  const messages = [{ id: chat.lastMessage?.id, role: 'assistant', parts }]
  const sent = { type: 'send', requestId: 'r9', id: 'chat-1', messages }
  page.sockets.at(-1)?.send(JSON.stringify({ ...sent, body: { decidedAs: 'another-person' } }))
  await page.transport.ping()
  expect(received.find((frame) => frame.includes('"r9"'))).toContain('Another person was signed in')
  expect((await testBridge.page().approval(id)).approval.state).toBe('requested')
  await chat.click({ id, approved: true })
  await chat.untilShown('Paid.')
  const last = page.sent.findLast(({ type }) => type === 'send')
  expect(JSON.stringify(last?.['body'])).toMatch(/"decidedAs":"[\w-]{22}"/)
})

test('[SE1120] responses name their principal with a tag, and a request that names another one is refused', async () => {
  await using asked = await openAsked()
  const { testBridge, id } = asked
  const read = async (key: string): Promise<string> => {
    const response = await fetch(`${testBridge.url}/approvals`, { headers: { 'x-api-key': key } })
    return response.headers.get('adk-principal') ?? ''
  }
  const [hanako, taro] = [await read('hanako'), await read('taro')]
  expect(hanako).toMatch(/^[\w-]{22}$/)
  expect(hanako).not.toBe(taro)
  expect(await read('hanako')).toBe(hanako)
  const decide = (tag: string): Promise<Response> =>
    fetch(`${testBridge.url}/approvals/${id}`, {
      method: 'POST',
      headers: { 'x-api-key': 'hanako', 'content-type': 'application/json', 'adk-principal': tag },
      body: '{"approved":true}',
    })
  const refused = await decide(taro)
  expect([refused.status, await refused.text()]).toEqual([
    403,
    expect.stringContaining('other-principal'),
  ])
  expect(await testBridge.page().history(id)).toEqual(['requested'])
  expect((await decide(hanako)).status).toBe(200)
})
