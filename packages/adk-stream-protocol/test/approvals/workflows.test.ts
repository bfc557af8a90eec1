import type { BaseLlm, BaseTool, NodeLike } from '@google/adk'
import { FunctionNode, LlmAgent, Workflow } from '@google/adk'
import type { Action, Prompt, Responder } from 'gemini-emulator'
import { describe, expect, test } from 'vitest'

import type { ChatMessage } from '../support/chat-probe.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { approvingClients, clientsWith } from './support/approving-chat.ts'
import { expectRecord } from './support/expect-record.ts'
import { TestBridge } from './support/test-bridge.ts'

/** What the nodes have done, by name, in order. */
type Log = string[]

/** A model for agents whose instruction is `I am NAME`. Each does the actions of its name in turn, and then says its name. */
function play(log: Log, plans: Readonly<Record<string, readonly Action[]>> = {}): Responder {
  const left = new Map(Object.entries(plans).map(([name, actions]) => [name, [...actions]]))
  return (prompt) => {
    const name = nameOf(prompt)
    log.push(name)
    return [left.get(name)?.shift() ?? { type: 'say', text: `${name}. ` }]
  }
}

function nameOf({ systemInstruction }: Prompt): string {
  return /I am ([a-z]+)/.exec(systemInstruction)?.[1] ?? ''
}

const say = (text: string): Action => ({ type: 'say', text })
const pay = (recipient: string): Action => ({
  type: 'call',
  name: 'process_payment',
  args: { amount: 5, recipient },
})

function agentOf(model: BaseLlm, name: string, tools: BaseTool[] = []): LlmAgent {
  return new LlmAgent({ name, model, instruction: `I am ${name}.`, tools })
}

const flow = (...nodes: [NodeLike, ...NodeLike[]]): Workflow =>
  new Workflow({ name: 'flow', edges: [['START', ...nodes]] })

/** Three agents, of which one pays. */
const chain =
  (payer: string) =>
  (model: BaseLlm, tools: BaseTool[]): Workflow => {
    const node = (name: string) => agentOf(model, name, name === payer ? tools : [])
    return flow(node('one'), node('two'), node('three'))
  }

const recipients = ({ wallet }: TestBridge): string[] =>
  wallet.payments.map(({ recipient }) => recipient)

describe.each(clientsWith('7'))('$name', (client) => {
  test.each([
    ['one', true, ['one'], ['one', 'one', 'two', 'three'], 'one. two. three. '],
    ['two', true, ['one', 'two'], ['one', 'two', 'two', 'three'], 'one. two. three. '],
    ['two', false, ['one', 'two'], ['one', 'two', 'two', 'three'], 'one. two. three. '],
    ['three', true, ['one', 'two', 'three'], ['one', 'two', 'three', 'three'], 'one. two. three. '],
  ] as const)(
    '[AP480] a workflow waits in node %s, approved %s, and continues with the next one',
    async (payer, approved, before, after, text) => {
      const log: Log = []
      await using testBridge = await TestBridge.open({
        isLive: false,
        agent: chain(payer),
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
      expect(textOf(chat.lastMessage)).toBe(text)
      expect(toolParts(chat.lastMessage)).toMatchObject([
        { state: approved ? 'output-available' : 'output-denied' },
      ])
      await expectRecord(page, chat)
      await chat.send('Again.')
      expect(log.slice(after.length)).toEqual(['one', 'two', 'three'])
      await expectRecord(page, chat)
      expect(testBridge.errors).toEqual([])
    },
  )
})
