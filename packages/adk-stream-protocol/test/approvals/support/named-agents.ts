import type { BaseAgent, BaseLlm, BaseTool, Workflow } from '@google/adk'
import { LlmAgent } from '@google/adk'
import type { Action, Prompt, Responder } from 'gemini-emulator'
import { expect } from 'vitest'

import { textOf, toolParts } from '../../support/chat-probe.ts'
import { type approvingClients } from './approving-chat.ts'
import { expectRecord } from './expect-record.ts'
import { TestBridge } from './test-bridge.ts'

/** What agents have done, by name, in order. */
export type Log = string[]

/** What each agent does, by its name. */
export type Plans = Readonly<Record<string, readonly (Action | Action[])[]>>

/** Creates the agent of a bridge. */
export type MakeAgent<Agent = BaseAgent | Workflow> = (model: BaseLlm, tools: BaseTool[]) => Agent

/** A model for agents whose instruction is `I am NAME`. Each does the actions of its name in turn, and then says its name. */
export function play(log: Log, plans: Plans = {}): Responder {
  const left = new Map(Object.entries(plans).map(([name, actions]) => [name, [...actions]]))
  return (prompt) => {
    const name = nameOf(prompt)
    log.push(name)
    return [left.get(name)?.shift() ?? say(`${name}. `)].flat()
  }
}

function nameOf({ systemInstruction }: Prompt): string {
  return /I am ([a-z]+)/.exec(systemInstruction)?.[1] ?? ''
}

export const say = (text: string): Action => ({ type: 'say', text })
export const call = (name: string, args = {}): Action => ({ type: 'call', name, args })
export const pay = (recipient: string): Action => call('process_payment', { amount: 5, recipient })

export function agentOf(model: BaseLlm, name: string, tools: BaseTool[] = []): LlmAgent {
  return new LlmAgent({ name, model, instruction: `I am ${name}.`, tools })
}

export const recipients = ({ wallet }: TestBridge): string[] =>
  wallet.payments.map(({ recipient }) => recipient)

/** The request of a chat that starts an agent. */
export const GO = {
  id: 'chat-1',
  messages: [{ id: 'm1', role: 'user', parts: [{ type: 'text', text: 'Go.' }] }],
}

type Case = readonly [
  payer: string,
  approved: boolean,
  before: readonly string[],
  after: readonly string[],
]

/** Which of three agents in a row pays, whether it may, and which agents have run before and after the decision. */
export const THREE_IN_A_ROW: readonly Case[] = [
  ['one', true, ['one'], ['one', 'one', 'two', 'three']],
  ['two', true, ['one', 'two'], ['one', 'two', 'two', 'three']],
  ['two', false, ['one', 'two'], ['one', 'two', 'two', 'three']],
  ['three', true, ['one', 'two', 'three'], ['one', 'two', 'three', 'three']],
]

/**
 * Expects that three agents in a row wait for the decision about the payment of one of them, and that the next message starts them
 * again. Returns the errors of the bridge.
 */
export async function runThreeInARow(
  client: (typeof approvingClients)[number],
  agent: MakeAgent,
  [payer, approved, before, after]: Case,
): Promise<readonly unknown[]> {
  const log: Log = []
  await using testBridge = await TestBridge.open({
    isLive: false,
    agent,
    respond: play(log, { [payer]: [pay('A')] }),
  })
  const page = testBridge.page()
  const chat = await page.open(client)
  await chat.send('Go.')
  expect(log).toEqual(before)
  expect(chat.asked).toHaveLength(1)
  await chat.decide(approved)
  expect(log).toEqual(after)
  expect(recipients(testBridge)).toEqual(approved ? ['A'] : [])
  expect(textOf(chat.lastMessage)).toBe('one. two. three. ')
  expect(toolParts(chat.lastMessage)).toMatchObject([
    { state: approved ? 'output-available' : 'output-denied' },
  ])
  await expectRecord(page, chat)
  await chat.send('Again.')
  expect(log.slice(after.length)).toEqual(['one', 'two', 'three'])
  await expectRecord(page, chat)
  return testBridge.errors
}
