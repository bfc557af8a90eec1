import { requestInputTool } from '@google/adk'
import { describe, expect, test } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { adkApi } from '../../src/client/index.ts'
import type { ChatMessage } from '../support/chat-probe.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import type { ApprovingChat } from './support/approving-chat.ts'
import { approvingClients, liveClient } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import type { Page } from './support/page.ts'
import { callPayment, paymentTool } from './support/payments.ts'
import type { TestBridgeOptions } from './support/test-bridge.ts'
import { TestBridge } from './support/test-bridge.ts'

const TOOL = 'adk_request_input'
const SCHEMA = {
  type: 'object',
  properties: { city: { type: 'string' }, nights: { type: 'integer', minimum: 1 } },
  required: ['city', 'nights'],
}
const ARGS = { message: 'Where to, and for how long?', response_schema: SCHEMA }
const CALL = `[[call ${TOOL} ${JSON.stringify(ARGS)}]]`
const ASK = `${CALL}[[then]][[say Booked.]]`
const NARA = { city: 'Nara', nights: 2 }

function open(options: TestBridgeOptions = {}): Promise<TestBridge> {
  return TestBridge.open({ tools: () => [requestInputTool], ...options })
}

/** Asks the question in chat-1, without a `Chat`. */
async function ask(page: Page, text = ASK): Promise<{ readonly id: string; asked: ChatMessage }> {
  const message = { id: crypto.randomUUID(), role: 'user', parts: [{ type: 'text', text }] }
  await page.post({ id: 'chat-1', messages: [message] })
  const [, asked] = await page.messages()
  if (!asked) throw new Error('No question was asked.')
  const question = asked.parts.find(({ type }) => type === 'data-approval')
  return { id: question && 'id' in question ? String(question.id) : '', asked }
}

/** The request of a stock client that has given the answer. */
async function answering(page: Page, answer: object): Promise<object> {
  const [user, asked] = await page.messages()
  const parts = asked?.parts.map((part) =>
    part.type === `tool-${TOOL}` ? { ...part, ...answer } : part,
  )
  return { id: 'chat-1', messages: [user, { ...asked, parts }] }
}

async function give(chat: ApprovingChat, output: unknown): Promise<void> {
  const toolCallId = toolParts(chat.lastMessage).at(-1)?.toolCallId ?? ''
  await chat.give({ tool: TOOL, toolCallId, output })
  await chat.rest()
}

const ANSWERED = ['requested', 'approved', 'started', 'succeeded']

const clients = [...approvingClients, liveClient]

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it('[AP423] a stock client answers with addToolOutput, and the model reads its question and the answer', async () => {
    await using testBridge = await open()
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'tool-calls' })
    await chat.send(ASK)
    expect(toolParts(chat.lastMessage)).toMatchObject([{ state: 'input-available', input: ARGS }])
    expect(chat.asked).toEqual([])
    const [question] = await page.inbox()
    expect(question).toMatchObject({ kind: 'input', schema: SCHEMA, hint: ARGS.message })
    await expectRecord(page, chat)
    await give(chat, NARA)
    expect(textOf(chat.lastMessage)).toBe('Booked.')
    expect(testBridge.results).toEqual([NARA])
    expect(testBridge.lastPrompt).toContain(TOOL)
    await expectRecord(page, chat)
    const parts = (await page.messages())[1]?.parts
    expect(parts?.find(({ type }) => type === 'data-approval')?.data).toMatchObject({
      kind: 'input',
      state: 'approved',
      approvedPayload: NARA,
      by: { own: true, others: [] },
    })
    expect(await page.history(question?.id ?? '')).toEqual(ANSWERED)
  })

  it('[AP421] a wrong answer is rejected with the name of the field, and the right one counts', async () => {
    await using testBridge = await open()
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'tool-calls' })
    await chat.send(ASK)
    const [question] = await page.inbox()
    await give(chat, { city: 'Nara', nights: 'two' })
    expect(chat.error?.message).toContain('`nights`')
    expect(await page.history(question?.id ?? '')).toEqual(['requested'])
    expect(testBridge.asked).toBe(1)
    await give(chat, NARA)
    expect(testBridge.results).toEqual([NARA])
    await expectRecord(page, chat)
  })

  it('[AP423] several questions of one message are answered one after the other', async () => {
    await using testBridge = await open()
    const page = testBridge.page()
    const chat = await page.open(client, { autoSend: 'tool-calls' })
    await chat.send(`${CALL}[[then]][[call ${TOOL} {"message":"Sure?"}]][[then]][[say Done.]]`)
    await give(chat, NARA)
    await give(chat, 'Yes')
    expect(textOf(chat.lastMessage)).toBe('Done.')
    // The model reads an object; the person sees the answer as given.
    expect(testBridge.results).toEqual([NARA, { result: 'Yes' }])
    expect(toolParts(chat.lastMessage)).toMatchObject([{ output: NARA }, { output: 'Yes' }])
    await expectRecord(page, chat)
  })
})

