import { appendFileSync } from 'node:fs'

import type { BaseAgent, BaseTool, Event, NodeContext } from '@google/adk'
import { createEvent, FunctionNode, FunctionTool, ToolNode, Workflow } from '@google/adk'
import type { Responder } from 'gemini-emulator'
import { z } from 'zod'

import { readNotes } from '../../../src/agent/events/event-notes.ts'
import { assistant, type EmulatedGemini } from '../../support/agents.ts'
import type { Effect, Reached } from './payment-server.ts'

interface NodeWorkflowOptions {
  readonly model: EmulatedGemini
  /** The file that gets a line for each effect. */
  readonly effects: string
  readonly reached: Reached
}

/**
 * A workflow after an agent that pays: `charge` and `last` are functions, `mail` is one that may run again, `checker` an agent that
 * calls the tool `check`, and `post` a tool. Each of them has an effect.
 */
export function nodeWorkflow(
  first: BaseAgent,
  { model, effects, reached }: NodeWorkflowOptions,
): Workflow {
  const act = async (name: string, { session }: NodeContext['invocationContext']) => {
    await reached(`before ${name}`, session.id)
    const effect: Effect = {
      chatId: session.id,
      userId: session.userId,
      name,
      to: '',
      amount: 1,
      key: '',
    }
    appendFileSync(effects, `${JSON.stringify(effect)}\n`)
    await reached(`after ${name}`, session.id)
  }
  const charge = new FunctionNode('charge', async ({ invocationContext }) => {
    await act('charge', invocationContext)
    return createEvent({ output: 'charged' })
  })
  const mail = new FunctionNode(
    'mail',
    async ({ invocationContext }, input) => {
      await act('mail', invocationContext)
      return createEvent({ output: `${String(input)} mailed` })
    },
    { retryConfig: { maxAttempts: 2 } },
  )
  const check = new FunctionTool({
    name: 'check',
    description: 'Checks.',
    execute: async (_input, context) => {
      if (context) await act('check', context.invocationContext)
      return { checked: true }
    },
  })
  const checker = assistant(model, {
    name: 'checker',
    instruction: 'I am checker.',
    tools: [check],
  })
  const args = new FunctionNode('args', (_context, input) =>
    createEvent({ output: { text: String(input) } }),
  )
  const post = new FunctionTool({
    name: 'post',
    description: 'Posts a text.',
    parameters: z.object({ text: z.string() }),
    execute: async ({ text }, context) => {
      if (context) await act('post', context.invocationContext)
      return { posted: text }
    },
  })
  const last = new FunctionNode('last', async ({ invocationContext }, input) => {
    await act('last', invocationContext)
    return ` Last: ${JSON.stringify(input)}`
  })
  return new Workflow({
    name: 'steps',
    edges: [['START', first, charge, mail, checker, args, new ToolNode(post), last]],
  })
}

/** A workflow whose payment is a node itself. */
export function payingWorkflow(pay: BaseTool, second: BaseAgent): Workflow {
  const order = new FunctionNode('order', () => createEvent({ output: { to: '花子', amount: 50 } }))
  return new Workflow({ name: 'steps', edges: [['START', order, new ToolNode(pay), second]] })
}

/** The model of `checker`: it calls its tool once, and repeats its input and the result. */
export const checkOnce: Responder = ({ systemInstruction, contents }) => {
  if (!systemInstruction.includes('I am checker.')) return undefined
  const parts = contents.flatMap((content) => content.parts ?? [])
  const result = parts.find(({ functionResponse }) => functionResponse)?.functionResponse
  if (!result) return [{ type: 'call', name: 'check', args: {} }]
  const text = parts.find((part) => part.text)?.text ?? ''
  const isUnknown = JSON.stringify(result.response).includes('may or may not')
  return [{ type: 'say', text: `${text} ${isUnknown ? 'unknown' : 'checked'}.` }]
}

/** Returns the name of an event of a node: its note, its call, the result of the call, or its own result. */
export function readNodeMoment(event: Event): string | undefined {
  const { node } = readNotes(event)
  if (node) return `${node.state}-${leafOf(node.path)}`
  const path = event.nodeInfo?.path
  if (path === undefined || event.partial) return undefined
  const parts = event.content?.parts ?? []
  if (parts.some(({ functionCall }) => functionCall)) return `call-${leafOf(path)}`
  if (parts.some(({ functionResponse }) => functionResponse)) return `result-${leafOf(path)}`
  return event.output === undefined ? undefined : `output-${leafOf(path)}`
}

function leafOf(path: string): string {
  return path.split('.').at(-1) ?? ''
}
