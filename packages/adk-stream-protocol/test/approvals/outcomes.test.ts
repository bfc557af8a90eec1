import type { BaseTool } from '@google/adk'
import { BasePlugin, FunctionTool } from '@google/adk'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import type { ApprovalPolicy } from '../../src/server/index.ts'
import {
  joinLive,
  openLiveTestBridge,
  untilAsked,
  whole,
} from '../live/support/live-test-bridge.ts'
import { toolParts } from '../support/chat-probe.ts'
import { clientsWith } from './support/approving-chat.ts'
import { TestBridge } from './support/test-bridge.ts'
import type { Page } from './support/page.ts'

/** A tool that returns what the test defines, or throws. */
function payTool(result: unknown): BaseTool {
  return new FunctionTool({
    name: 'pay',
    description: 'Pays somebody.',
    parameters: z.object({ amount: z.number() }),
    requireConfirmation: true,
    execute: () => {
      if (result instanceof Error) throw result
      return result
    },
  })
}

const ASK = '[[call pay {"amount":50}]][[then]][[say Told.]]'

/** Returns the data of the approval in the stored message. */
async function stored(page: Page): Promise<unknown> {
  const hasEnded = new Set(['output-available', 'output-error'])
  await page.untilMessages((all) => hasEnded.has(String(toolParts(all[1])[0]?.state)))
  return (await page.messages())[1]?.parts.find(({ type }) => type === 'data-approval')?.data
}

const CASES: readonly {
  readonly name: string
  readonly result: unknown
  readonly policy?: ApprovalPolicy
  readonly outcome: 'succeeded' | 'failed'
  /** What the model receives. */
  readonly told: object
}[] = [
  {
    name: 'a tool that returns `success: false`',
    result: { success: false, error: 'Not enough money.' },
    outcome: 'failed',
    told: { success: false, error: 'Not enough money.' },
  },
  {
    name: 'a tool that returns `status: error`',
    result: { status: 'error', error_message: 'Closed.' },
    outcome: 'failed',
    told: { status: 'error', error_message: 'Closed.' },
  },
  {
    name: 'an MCP tool that returns `isError: true`',
    result: { content: [{ type: 'text', text: 'No such file.' }], isError: true },
    outcome: 'failed',
    told: { content: [{ type: 'text', text: 'No such file.' }], isError: true },
  },
  {
    name: 'a result that `isFailure` calls a failure',
    result: { code: 51 },
    policy: { pay: { isFailure: (output) => JSON.stringify(output) === '{"code":51}' } },
    outcome: 'failed',
    told: { code: 51, success: false },
  },
  {
    name: 'a result that `isFailure` calls a success',
    result: { success: false, error: 'Was already paid.' },
    policy: { pay: { isFailure: () => false } },
    outcome: 'succeeded',
    told: { success: false, error: 'Was already paid.' },
  },
  {
    name: 'an `isFailure` that throws',
    result: { success: true },
    policy: {
      pay: {
        isFailure: () => {
          throw new Error('No idea.')
        },
      },
    },
    outcome: 'succeeded',
    told: { success: true },
  },
  {
    name: 'a tool that throws',
    result: new Error('secret address'),
    outcome: 'failed',
    told: { error: 'The tool pay failed.' },
  },
]

const CLIENTS = clientsWith('7')

/** Asks for a payment in a chat, approves it there, and waits for its outcome. */
async function approvePayment(
  testBridge: TestBridge,
  {
    client = CLIENTS[0] ?? raise(),
    outcome = 'succeeded',
  }: { readonly client?: (typeof CLIENTS)[number]; readonly outcome?: string } = {},
) {
  const page = testBridge.page()
  const chat = await page.open(client)
  await chat.send(ASK)
  const [id = ''] = chat.asked
  await chat.decide(true)
  await page.untilState(id, outcome)
  return { page, chat, id }
}

describe.each(CASES)('$name', ({ result, policy, outcome, told }) => {
  test.each(policy ? CLIENTS : CLIENTS.slice(0, 1))(
    '[AP360] ends for the record, the card and the model alike, over $name',
    async (client) => {
      await using testBridge = await TestBridge.open({
        tools: () => [payTool(result)],
        ...(policy && { approvals: policy }),
      })
      const { page, id } = await approvePayment(testBridge, { client, outcome })
      expect(await stored(page)).toMatchObject({
        state: 'approved',
        outcome,
        by: { own: true, others: [] },
      })
      expect(testBridge.results).toContainEqual(told)
      const { entries } = await testBridge.bridge.audit({ approvalId: id })
      expect(entries.at(-1)?.event.type).toBe(outcome)
    },
  )

  test('[AP360] ends alike after a decision in an inbox and after a restart', async () => {
    await using testBridge = await TestBridge.open({
      tools: () => [payTool(result)],
      ...(policy && { approvals: policy }),
    })
    const page = testBridge.page()
    const chat = await page.open(CLIENTS[0] ?? raise())
    await chat.send(ASK)
    const [id = ''] = chat.asked
    await page.decide(id, { approved: true })
    await page.untilState(id, outcome)
    expect(await stored(page)).toMatchObject({ outcome })
    expect(testBridge.results).toContainEqual(told)
    await testBridge.restart()
    expect(await stored(page)).toMatchObject({ outcome })
  })
})

