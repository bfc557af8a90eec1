import { requestInputTool } from '@google/adk'
import type { Responder } from 'gemini-emulator'
import { describe, expect, test } from 'vitest'

import { textOf, toolParts } from '../support/chat-probe.ts'
import { approvingClients } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { agentOf, ask, nest, pay, play, say } from './support/nested-agents.ts'
import type { Plays } from './support/nested-agents.ts'
import { TestBridge } from './support/test-bridge.ts'

const TOOL = 'adk_request_input'
const QUESTION = { type: 'call', name: TOOL, args: { message: 'How many?' } } as const

async function open(plays: Plays) {
  const told: Record<string, unknown> = {}
  const actor = play(plays)
  const respond: Responder = (prompt) => {
    told[agentOf(prompt)] = prompt.contents.flatMap(({ parts = [] }) =>
      parts.flatMap(({ functionCall, functionResponse }) =>
        functionResponse ? (functionResponse.response ?? []) : (functionCall?.name ?? []),
      ),
    )
    return actor(prompt)
  }
  const testBridge = await TestBridge.open({
    agent: (model, tools) => nest(model, [requestInputTool, ...tools]),
    respond,
  })
  return { testBridge, told }
}

describe.each(approvingClients)('$name', (client) => {
  test('[AP500] a stock client answers a question inside an agent with addToolOutput, and the agent reads its question and the answer', async () => {
    const { testBridge, told } = await open({
      planner: [[ask('travel')], [say('All done.')]],
      travel: [[QUESTION], [say('Booked.')]],
    })
    await using bridge = testBridge
    const page = bridge.page()
    const chat = await page.open(client, { autoSend: 'tool-calls' })
    await chat.send('Go.')
    const parts = toolParts(chat.lastMessage)
    expect(parts).toMatchObject([
      { type: 'tool-travel', output: { status: 'pending' } },
      { type: `tool-${TOOL}`, state: 'input-available' },
    ])
    const toolCallId = parts[1]?.toolCallId ?? ''
    await chat.give({ tool: TOOL, toolCallId, output: 'Three' })
    await chat.rest()
    expect(textOf(chat.lastMessage)).toBe('All done.')
    expect(told['travel']).toEqual([TOOL, { result: 'Three' }])
    expect(told['planner']).toEqual(['travel', { result: 'Booked.' }])
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { output: { result: 'Booked.' } },
      { output: 'Three' },
    ])
    await expectRecord(page, chat)
    expect(testBridge.errors).toEqual([])
  })
})

test('[AP500] a question and an approval of one step inside an agent wait together, and each counts once', async () => {
  const { testBridge, told } = await open({
    planner: [[ask('travel')], [say('All done.')]],
    travel: [[QUESTION, pay(5)], [say('Booked.')]],
  })
  await using bridge = testBridge
  const page = bridge.page()
  const message = { id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Go.' }] }
  await page.post({ id: 'chat-1', messages: [message] })
  const asked = await page.inbox()
  const question = asked.find(({ toolName }) => toolName === TOOL)
  const payment = asked.find(({ toolName }) => toolName === 'process_payment')
  await page.decide(question?.id ?? '', { approved: true, payload: 'Three' })
  await page.decide(payment?.id ?? '', { approved: true })
  await page.untilMessages((messages) => textOf(messages.at(-1)) === 'All done.')
  expect(testBridge.wallet.payments).toHaveLength(1)
  expect(told['travel']).toMatchObject([
    TOOL,
    'process_payment',
    { result: 'Three' },
    { success: true },
  ])
  expect(testBridge.errors).toEqual([])
})