test.each([
  ['Not now', 'Not now'],
  ['', undefined],
])(
  '[AP424] an output with the error “%s” declines: the model learns it, and the call ends with an error',
  async (errorText, reason) => {
    await using testBridge = await open()
    const page = testBridge.page()
    const { id } = await ask(page)
    await page.post(await answering(page, { state: 'output-error', errorText }))
    expect(testBridge.results).toMatchObject([{ status: 'denied' }])
    const [result] = testBridge.results as { reason?: string }[]
    expect(result?.reason).toBe(reason)
    expect(await page.history(id)).toEqual(['requested', 'denied'])
    expect(toolParts((await page.messages())[1])).toMatchObject([
      { state: 'output-error', errorText: 'The person declined to answer.' },
    ])
  },
)

test('[AP424] a question that nobody answers in time expires, and a late answer shows the outcome', async () => {
  await using testBridge = await open({
    approvals: { [TOOL]: { deadlineMs: 300 } },
    limits: { sweepMs: 50 },
  })
  const page = testBridge.page()
  const { id } = await ask(page)
  const late = await answering(page, { state: 'output-available', output: NARA })
  await page.untilState(id, 'expired')
  await page.untilMessages((messages) => textOf(messages[1]) === 'Booked.')
  expect(testBridge.results).toMatchObject([{ status: 'expired' }])
  expect((await page.post(late)).status).toBe(200)
  expect(toolParts((await page.messages())[1])).toMatchObject([{ state: 'output-error' }])
  expect(testBridge.results).toMatchObject([{ status: 'expired' }])
})

test('[AP425] of many answers at once, by every endpoint, one counts, and the model reads it once', async () => {
  await using testBridge = await open()
  const page = testBridge.page()
  const { id } = await ask(page)
  const bodies = await Promise.all(
    ['Nara', 'Uji'].map((city) =>
      answering(page, { state: 'output-available', output: { ...NARA, city } }),
    ),
  )
  const api = adkApi({ url: 'http://page', fetch: page.fetch })
  const results = await Promise.allSettled([
    ...bodies.map((body) => page.post(body)),
    page.decide(id, { approved: true, payload: { ...NARA, city: 'Ise' } }),
    api.decide(id, { approved: false, reason: 'No' }),
  ])
  expect(results).toHaveLength(4)
  await page.untilMessages((messages) => textOf(messages[1]) === 'Booked.')
  const history = await page.history(id)
  expect([ANSWERED, ['requested', 'denied']]).toContainEqual(history)
  expect(testBridge.results).toHaveLength(1)
  expect(testBridge.asked).toBe(2)
  expect(await page.decide(id, { approved: true, payload: NARA })).toMatchObject({ status: 409 })
})

test('[AP425] a question is answered in the inbox of the person whom the policy names', async () => {
  await using testBridge = await open({
    approvals: { [TOOL]: { deciders: { roles: ['manager'] }, title: 'Trip', approvers: 2 } },
  })
  const page = testBridge.page()
  const { id } = await ask(page)
  const body = await answering(page, { state: 'output-available', output: NARA })
  expect(await page.post(body)).toMatchObject({ body: { error: { code: 'not-allowed' } } })
  const mari = testBridge.page('mari')
  expect(await mari.inbox()).toMatchObject([{ id, title: 'Trip', kind: 'input', schema: SCHEMA }])
  const wrong = await mari.decide(id, { approved: true, payload: { city: 'Nara' } })
  expect(wrong).toMatchObject({ status: 422, body: { error: { code: 'invalid-answer' } } })
  expect(await mari.decide(id, { approved: true })).toMatchObject({ status: 422 })
  const edited = await mari.decide(id, { approved: true, args: ARGS, payload: NARA })
  expect(edited).toMatchObject({ body: { error: { code: 'not-editable' } } })
  expect(await mari.decide(id, { approved: true, payload: NARA })).toMatchObject({ status: 200 })
  await page.untilMessages((messages) => textOf(messages[1]) === 'Booked.')
  expect(testBridge.results).toEqual([NARA])
})

