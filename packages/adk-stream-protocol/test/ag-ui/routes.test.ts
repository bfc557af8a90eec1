import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { callPayment } from '../approvals/support/payments.ts'
import { isRecord } from '../../src/protocol/guards.ts'
import type { Page } from '../approvals/support/page.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { AG_UI_VERSIONS, AgUiClient, type AgUiEvent } from './support/ag-ui-client.ts'

let testBridge: TestBridge

beforeAll(async () => {
  testBridge = await TestBridge.open({ isLive: false, limits: { maxFileBytes: 64 } })
})

afterAll(() => testBridge[Symbol.asyncDispose]())

interface Answer {
  readonly status: number
  readonly type: string
  readonly text: string
}

async function ask(method: string, path: string, body?: unknown, key = 'hanako'): Promise<Answer> {
  const response = await fetch(`${testBridge.url}/ag-ui${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'x-api-key': key },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const type = response.headers.get('content-type') ?? ''
  return { status: response.status, type, text: await response.text() }
}

function readEvents({ text }: Answer): AgUiEvent[] {
  return text
    .split('\n\n')
    .filter((frame) => frame.startsWith('data: '))
    .map((frame) => JSON.parse(frame.slice('data: '.length)) as AgUiEvent)
}

function inputOf(threadId: string, content: unknown = '[[say Hello.]]') {
  const messages = [{ id: crypto.randomUUID(), role: 'user', content }]
  return { threadId, runId: 'r1', messages, tools: [], context: [], state: {}, forwardedProps: {} }
}

const BAD_INPUTS: readonly {
  readonly name: string
  readonly body: unknown
  readonly says: RegExp
}[] = [
  { name: 'no object', body: 3, says: /RunAgentInput/ },
  { name: 'no thread', body: { runId: 'r', messages: [] }, says: /threadId/ },
  { name: 'an odd thread', body: { ...inputOf('a/b') }, says: /threadId.*chat id/ },
  { name: 'no messages', body: { threadId: 't', runId: 'r' }, says: /messages/ },
  {
    name: 'a message without an id',
    body: { ...inputOf('t'), messages: [{ role: 'user', content: 'x' }] },
    says: /`id`/,
  },
  { name: 'an empty message', body: inputOf('t', ' '), says: /empty/ },
  { name: 'a resume that is no list', body: { ...inputOf('t'), resume: 'yes' }, says: /resume/ },
  {
    name: 'a resume without a status',
    body: { ...inputOf('t'), resume: [{ interruptId: 'i' }] },
    says: /resume\.0\.status/,
  },
]

test.each(BAD_INPUTS)('[AG1390] rejects $name with a sentence', async ({ body, says }) => {
  const { status, text } = await ask('POST', '', body)
  expect(status).toBe(400)
  const { error } = JSON.parse(text) as { error: { code: string; message: string } }
  expect(error).toMatchObject({ code: 'bad-request' })
  expect(error.message).toMatch(says)
})

test('[AG1390] a run with nothing new in a chat without messages is rejected', async () => {
  const { status, text } = await ask('POST', '', { threadId: 'nothing', runId: 'r', messages: [] })
  expect([status, text]).toEqual([409, expect.stringContaining('nothing-new')])
})

const image = (value: string) => ({
  type: 'image',
  source: { type: 'data', value, mimeType: 'image/png' },
})

test('[AG1390] a part that the server cannot use is skipped, and the run says so', async () => {
  const parts = [
    { type: 'text', text: '[[say Seen.]]' },
    image('iVBORw0KGgo='),
    image('A'.repeat(400)),
    { type: 'image', source: { type: 'url', value: 'https://example.com/a.png' } },
    { type: 'document', source: { type: 'data', value: 'AAAA', mimeType: 'text/html' } },
  ]
  const events = readEvents(await ask('POST', '', inputOf('parts', parts)))
  const refused = events.filter(({ type }) => type === 'CUSTOM')
  expect(refused.map(({ value }) => (value as { code: string }).code)).toEqual([
    'too-large',
    'bad-request',
    'bad-request',
  ])
  expect(JSON.stringify(events)).toContain('Seen.')
  const stored = readEvents(await ask('POST', '/agent/default/connect', inputOf('parts')))
  const [user] = (stored[1]?.['messages'] ?? []) as { content: unknown }[]
  expect(user?.content).toEqual(parts.slice(0, 2))
})

test('[AG1380] a stream is SSE without an end marker', async () => {
  const { type, text } = await ask('POST', '', inputOf('framing'))
  expect(type).toBe('text/event-stream')
  expect(text).not.toContain('[DONE]')
  expect(readEvents({ status: 200, type, text }).at(-1)?.type).toBe('RUN_FINISHED')
})

test('[AG1393] a page of CopilotKit finds its agents, by REST and by the single route', async () => {
  const rest = await ask('GET', '/info')
  expect(JSON.parse(rest.text)).toMatchObject({
    mode: 'sse',
    agents: {
      default: { name: 'default', capabilities: { humanInTheLoop: { interrupts: true } } },
    },
  })
  expect((await ask('POST', '', { method: 'info' })).text).toBe(rest.text)
  const capabilities = JSON.parse((await ask('GET', '/capabilities')).text) as unknown
  expect(capabilities).toMatchObject({
    identity: { name: 'default' },
    transport: { streaming: true },
  })
})

describe.each([
  {
    name: 'REST',
    run: (body: { threadId: string }) => ask('POST', '/agent/default/run', body),
    connect: (body: { threadId: string }, key?: string) =>
      ask('POST', '/agent/default/connect', body, key),
    stop: (threadId: string) => ask('POST', `/agent/default/stop/${threadId}`, {}),
  },
  {
    name: 'the single route',
    run: (body: { threadId: string }) => call('agent/run', { body }),
    connect: (body: { threadId: string }, key?: string) => call('agent/connect', { body }, key),
    stop: (threadId: string) => call('agent/stop', { threadId }),
  },
])('$name', ({ name, run, connect, stop }) => {
  test('[AG1393] runs, connects and stops', async () => {
    const threadId = `runtime-${name.length}`
    const gate = `stop-${name.length}`
    const running = run(inputOf(threadId, `[[say One.]][[wait ${gate}]][[say Two.]]`))
    await testBridge.untilAsked(gate)
    expect(JSON.parse((await stop(threadId)).text)).toEqual({ stopped: true })
    testBridge.emulator.release(gate)
    expect(readEvents(await running).at(-1)?.type).toBe('RUN_FINISHED')
    const events = readEvents(await connect(inputOf(threadId)))
    expect(events.map(({ type }) => type)).toEqual([
      'RUN_STARTED',
      'MESSAGES_SNAPSHOT',
      'RUN_FINISHED',
    ])
    expect((await connect(inputOf(threadId), 'taro')).text).toBe('')
  })
})

function call(
  method: string,
  { body, threadId }: { body?: unknown; threadId?: string },
  key?: string,
) {
  return ask('POST', '', { method, params: { agentId: 'default', threadId }, body }, key)
}

test('[AG1393] an agent that the server does not have is rejected, and a client without credentials', async () => {
  const { status, text } = await ask('POST', '/agent/other/run', inputOf('t'))
  expect([status, text]).toEqual([409, expect.stringContaining('unknown-agent')])
  expect((await ask('POST', '', inputOf('t'), 'nobody')).status).toBe(401)
  expect((await ask('GET', '/info', undefined, 'nobody')).status).toBe(401)
})

test('[AG1381] a client that stops gets `cancelled` if it declares a version', async () => {
  const [newest] = AG_UI_VERSIONS
  if (!newest) throw new Error('There is no client.')
  const client = new AgUiClient(newest, { url: testBridge.url })
  const said = client.say('[[say One.]][[wait cancelled]][[say Two.]]')
  await testBridge.untilAsked('cancelled')
  await ask('POST', `/agent/default/stop/${client.threadId}`)
  await said
  expect(client.events.at(-1)?.['outcome']).toEqual({ type: 'cancelled' })
})

test('[AG1389] a partial answer runs what it covers, and the rest stays open', async () => {
  const [newest] = AG_UI_VERSIONS
  if (!newest) throw new Error('There is no client.')
  const client = new AgUiClient(newest, { url: testBridge.url })
  await client.say(`${callPayment(1, 'A')}${callPayment(2, 'B')}[[then]][[say Both.]]`)
  const [one, other] = client.pending
  const resume = [{ interruptId: one?.id, status: 'resolved', payload: { approved: true } }]
  const { threadId, messages } = client
  const events = readEvents(await ask('POST', '', { threadId, runId: 'r', messages, resume }))
  expect(events.at(-1)).toMatchObject({
    outcome: { type: 'interrupt', interrupts: [{ id: other?.id }] },
  })
  expect(testBridge.wallet.payments).toMatchObject([{ amount: 1 }])
})

test.each([
  { name: 'whose preview has changed', code: 'preview-changed', refused: { preview: 'before' } },
  { name: 'with arguments that are not valid', code: 'bad-request', refused: { editedArgs: {} } },
])(
  '[AG1389] [AG1383] of two answers in different messages, the one $name says why, and counts when it is given again',
  async ({ code, refused }) => {
    const [newest] = AG_UI_VERSIONS
    if (!newest) throw new Error('There is no client.')
    await using asking = await TestBridge.open({
      isLive: false,
      approvals: { process_payment: { preview: () => ({ headline: 'Pay' }) } },
    })
    const { url } = asking
    const client = new AgUiClient(newest, { url })
    const { threadId } = client
    await client.say(`${callPayment(1, 'A')}[[then]][[say Paid A.]]`)
    const second = new AgUiClient(newest, { url, threadId })
    await second.say(`${callPayment(2, 'B')}[[then]][[say Paid B.]]`)
    const [one = '', other = ''] = second.pending.map(({ id }) => id)
    const page = asking.page()
    const seen = await previewOf(page, other)
    await second.answer({
      [one]: { approved: true, ...refused },
      [other]: { approved: true, ...seen },
    })
    expect(second.refused).toEqual([code])
    expect(second.pending).toMatchObject([{ id: one, metadata: { adk: { refused: { code } } } }])
    expect(asking.wallet.payments).toMatchObject([{ amount: 2 }])
    const { history } = await page.approval(one)
    expect(history.at(-1)).toMatchObject({ type: 'decision-refused', by: 'hanako', code })
    // A page that has not loaded the others.
    const third = new AgUiClient(newest, { url, threadId })
    await third.say(`${callPayment(3, 'C')}[[then]][[say Paid C.]]`)
    const last = third.pending.map(({ id }) => id).find((id) => id !== one) ?? ''
    await third.answer({
      [one]: { approved: true, ...(await previewOf(page, one)) },
      [last]: { approved: true, ...(await previewOf(page, last)) },
    })
    expect(third.refused).toEqual([])
    await page.untilState(one, 'succeeded')
    const paid = asking.wallet.payments.map(({ amount }) => amount)
    expect(new Set(paid)).toEqual(new Set([1, 2, 3]))
    expect(paid).toHaveLength(3)
  },
)

/** Returns the digest of the preview that a person sees now, as an answer has it. */
async function previewOf(page: Page, id: string): Promise<{ readonly preview?: unknown }> {
  const { preview } = (await page.approval(id)).approval
  return isRecord(preview) ? { preview: preview['digest'] } : {}
}

test('[AG1383] an interrupt survives a restart, and its answer, sent again after another one, runs the call once', async () => {
  const [newest] = AG_UI_VERSIONS
  if (!newest) throw new Error('There is no client.')
  await using restarted = await TestBridge.open({ isLive: false })
  const client = new AgUiClient(newest, { url: restarted.url })
  await client.say(`${callPayment(3, 'A')}[[then]][[say Paid.]]`)
  const [asked] = client.pending
  const { threadId } = client
  const answer = { [asked?.id ?? '']: { approved: true } }
  await restarted.restart()
  const second = new AgUiClient(newest, { url: restarted.url, threadId })
  await second.answer(answer)
  await restarted.restart()
  const third = new AgUiClient(newest, { url: restarted.url, threadId })
  await third.answer(answer)
  expect(restarted.wallet.payments).toMatchObject([{ amount: 3 }])
  expect([third.refused, third.text]).toEqual([['approval-decided'], ['Paid.']])
  expect(third.messages).toEqual(second.messages)
})

test('[AG1380] a host with web requests streams the same, also if the client leaves', async () => {
  const { bridge } = testBridge
  const post = (threadId: string, content: string): Promise<Response> =>
    bridge.fetch(
      new Request('http://localhost/ag-ui', {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-api-key': 'hanako' },
        body: JSON.stringify(inputOf(threadId, content)),
      }),
    )
  const response = await post('web', '[[say Hello.]]')
  const events = readEvents({ status: 200, type: '', text: await response.text() })
  expect(events.map(({ type }) => type).slice(-2)).toEqual(['TEXT_MESSAGE_END', 'RUN_FINISHED'])
  const left = await post('web-left', '[[say Hello.]][[wait web-left]]')
  await testBridge.untilAsked('web-left')
  await left.body?.cancel()
  testBridge.emulator.release('web-left')
  expect(testBridge.errors).toEqual([])
})