const UNRECORDED = { unrecorded: expect.any(String) as unknown }

const REPORTS = [
  expect.stringContaining('the result of pay') as string,
  expect.stringContaining('the result of look') as string,
]

test.each<readonly [name: string, result: unknown, told: unknown, reports: readonly string[]]>([
  ['a bigint', { cents: 5000n }, UNRECORDED, REPORTS],
  ['a cycle', cyclic(), UNRECORDED, REPORTS],
  ['a date', new Date(0), { result: '1970-01-01T00:00:00.000Z' }, []],
])(
  '[AP800] a call that returned %s ends as one that has run',
  async (_name, result, told, reports) => {
    const look = new FunctionTool({ name: 'look', description: 'Looks.', execute: () => result })
    await using testBridge = await TestBridge.open({ tools: () => [payTool(result), look] })
    const { page, chat } = await approvePayment(testBridge)
    expect(await stored(page)).toMatchObject({ state: 'approved', outcome: 'succeeded' })
    await chat.send('[[call look {}]][[then]][[say Seen.]]')
    const outputs = (await page.messages()).flatMap(toolParts).map(({ output }) => output)
    expect(outputs).toEqual([told, told])
    expect(testBridge.results).toEqual(expect.arrayContaining([told]))
    expect(testBridge.errors.map(String)).toEqual(reports)
  },
)

test('[AP806] a call is decided and shown as usual if the model failed after it had made the call', async () => {
  await using testBridge = await TestBridge.open({ tools: () => [payTool({ paid: true })] })
  const page = testBridge.page()
  const chat = await page.open(CLIENTS[0] ?? raise())
  await chat.send('[[call pay {"amount":50}]][[fail 503 Busy]]')
  expect((await page.messages())[1]?.metadata).toMatchObject({
    error: { code: 'model-overloaded' },
  })
  await chat.decide(true)
  for (const message of [chat.lastMessage, (await page.messages())[1]])
    expect(toolParts(message)).toMatchObject([
      { state: 'output-available', output: { paid: true } },
    ])
  expect((await page.messages())[1]?.metadata).not.toHaveProperty('error')
  // MP1080: the client keeps the error, which it has merged.
  expect(chat.lastMessage?.metadata).toMatchObject({ finishReason: 'stop' })
})

test('[AP807] an approved call that can never run is cancelled', async () => {
  await using testBridge = await TestBridge.open({ tools: () => [payTool({ paid: true })] })
  const page = testBridge.page()
  // ADK loses the second argument when it resumes the call. Stock clients reject its name.
  const text = '[[call pay {"amount":50,"__proto__":{"x":1}}]][[then]][[say Told.]]'
  const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text }] }
  await page.post({ id: 'chat-1', messages: [message] })
  const [asked] = await page.inbox()
  await page.decide(asked?.id ?? '', { approved: true })
  await page.untilState(asked?.id ?? '', 'cancelled')
  await page.untilMessages((all) => JSON.stringify(all[1]).includes('"Told."'))
  expect(toolParts((await page.messages())[1])).toMatchObject([{ state: 'output-error' }])
  expect(testBridge.errors).toEqual([])
})

class FailingAudit extends BasePlugin {
  override async afterToolCallback({ result }: { result: Record<string, unknown> }) {
    if (result['paid'] === true) throw new Error('The audit service is down.')
    return undefined
  }
}

test('[AP802] a callback that throws after an approved call does not hide its outcome', async () => {
  await using testBridge = await TestBridge.open({
    tools: () => [payTool({ paid: true })],
    plugins: [new FailingAudit('audit')],
  })
  const page = testBridge.page()
  const chat = await page.open(CLIENTS[0] ?? raise())
  await chat.send(ASK)
  await chat.decide(true)
  const outcome = { state: 'output-available', output: { paid: true } }
  expect(toolParts(chat.lastMessage)).toMatchObject([outcome])
  const { parts } = (await page.messages())[1] ?? { parts: [] }
  expect(parts.flatMap(({ type, data }) => (type === 'data-approval' ? [data] : []))).toMatchObject(
    [{ state: 'approved', outcome: 'succeeded' }],
  )
  await chat.send('[[say Next.]]')
  expect(testBridge.results).toContainEqual({ paid: true })
})

/** A tool that returns and sets what a session cannot store. */
const payUnstorable = new FunctionTool({
  name: 'pay',
  description: 'Pays somebody.',
  parameters: z.object({ amount: z.number() }),
  requireConfirmation: true,
  execute: (_args, context) => {
    context?.state.set('total', 50n)
    return { cents: 5000n }
  },
})