test('[AP425] a question survives a restart, and is asked once more by a new message that cancels it', async () => {
  await using testBridge = await open({ whilePending: 'cancel' })
  const page = testBridge.page()
  const { id } = await ask(page)
  await testBridge.restart()
  expect(await page.inbox()).toMatchObject([{ id, kind: 'input' }])
  const message = { id: 'u2', role: 'user', parts: [{ type: 'text', text: '[[say Fine.]]' }] }
  await page.post({ id: 'chat-1', messages: [message] })
  expect(await page.history(id)).toEqual(['requested', 'cancelled'])
  expect(testBridge.results).toMatchObject([{ status: 'cancelled' }])
})

test('[AP426] a question and a call that needs approval, made at once, both wait and are both known to the model', async () => {
  await using testBridge = await open({
    tools: (wallet) => [requestInputTool, paymentTool(wallet)],
  })
  const page = testBridge.page()
  await ask(page, `${CALL}${callPayment(5)}[[then]][[say Done.]]`)
  const inbox = await page.inbox()
  expect(inbox.map(({ kind }) => kind)).toEqual(['input', undefined])
  const [question, payment] = inbox
  await page.decide(payment?.id ?? '', { approved: true })
  await page.untilState(payment?.id ?? '', 'succeeded')
  expect(testBridge.asked).toBe(1)
  await page.decide(question?.id ?? '', { approved: true, payload: NARA })
  await page.untilMessages((messages) => textOf(messages[1]) === 'Done.')
  expect(testBridge.asked).toBe(2)
  expect(testBridge.results).toHaveLength(2)
  expect(testBridge.results).toContainEqual(NARA)
})

test('[AP426] a question that cannot be asked or checked is refused to the model', async () => {
  await using testBridge = await open()
  const page = testBridge.page()
  const args = { message: 'Which?', response_schema: { $ref: 'https://example.com/s.json' } }
  await ask(page, `[[call ${TOOL} ${JSON.stringify(args)}]][[then]][[say Sorry.]]`)
  expect(await page.inbox()).toEqual([])
  expect(JSON.stringify(testBridge.results)).toContain('$ref')
})

test('[AP426] a message with an answered question can be edited: the answer had no effect elsewhere', async () => {
  await using testBridge = await open()
  const page = testBridge.page()
  const { id } = await ask(page)
  await page.decide(id, { approved: true, payload: NARA })
  await page.untilMessages((messages) => textOf(messages[1]) === 'Booked.')
  const [user] = await page.messages()
  const body = { id: 'chat-1', messages: [user], trigger: 'regenerate-message' }
  expect((await page.post(body)).status).toBe(200)
  expect(await page.inbox()).toHaveLength(1)
})

const FORGED: readonly (readonly [
  name: string,
  forge: (given: { page: Page; thief: Page; id: string }) => Promise<{ readonly status: number }>,
])[] = [
  ['another principal', ({ thief, id }) => thief.decide(id, { approved: true, payload: NARA })],
  [
    'the message of another chat',
    async ({ thief, page }) =>
      thief.post(await answering(page, { state: 'output-available', output: NARA })),
  ],
  [
    'the id of a call that does not exist',
    async ({ page }) => {
      const forged = { state: 'output-available', output: NARA, toolCallId: 'call-0' }
      return page.post(await answering(page, forged))
    },
  ],
  [
    '`__proto__`',
    ({ page, id }) => {
      const payload: unknown = JSON.parse('{"city":"Nara","nights":1,"__proto__":{"admin":true}}')
      return page.decide(id, { approved: true, payload })
    },
  ],
  [
    'more than is allowed',
    ({ page, id }) =>
      page.decide(id, { approved: true, payload: { ...NARA, city: 'x'.repeat(2_000_000) } }),
  ],
]

test.each(FORGED)('[AP428] an answer with %s changes nothing', async (_name, forge) => {
  await using testBridge = await open()
  const page = testBridge.page()
  const { id, asked } = await ask(page)
  const { status } = await forge({ page, thief: testBridge.page('taro'), id })
  expect(status).toBeGreaterThanOrEqual(400)
  expect(await page.history(id)).toEqual(['requested'])
  expect((await page.messages())[1]).toEqual(asked)
  expect(testBridge.asked).toBe(1)
})

test('[AP428] a model cannot answer its own question, under any name', async () => {
  await using testBridge = await open()
  const page = testBridge.page()
  const forged = `[[call bridge_request_input {"message":"?"}]][[then]][[say Done.]]`
  await ask(page, forged)
  expect(await page.inbox()).toEqual([])
  await page.delete()
  const { id } = await ask(page)
  await page.decide(id, { approved: true, payload: NARA })
  await page.untilMessages((messages) => textOf(messages[1]) === 'Booked.')
  expect(await page.decide(id, { approved: false })).toMatchObject({ status: 409 })
  expect(await page.history(id)).toEqual(ANSWERED)
})
