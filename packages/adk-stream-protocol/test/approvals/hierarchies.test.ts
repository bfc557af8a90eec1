import { type BaseLlm, type BaseTool, LlmAgent } from '@google/adk'
import type { Action, Responder } from 'gemini-emulator'
import { describe, expect } from 'vitest'

import { takeTurns } from '../../../../test/support/take-turns.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { approvingClients } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { TestBridge } from './support/test-bridge.ts'

/** root → mid → leaf → last, each below the previous one. The leaf has the tools. */
function hierarchy(model: BaseLlm, tools: BaseTool[]): LlmAgent {
  const last = new LlmAgent({ name: 'last', model, description: 'Ends.' })
  const leaf = new LlmAgent({ name: 'leaf', model, description: 'Pays.', tools, subAgents: [last] })
  const mid = new LlmAgent({ name: 'mid', model, description: 'Routes.', subAgents: [leaf] })
  return new LlmAgent({ name: 'root', model, subAgents: [mid] })
}

/** A model that does one action per call, and says so when it is called too often. */
function inTurn(actions: readonly Action[]): Responder {
  const left = [...actions]
  return () => [left.shift() ?? { type: 'say', text: ' And another answer.' }]
}

const to = (...names: readonly string[]): Action[] =>
  names.map((agentName) => ({ type: 'call', name: 'transfer_to_agent', args: { agentName } }))
const PAY: Action = { type: 'call', name: 'process_payment', args: { amount: 5, recipient: 'A' } }
const ANSWER: Action = { type: 'say', text: 'The one answer.' }

const clients = approvingClients

describe.each(clients)('$name', (client) => {
  const it = takeTurns({ group: clients.indexOf(client), groups: clients.length })

  it.each([
    ['down two levels', ['mid', 'leaf'], 3],
    ['down three levels', ['mid', 'leaf', 'last'], 4],
    ['back to the parent', ['mid', 'root'], 3],
    ['back from two levels', ['mid', 'leaf', 'mid'], 4],
    ['back and down again', ['mid', 'root', 'mid', 'leaf'], 5],
  ])('[MP110] one agent replies after a transfer %s', async (_name, path, calls) => {
    const respond = inTurn([...to(...path), ANSWER])
    await using testBridge = await TestBridge.open({ agent: hierarchy, respond })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    expect(textOf(chat.lastMessage)).toBe('The one answer.')
    expect(testBridge.asked).toBe(calls)
    await expectRecord(page, chat)
  })

  it.each([
    ['down two levels', ['mid', 'leaf'], [], 4],
    ['and back after the decision', ['mid', 'leaf'], ['mid'], 5],
    ['and on after the decision', ['mid', 'leaf'], ['last'], 5],
  ])('[MP110] no agent replies while an approval is open: %s', async (_name, path, then, calls) => {
    const respond = inTurn([...to(...path), PAY, ...to(...then), ANSWER])
    await using testBridge = await TestBridge.open({ agent: hierarchy, respond })
    const page = testBridge.page()
    const chat = await page.open(client)
    await chat.send('Go.')
    expect(textOf(chat.lastMessage)).toBe('')
    expect(testBridge.asked).toBe(3)
    await chat.decide(true)
    expect(textOf(chat.lastMessage)).toBe('The one answer.')
    expect(toolParts(chat.lastMessage)).toMatchObject([{ state: 'output-available' }])
    expect(testBridge.asked).toBe(calls)
    expect(testBridge.wallet.payments).toHaveLength(1)
    await expectRecord(page, chat)
  })
})