const LOST = [
  expect.stringContaining('the result of pay') as string,
  expect.stringContaining('the state "total"') as string,
]

test('[AP800] a call that set state which cannot be stored ends as one that has run', async () => {
  await using testBridge = await TestBridge.open({ tools: () => [payUnstorable] })
  const { page } = await approvePayment(testBridge)
  expect(await stored(page)).toMatchObject({ state: 'approved', outcome: 'succeeded' })
  expect(testBridge.errors.map(String)).toEqual(LOST)
})

test('[AP800] a live call that returned and set what cannot be stored ends as one that has run', async () => {
  await using testBridge = await openLiveTestBridge({ tools: () => [payUnstorable] })
  await using client = await joinLive(testBridge)
  client.say(ASK)
  const [approvalId = ''] = await untilAsked(client)
  await whole(client)
  client.send({ type: 'decide', decisionId: 'd1', id: 'chat-1', approvalId, approved: true })
  const page = testBridge.page()
  await page.untilState(approvalId, 'succeeded')
  expect(await stored(page)).toMatchObject({ state: 'approved', outcome: 'succeeded' })
  expect(toolParts((await page.messages())[1])).toMatchObject([{ output: UNRECORDED }])
  expect(testBridge.errors.map(String)).toEqual(LOST)
})

function cyclic(): object {
  const value: Record<string, unknown> = {}
  value['self'] = value
  return value
}

function raise(): never {
  throw new Error('There is no client.')
}

test('[AP360] a live session reports a failure like a chat', async () => {
  await using testBridge = await openLiveTestBridge({
    tools: () => [payTool({ code: 51 })],
    approvals: { pay: { isFailure: () => true } },
  })
  await using client = await joinLive(testBridge)
  client.say(ASK)
  const [approvalId = ''] = await untilAsked(client)
  await whole(client)
  client.send({ type: 'decide', decisionId: 'd1', id: 'chat-1', approvalId, approved: true })
  expect(await client.nextOf('decided')).toMatchObject({ ok: true })
  const page = testBridge.page()
  await page.untilState(approvalId, 'failed')
  expect(await stored(page)).toMatchObject({ outcome: 'failed', by: { own: true, others: [] } })
  const [call] = toolParts((await page.messages())[1])
  expect(call?.output).toEqual({ code: 51, success: false })
})

test('[AP361] a receipt is part of the message and of the audit record', async () => {
  const receipt = {
    headline: 'Sent $50.00 to Hanako',
    lines: [{ label: 'Transaction', value: 'txn_1' }],
    changes: [{ label: 'Balance', before: '$1,000.00', after: '$950.00' }],
  }
  await using testBridge = await TestBridge.open({
    tools: () => [payTool({ success: true, id: 'txn_1' })],
    approvals: {
      pay: {
        receipt: (output, { args, reader }) => {
          expect([output, args, reader]).toEqual([
            { success: true, id: 'txn_1' },
            { amount: 50 },
            'hanako',
          ])
          return receipt
        },
      },
    },
  })
  const { page, id } = await approvePayment(testBridge)
  expect(await stored(page)).toMatchObject({ outcome: 'succeeded', receipt })
  const { entries } = await testBridge.bridge.audit({ approvalId: id })
  expect(entries.at(-1)?.event).toMatchObject({ type: 'succeeded', receipt })
  expect(testBridge.errors).toEqual([])
})

test('[AP361] a receipt that cannot be created leaves the outcome unchanged', async () => {
  await using testBridge = await TestBridge.open({
    tools: () => [payTool({ success: true })],
    // JavaScript can return anything.
    approvals: { pay: { receipt: () => ({ lines: 'x' }) as never } },
  })
  const { page } = await approvePayment(testBridge)
  const data = await stored(page)
  expect(data).toMatchObject({ outcome: 'succeeded' })
  expect(data).not.toHaveProperty('receipt')
  expect(testBridge.errors).toHaveLength(1)
})

test('[AP140] another approver does not see the result that reports a failure', async () => {
  await using testBridge = await TestBridge.open({
    tools: () => [payTool({ success: false, error: 'Balance is 3.' })],
    approvals: { pay: { deciders: { principals: ['hanako'], roles: ['manager'] } } },
  })
  const page = testBridge.page()
  const chat = await page.open(CLIENTS[0] ?? raise())
  await chat.send(ASK)
  const [id = ''] = chat.asked
  await testBridge.page('mari').decide(id, { approved: true })
  await page.untilState(id, 'failed')
  const { history } = await testBridge.page('mari').approval(id)
  expect(JSON.stringify(history)).not.toContain('Balance is 3')
  expect((await page.approval(id)).history.at(-1)).toMatchObject({
    type: 'failed',
    error: 'Balance is 3.',
  })
  expect(await stored(page)).toMatchObject({ by: { own: false, others: ['mari'] } })
})
