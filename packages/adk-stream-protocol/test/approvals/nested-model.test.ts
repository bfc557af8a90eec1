import type { NodeLike } from '@google/adk'
import { AgentTool, FunctionNode, LlmAgent, ToolNode, Workflow } from '@google/adk'
import * as fc from 'fast-check'
import type { Action, Prompt } from 'gemini-emulator'
import { expect, test } from 'vitest'

import { times } from '../../../../test/support/long-run.ts'
import { type ChatMessage, textOf } from '../support/chat-probe.ts'
import { agentOf, call, GO, pay, recipients, say } from './support/named-agents.ts'
import type { Page } from './support/page.ts'
import { TestBridge } from './support/test-bridge.ts'

// The agent `outer` uses the agent `middle` as a tool, and `middle` uses `inner`. Each of them may pay. A workflow starts `outer` in one
// of three ways: as a node, by a transfer from the node `router`, or as a tool that is a node. Then the node `last` runs.

const AGENTS = ['outer', 'middle', 'inner'] as const
type AgentName = (typeof AGENTS)[number]

/** A payment that expires has a deadline that no person meets. */
type Payment = 'asked' | 'expires'

const SHAPES = ['agent', 'transfer', 'tool'] as const

interface Plan {
  readonly shape: (typeof SHAPES)[number]
  /** The payments of each agent. */
  readonly payments: Readonly<Record<AgentName, readonly Payment[]>>
  /** How many of the agents are used, from the outside. */
  readonly depth: number
  readonly commands: readonly Command[]
}

type Command =
  | { readonly type: 'decide'; readonly pick: number; readonly approved: boolean }
  /** The same decision and its opposite, at the same time. */
  | { readonly type: 'race'; readonly pick: number }
  | { readonly type: 'restart' }

const payments = fc.array(fc.constantFrom<Payment>('asked', 'asked', 'expires'), { maxLength: 2 })
const pick = fc.nat({ max: 5 })
const plans: fc.Arbitrary<Plan> = fc.record({
  shape: fc.constantFrom(...SHAPES),
  payments: fc.record({ outer: payments, middle: payments, inner: payments }),
  depth: fc.integer({ min: 1, max: 3 }),
  commands: fc.array(
    fc.oneof(
      {
        weight: 4,
        arbitrary: fc.record({ type: fc.constant('decide'), pick, approved: fc.boolean() }),
      },
      { weight: 1, arbitrary: fc.record({ type: fc.constant('race'), pick }) },
      { weight: 1, arbitrary: fc.record({ type: fc.constant('restart') }) },
    ),
    { maxLength: 6 },
  ),
})

/** What an agent calls at once: its payments, and the agent below it. */
function callsOf(name: AgentName, { payments: all, depth }: Plan): Action[] {
  const index = AGENTS.indexOf(name)
  const below = index + 1 < depth ? AGENTS[index + 1] : undefined
  return [
    ...all[name].map((kind, number) => pay(`${name}-${kind}-${number}`)),
    ...(below === undefined ? [] : [call(below, { request: 'Pay.' })]),
  ]
}

/** One chat that follows a plan, and what it has seen. */
class NestedChat {
  /** Each time an agent has ended, and the last node. */
  readonly log: string[] = []
  readonly violations: string[] = []
  /** The payments of which a decision was accepted. */
  readonly decided = new Map<string, boolean>()
  readonly #plan: Plan

  constructor(plan: Plan) {
    this.#plan = plan
  }

  /** The model of all agents: it calls everything at once, and then repeats the responses. */
  readonly respond = ({ systemInstruction, contents }: Prompt): Action[] => {
    if (systemInstruction.includes('I am router.'))
      return [call('transfer_to_agent', { agentName: 'outer' })]
    const name = AGENTS.find((each) => systemInstruction.includes(`I am ${each}.`)) ?? 'outer'
    const calls = callsOf(name, this.#plan)
    const responses = contents.flatMap(({ parts = [] }) =>
      parts.flatMap(({ functionResponse }) =>
        functionResponse?.name === 'transfer_to_agent' ? [] : (functionResponse?.response ?? []),
      ),
    )
    if (responses.length === 0 && calls.length > 0) {
      this.log.push(`${name} starts`)
      return calls
    }
    if (responses.length !== calls.length) this.violations.push(`${name} ended early`)
    this.log.push(`${name} ends`)
    return [say(`${name} ${JSON.stringify(responses)}`)]
  }

  async follow(page: Page, testBridge: TestBridge): Promise<void> {
    await page.post(GO)
    for (const command of this.#plan.commands) {
      if (command.type === 'restart') await testBridge.restart()
      else await this.#decide(page, command)
      await this.check(page, testBridge)
    }
    while (!(await this.#isOver(page))) {
      await this.#decide(page, { type: 'decide', pick: 0, approved: true })
      await this.check(page, testBridge)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  }

  async #isOver(page: Page): Promise<boolean> {
    return this.log.includes('last') || isStopped((await page.messages()).at(-1))
  }

  async #decide(page: Page, command: Exclude<Command, { type: 'restart' }>): Promise<void> {
    const asked = (await page.inbox()).filter(({ args }) => JSON.stringify(args).includes('asked'))
    const chosen = asked[command.pick % Math.max(asked.length, 1)]
    if (!chosen) return
    const { recipient = '' } = chosen['args'] as { recipient?: string }
    const wanted = command.type === 'race' ? [true, false] : [command.approved]
    await Promise.all(
      wanted.map(async (approved) => {
        const { status } = await page.decide(chosen.id, { approved, reason: 'No.' })
        if (status !== 200) return
        if (this.decided.has(recipient)) this.violations.push(`${recipient} was decided twice`)
        this.decided.set(recipient, approved)
      }),
    )
  }

  /** Checks what must hold at any time. */
  async check(page: Page, testBridge: TestBridge): Promise<void> {
    const isOver = this.log.includes('last')
    const paid = recipients(testBridge)
    if (new Set(paid).size !== paid.length) this.violations.push(`paid twice: ${paid.join(', ')}`)
    for (const recipient of paid)
      if (this.decided.get(recipient) !== true)
        this.violations.push(`${recipient} was not approved`)
    if (isOver && (await page.inbox()).length > 0)
      this.violations.push('the last node started early')
  }

  /** Checks what must hold in the end. Returns what was wrong at any time. */
  async finish(page: Page, testBridge: TestBridge): Promise<readonly unknown[]> {
    const { violations, log } = this
    await page.untilMessages((messages) => {
      const reply = messages.at(-1)
      return textOf(reply).includes('Last: ') || isStopped(reply)
    })
    await this.check(page, testBridge)
    if (log.filter((entry) => entry === 'last').length > 1)
      violations.push('the last node ran twice')
    if (isStopped((await page.messages()).at(-1))) return [...violations, ...testBridge.errors]
    const approved = [...this.decided].flatMap(([name, isApproved]) => (isApproved ? name : []))
    const paid = new Set(recipients(testBridge))
    const [, last = ''] = textOf((await page.messages()).at(-1)).split('Last: ')
    for (const name of approved) {
      if (!paid.has(name)) violations.push(`${name} was approved and not paid`)
      // The result of a parent contains those of its children.
      if (!last.includes(name)) violations.push(`${name} is not in the result`)
    }
    // A parent ends after its children, once.
    // A model is asked again if the server closed before its reply was stored.
    const ends = [...new Set(log.filter((entry) => entry.endsWith(' ends')))].join(', ')
    const names = AGENTS.slice(0, this.#plan.depth).toReversed()
    if (ends !== names.map((name) => `${name} ends`).join(', ')) violations.push(ends)
    return [...violations, ...testBridge.errors]
  }
}

/** Whether a restart has stopped the turn after the reply of the first node, so that the message says so (AP661). */
function isStopped(message: ChatMessage | undefined): boolean {
  return (message?.metadata as { stopped?: boolean } | undefined)?.stopped === true
}

/** Only payments need approval. */
const approvals = ({ toolName, args }: { toolName: string; args: Record<string, unknown> }) => ({
  required: toolName === 'process_payment',
  ...(JSON.stringify(args).includes('expires') && { deadlineMs: 1 }),
})

/** Returns the nodes before the last one. */
function nodesOf(
  { shape }: Plan,
  outer: LlmAgent,
  router: (subAgent: LlmAgent) => LlmAgent,
): [NodeLike, ...NodeLike[]] {
  if (shape === 'agent') return [outer]
  if (shape === 'transfer') return [router(outer)]
  return [
    new FunctionNode('args', () => ({ request: 'Pay.' })),
    new ToolNode(new AgentTool({ agent: outer })),
  ]
}

test('[LG1] no order of decisions, expiries and restarts breaks an invariant of calls inside agents of a node', async () => {
  const property = fc.asyncProperty(plans, async (plan) => {
    const chat = new NestedChat(plan)
    await using testBridge = await TestBridge.open({
      isLive: false,
      limits: { leaseMs: 500 },
      approvals,
      respond: chat.respond,
      agent: (model, tools) => {
        const inner = new AgentTool({ agent: agentOf(model, 'inner', tools) })
        const middle = new AgentTool({ agent: agentOf(model, 'middle', [...tools, inner]) })
        const last = new FunctionNode('last', (_context, input) => {
          chat.log.push('last')
          return `Last: ${JSON.stringify(input)}`
        })
        const outer = agentOf(model, 'outer', [...tools, middle])
        const router = (subAgent: LlmAgent): LlmAgent =>
          new LlmAgent({
            name: 'router',
            model,
            instruction: 'I am router.',
            subAgents: [subAgent],
          })
        return new Workflow({
          name: 'flow',
          edges: [['START', ...nodesOf(plan, outer, router), last]],
        })
      },
    })
    const page = testBridge.page()
    await chat.follow(page, testBridge)
    expect(await chat.finish(page, testBridge)).toEqual([])
  })
  const checked = fc.assert(property, { numRuns: times(6, 60) })
  await expect(checked).resolves.toBeUndefined()
})
