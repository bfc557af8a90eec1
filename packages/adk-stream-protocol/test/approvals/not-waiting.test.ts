// oxlint-disable typescript/no-deprecated -- LoopAgent and SequentialAgent are deprecated in favour of Workflow, and in use.
import type { BaseAgent, BaseLlm, BaseTool, Context, Event, InvocationContext } from '@google/adk'
import {
  AgentTool,
  BaseAgent as Base,
  BaseTool as Tool,
  BaseToolset,
  FunctionNode,
  FunctionTool,
  LlmAgent,
  LoopAgent,
  NodeTool,
  ParallelAgent,
  ParallelWorker,
  RoutedAgent,
  SequentialAgent,
  ToolNode,
  Workflow,
} from '@google/adk'
import type { Responder } from 'gemini-emulator'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import type { BridgeOptions } from '../../src/server/index.ts'
import { browserTool, createBridge } from '../../src/server/index.ts'
import { tool } from '../support/agents.ts'
import { serve } from '../support/serve.ts'
import { readFrames } from '../support/wire-rules.ts'

const model = 'gemini-2.5-flash'

type Tools = ConstructorParameters<typeof LlmAgent>[0]['tools']

function payment(requireConfirmation = false, execute: () => object = () => ({})): BaseTool {
  return new FunctionTool({ name: 'pay', description: 'Pays.', requireConfirmation, execute })
}

/** A tool that determines itself whether it needs approval. */
class Checked extends Tool {
  constructor() {
    super({ name: 'pay', description: 'Pays.' })
  }

  override checkRequireConfirmation(): Promise<boolean> {
    return Promise.resolve(true)
  }

  override runAsync(): Promise<object> {
    return Promise.resolve({})
  }
}

/** Tools that are known only when they are listed. */
class Toolset extends BaseToolset {
  readonly #tools: BaseTool[]

  constructor(...tools: BaseTool[]) {
    super([])
    this.#tools = tools
  }

  withPrefix(prefix: string): this {
    return Object.assign(this, { prefix })
  }

  override getTools(): Promise<BaseTool[]> {
    return Promise.resolve(this.#tools)
  }

  override async close(): Promise<void> {}
}

const agentOf = (name: string, tools: Tools = []) => new LlmAgent({ name, model, tools })
const loop = (tools: Tools) =>
  new LoopAgent({ name: 'loop', maxIterations: 2, subAgents: [agentOf('payer', tools)] })
const sequence = (tools: Tools) =>
  new SequentialAgent({ name: 'steps', subAgents: [agentOf('payer', tools), agentOf('last')] })
/** Subclasses that run their steps in their own way. */
class OwnLoop extends LoopAgent {
  protected override runAsyncImpl(context: InvocationContext) {
    return super.runAsyncImpl(context)
  }
}
class OwnSequence extends SequentialAgent {
  protected override runAsyncImpl(context: InvocationContext) {
    return super.runAsyncImpl(context)
  }
}
class OwnParallel extends ParallelAgent {
  protected override runAsyncImpl(context: InvocationContext) {
    return super.runAsyncImpl(context)
  }
}
class OwnRouted extends RoutedAgent {
  override runAsync(context: InvocationContext) {
    return super.runAsync(context)
  }
}
/** An agent that runs its sub-agents one after the other, as ADK's guide to custom agents shows. */
class Own extends Base {
  protected override async *runAsyncImpl(context: InvocationContext): AsyncGenerator<Event, void> {
    for (const subAgent of this.subAgents) yield* subAgent.runAsync(context)
  }

  // oxlint-disable-next-line require-yield -- It does not talk.
  protected override async *runLiveImpl(): AsyncGenerator<Event, void> {
    throw new Error('not supported')
  }
}
class OwnLlm extends LlmAgent {
  protected override runAsyncImpl(context: InvocationContext) {
    return super.runAsyncImpl(context)
  }
}
class OwnLive extends LlmAgent {
  protected override runLiveImpl(context: InvocationContext) {
    return super.runLiveImpl(context)
  }
}
/** A class of the application that runs as ADK's. */
class Named extends LlmAgent {
  readonly label = 'Payments'
}
class OwnFlow extends Workflow {
  protected override runImpl(...args: Parameters<Workflow['runImpl']>) {
    return super.runImpl(...args)
  }
}
class OwnToolNode extends ToolNode {
  protected override runImpl(...args: Parameters<ToolNode['runImpl']>) {
    return super.runImpl(...args)
  }
}
function changed(tools: Tools): LlmAgent {
  const agent = agentOf('payer', tools)
  Reflect.set(agent, 'runAsyncImpl', async function* runNothing() {})
  return agent
}
type OwnClass = typeof OwnLoop | typeof OwnSequence | typeof OwnParallel | typeof Own
const ownRun = (Class: OwnClass, tools: Tools) =>
  new Class({ name: 'own', subAgents: [agentOf('payer', tools), agentOf('mailer')] })
const routed = (Class: typeof RoutedAgent, tools: Tools) =>
  new Class({ name: 'router', agents: [agentOf('payer', tools)], router: () => 'payer' })
const flow = (...nodes: [FlowNode, ...FlowNode[]]) =>
  new Workflow({
    name: 'flow',
    edges: [['START', ...nodes]],
    inputSchema: z.object({ request: z.string() }),
  })
const nestedFlow = (node: FlowNode) => new Workflow({ name: 'inner', edges: [['START', node]] })
const inTaskMode = (tools: NonNullable<Tools>) =>
  new LlmAgent({ name: 'payer', model, tools, mode: 'task' })
const withSubAgent = (tools: Tools, mode: 'single_turn' | 'task' = 'single_turn') =>
  new LlmAgent({ name: 'front', model, mode, subAgents: [agentOf('payer', tools)] })
type FlowNode = ConstructorParameters<typeof ParallelWorker>[0]
const asTool = (agent: BaseAgent) => new AgentTool({ agent })
const agentTool = (tools: Tools) => asTool(agentOf('inner', tools))
const nested = (tools: Tools) => agentOf('root', [agentTool(tools)])
const cyclic = () => {
  const root = agentOf('root')
  const inner = agentOf('inner', [payment(true), new AgentTool({ agent: root })])
  root.tools.push(new AgentTool({ agent: inner }))
  return root
}

type Case = [name: string, agent: BridgeOptions['agent'], approvals?: BridgeOptions['approvals']]

const BY_NAME = { pay: true } as const
const ANY = () => false
const ANY_BUT = { '*': ANY, locate: false } as const

test.each<Case>([
  [
    'steps with the same name',
    new SequentialAgent({
      name: 'steps',
      subAgents: [agentOf('payer'), agentOf('payer', [payment(true)])],
    }),
  ],
  ['a loop with a run of its own', ownRun(OwnLoop, [payment(true)])],
  ['a loop with a run of its own, by a policy', ownRun(OwnLoop, [payment()]), BY_NAME],
  ['a sequence with a run of its own', ownRun(OwnSequence, [payment(true)])],
  ['a sequence with a run of its own, by a function', ownRun(OwnSequence, [payment()]), ANY],
  ['such a sequence with a toolset', ownRun(OwnSequence, [new Toolset()]), BY_NAME],
  ['a node as tool with a gated tool inside', agentOf('root', [flow(payment(true))])],
  ['a NodeTool with a gated agent', agentOf('root', [new NodeTool(flow(loop([payment(true)])))])],
  ['a gated NodeTool', agentOf('root', [new NodeTool(flow(payment()))]), { flow: true }],
  ['a gated node as tool', agentOf('root', [flow(agentOf('inner'))]), { flow: true }],
  ['a gated tool in an AgentTool in an own loop', ownRun(OwnLoop, [agentTool([payment(true)])])],
  ['a checked tool in an AgentTool in an own loop', ownRun(OwnLoop, [agentTool([new Checked()])])],
  [
    'a policy for a tool in an AgentTool in an own sequence',
    ownRun(OwnSequence, [agentTool([payment()])]),
    BY_NAME,
  ],
  ['a gated tool in a loop in an AgentTool', agentOf('root', [asTool(loop([payment(true)]))])],
])('[AP12] refused: %s', (_name, agent, approvals) => {
  const create = () => createBridge({ agent, ...(approvals && { approvals }) })
  expect(create).toThrow(TypeError)
  expect(create).toThrow(/needs? approval/)
})

test.each<Case>([
  ['parallel steps with a run of its own', ownRun(OwnParallel, [payment(true)])],
  ['a router with a run of its own', routed(OwnRouted, [payment(true)])],
  ['an own class', ownRun(Own, [payment(true)])],
  ['an own class, by a policy', ownRun(Own, [payment()]), BY_NAME],
  ['an own class, by a function', ownRun(Own, [payment()]), ANY],
  ['an own class, by a function for a pattern', ownRun(Own, [payment()]), { '*': ANY }],
  ['an own class with a checked tool', ownRun(Own, [new Checked()])],
  ['an own class with a toolset', ownRun(Own, [new Toolset()]), { 'pay*': true }],
  ['an own class with a toolset, by a function', ownRun(Own, [new Toolset()]), ANY],
  [
    'an own class with a toolset whose prefix is not exempt from all patterns',
    ownRun(Own, [new Toolset().withPrefix('files')]),
    { 'files_*': false, 'files_del*': true },
  ],
  [
    'an own class with a toolset of which a tool is named',
    ownRun(Own, [new Toolset().withPrefix('files')]),
    { 'files_*': false, files_delete: true },
  ],
  ['an own class, two levels above', ownRun(Own, [asTool(sequence([payment(true)]))])],
  ['an own class in an AgentTool', agentOf('root', [asTool(ownRun(Own, [payment(true)]))])],
  [
    'an own class in a sequence',
    new SequentialAgent({ name: 'steps', subAgents: [ownRun(Own, [payment(true)])] }),
  ],
  ['an LlmAgent with a run of its own', new OwnLlm({ name: 'a', model, tools: [payment(true)] })],
  [
    'an agent below an LlmAgent with a run of its own',
    new OwnLlm({ name: 'a', model, subAgents: [agentOf('b', [payment(true)])] }),
  ],
  [
    'an LlmAgent with a live run of its own',
    new OwnLive({ name: 'a', model, tools: [payment(true)] }),
  ],
  ['an LlmAgent whose run was replaced', changed([payment(true)])],
  ['a node with a run of its own', flow(new OwnLlm({ name: 'a', model, tools: [payment(true)] }))],
  ['an own class as a node', flow(ownRun(Own, [payment(true)]))],
  ['a tool node with a run of its own', flow(new OwnToolNode(payment(true)))],
  [
    'a workflow with a run of its own',
    new OwnFlow({ name: 'flow', edges: [['START', agentOf('payer', [payment(true)])]] }),
  ],
])('[AP1060] refused: %s', (_name, agent, approvals) => {
  const create = () => createBridge({ agent, ...(approvals && { approvals }) })
  expect(create).toThrow(/needs? approval.* has a run of its own/)
})

/** A tool that needs no approval and waits for the page. */
const locate = browserTool({ name: 'locate', description: 'Locates.', parameters: z.object({}) })

test.each<Case>([
  ['an own class', ownRun(Own, [locate])],
  ['an own class, by a policy that exempts it from approvals', ownRun(Own, [locate]), ANY_BUT],
  ['a sequence with a run of its own', ownRun(OwnSequence, [payment(), locate])],
  ['an LlmAgent with a run of its own', new OwnLlm({ name: 'a', model, tools: [locate] })],
  ['an AgentTool in an own class', ownRun(Own, [agentTool([locate])])],
  ['an own class in an AgentTool', agentOf('root', [asTool(ownRun(Own, [locate]))])],
  ['an own class as a node', flow(ownRun(Own, [locate]))],
])('[AP1060] refused with a browser tool: %s', (_name, agent, approvals) => {
  const create = () => createBridge({ agent, ...(approvals && { approvals }) })
  expect(create).toThrow(/the tool locate runs in the browser, .* has a run of its own/)
})

test.each<Case>([
  [
    'a workflow with a gated sub-agent of the name of another one',
    flow(withSubAgent([payment(true)]), agentOf('payer')),
  ],
  [
    'a workflow with a gated sub-agent of an agent in task mode',
    flow(withSubAgent([payment(true)], 'task')),
  ],
  [
    'a workflow with a gated sequence below a node',
    flow(new LlmAgent({ name: 'front', model, subAgents: [sequence([payment(true)])] })),
  ],
  ['a workflow with a gated sequence', flow(sequence([payment(true)]))],
  [
    'a workflow with parallel gated workflows',
    flow(new ParallelWorker(nestedFlow(agentOf('a', [payment(true)])))),
  ],
  [
    'a workflow with parallel gated agents of the name of another one',
    flow(agentOf('a'), nestedFlow(new ParallelWorker(agentOf('a', [payment(true)])))),
  ],
  [
    'a workflow with a node of the same name in a nested one',
    flow(agentOf('payer'), nestedFlow(agentOf('payer', [payment(true)]))),
  ],
  [
    'a gated workflow that is used as a tool',
    agentOf('root', [new NodeTool(flow(agentOf('payer', [payment(true)])))]),
  ],
  [
    'a gated tool in a workflow that is used as a tool',
    agentOf('root', [new NodeTool(flow(payment(true)))]),
  ],
])('[AP483] refused: %s', (_name, agent, approvals) => {
  const create = () => createBridge({ agent, ...(approvals && { approvals }) })
  expect(create).toThrow(TypeError)
  expect(create).toThrow(/needs? approval.* LlmAgent/)
})

test.each<[name: string, agent: BridgeOptions['agent']]>([
  ['a loop', loop([payment(true)])],
  ['a sequence', sequence([payment(true)])],
])('[AP12] refused in a live session: %s', (_name, agent) => {
  const live = { model: 'gemini-live-2.5-flash-preview' }
  expect(() => createBridge({ agent, live })).toThrow(/in a live session/)
})

test.each<Case>([
  ['a loop with a gated tool', loop([payment(true)])],
  ['a gated tool in an AgentTool in a loop', loop([agentTool([payment(true)])])],
  ['a loop with a tool that a policy gates', loop([payment()]), BY_NAME],
  ['a loop with a policy that is a function', loop([payment()]), ANY],
  ['a sequence with a gated tool', sequence([payment(true)])],
  ['a sequence with a policy that is a function', sequence([payment()]), ANY],
  ['a loop', loop([payment(), new Toolset()])],
  ['a loop whose tool a policy frees', loop([payment(true)]), { pay: false }],
  ['a sequence', sequence([payment(), new Toolset()])],
  ['a workflow', flow(agentOf('first', [payment()]), payment())],
  ['a workflow with a gated agent', flow(agentOf('payer', [payment(true)]), fn())],
  [
    'a workflow with a gated agent in a nested one',
    flow(nestedFlow(agentOf('payer', [payment(true)]))),
  ],
  ['a workflow with a gated agent in task mode', flow(inTaskMode([payment(true)]))],
  [
    'a workflow with parallel gated agents',
    flow(new ParallelWorker(agentOf('a', [payment(true)]))),
  ],
  ['a workflow with a gated sub-agent', flow(withSubAgent([payment(true)]))],
  ['a workflow with a gated tool', flow(payment(true))],
  ['a workflow with a tool that a policy gates', flow(new ToolNode(payment())), BY_NAME],
  ['a workflow with a policy that is a function', flow(payment()), ANY],
  ['a workflow in a workflow', flow(flow(payment(true)))],
  ['a gated tool in parallel workers', flow(new ParallelWorker(payment(true)))],
  ['a gated tool as root', new ToolNode(payment(true))],
  ['a workflow with a gated toolset', flow(agentOf('payer', [new Toolset()])), { 'pay*': true }],
  ['a function in a workflow, whatever the policy names', flow(fn()), BY_NAME],
  ['a node as tool', agentOf('root', [flow(payment())])],
  ['an AgentTool', nested([payment(), new Toolset()])],
  ['an AgentTool whose tool is freed', nested([payment(true)]), { pay: { required: false } }],
  ['a gated AgentTool', nested([payment()]), { inner: true }],
  ['a gated tool in an AgentTool', nested([payment(true)])],
  ['a tool with a check of its own in an AgentTool', nested([new Checked()])],
  ['a policy for a tool in an AgentTool', nested([payment()]), BY_NAME],
  ['terms for a tool in an AgentTool', nested([payment()]), { pay: { deadlineMs: 1_000 } }],
  ['a function for the tools in an AgentTool', nested([payment()]), ANY],
  [
    'a gated tool in an AgentTool of an AgentTool',
    nested([new AgentTool({ agent: nested([payment(true)]) })]),
  ],
  ['agents that use each other', cyclic()],
  ['agents without tools, with a policy that is a function', sequence([]), ANY],
  [
    'a gated tool in the last step',
    new SequentialAgent({
      name: 'steps',
      subAgents: [agentOf('a'), agentOf('b', [payment(true)])],
    }),
  ],
  [
    'a gated tool in parallel',
    new ParallelAgent({ name: 'both', subAgents: [agentOf('a'), agentOf('b', [payment(true)])] }),
  ],
  ['a gated tool beside a loop', besideLoop()],
])('[AP12] accepted: %s', async (_name, agent, approvals) => {
  await using bridge = createBridge({ agent, ...(approvals && { approvals }) })
  expect(bridge.handles('/stream')).toBe(true)
})

test.each<Case>([
  ['an own class', ownRun(Own, [payment(), new Toolset()])],
  ['an own class without sub-agents', new Own({ name: 'own' })],
  ['an own class without tools, with a policy that is a function', ownRun(Own, []), ANY],
  ['an own class whose tool is exempt', ownRun(Own, [payment(true)]), { '*': ANY, pay: false }],
  [
    'an own class whose toolset is exempt by its prefix',
    ownRun(Own, [new Toolset().withPrefix('files')]),
    { '*': ANY, 'files_*': false, 'github_issues_*': true },
  ],
  [
    'an own class beside a gated tool',
    new LlmAgent({
      name: 'front',
      model,
      tools: [payment(true)],
      subAgents: [ownRun(Own, [tool('mail', () => ({}))])],
    }),
  ],
  ['a subclass without a run of its own', new Named({ name: 'a', model, tools: [payment(true)] })],
  ['a router', routed(RoutedAgent, [payment(true)])],
  [
    'a subclass without a run of its own, with a browser tool',
    new Named({ name: 'a', model, tools: [locate] }),
  ],
  ['a sequence with a browser tool', sequence([locate])],
  [
    'an own class beside a browser tool',
    new LlmAgent({ name: 'front', model, tools: [locate], subAgents: [ownRun(Own, [])] }),
  ],
])('[AP1060] accepted: %s', async (_name, agent, approvals) => {
  await using bridge = createBridge({ agent, ...(approvals && { approvals }) })
  expect(bridge.handles('/stream')).toBe(true)
})

function fn() {
  return new FunctionNode('greet', () => 'Hello.')
}

function besideLoop() {
  return new LlmAgent({ name: 'front', model, tools: [payment(true)], subAgents: [loop([])] })
}

/** A model that calls the payment once; as an outer agent it calls the agent `inner` first. */
const payOnce: Responder = ({ systemInstruction, contents }) => {
  const isAnswered = contents.at(-1)?.parts?.some(({ functionResponse }) => functionResponse)
  const isLast = systemInstruction.includes('I am last')
  if (isAnswered === true || isLast) return [{ type: 'say', text: 'Done.' }]
  return [
    systemInstruction.includes('I am outer')
      ? { type: 'call', name: 'inner', args: { request: 'Pay.' } }
      : { type: 'call', name: 'pay', args: {} },
  ]
}

/** A payment that requests confirmation itself when it runs. */
function asking(runs: string[]): BaseTool {
  return tool('pay', (_args: unknown, context?: Context) => {
    if (context?.toolConfirmation) runs.push('paid')
    else context?.requestConfirmation({ hint: 'Pay?' })
    return { status: 'waiting' }
  })
}

function gatedToolset(runs: string[]): Toolset {
  const paid = () => {
    runs.push('paid')
    return {}
  }
  return new Toolset(payment(true, paid))
}

type Make = (model: BaseLlm, tools: NonNullable<Tools>) => BridgeOptions['agent']

const PLACES: readonly [name: string, make: Make][] = [
  [
    'a sequence with a run of its own',
    (llm, tools) =>
      new OwnSequence({
        name: 'steps',
        subAgents: [
          new LlmAgent({ name: 'payer', model: llm, tools }),
          new LlmAgent({ name: 'last', model: llm, instruction: 'I am last' }),
        ],
      }),
  ],
  [
    'an own class',
    (llm, tools) =>
      new Own({ name: 'own', subAgents: [new LlmAgent({ name: 'payer', model: llm, tools })] }),
  ],
  [
    'parallel steps with a run of its own',
    (llm, tools) =>
      new OwnParallel({
        name: 'own',
        subAgents: [new LlmAgent({ name: 'payer', model: llm, tools })],
      }),
  ],
  [
    'an LlmAgent with a run of its own',
    (llm, tools) => new OwnLlm({ name: 'payer', model: llm, tools }),
  ],
  [
    'an agent that an own class keeps to itself',
    (llm, tools) => {
      const payer = new LlmAgent({ name: 'payer', model: llm, tools })
      return new (class extends Own {
        protected override async *runAsyncImpl(context: InvocationContext) {
          yield* payer.runAsync(context)
        }
      })({ name: 'own' })
    },
  ],
  [
    'an own class in an AgentTool',
    (llm, tools) => {
      const inner = new Own({
        name: 'inner',
        subAgents: [new LlmAgent({ name: 'payer', model: llm, tools })],
      })
      const instruction = 'I am outer'
      return new LlmAgent({ name: 'root', model: llm, instruction, tools: [asTool(inner)] })
    },
  ],
  [
    'a workflow with an entry function',
    (llm, tools) =>
      new Workflow({
        name: 'flow',
        dynamicEntry: async (context, input) => {
          const payer = new LlmAgent({ name: 'payer', model: llm, tools })
          const { output } = await context.runNode(payer, input)
          return output
        },
      }),
  ],
  [
    'an agent that a function of a workflow runs',
    (llm, tools) => {
      const payer = new LlmAgent({ name: 'payer', model: llm, tools })
      const run = new FunctionNode('run', async (context, input) => {
        const { output } = await context.runNode(payer, input)
        return output
      })
      return new Workflow({ name: 'flow', edges: [['START', run]] })
    },
  ],
  [
    'an AgentTool in an own loop',
    (llm, tools) =>
      new OwnLoop({
        name: 'loop',
        maxIterations: 1,
        subAgents: [
          new LlmAgent({
            name: 'root',
            model: llm,
            instruction: 'I am outer',
            tools: [asTool(new LlmAgent({ name: 'inner', model: llm, tools }))],
          }),
        ],
      }),
  ],
]

describe.each([
  ['a gated tool of a toolset', gatedToolset],
  ['a tool that asks by itself', asking],
])('%s', (_name, makeTool) => {
  test.each(PLACES)(
    '[AP112] does not run, and requests no approval, in %s',
    async (place, make) => {
      const runs: string[] = []
      await using server = await serve({
        respond: payOnce,
        agent: (llm) => make(llm, [makeTool(runs)]),
      })
      const browser = server.browser()
      const { chunks } = readFrames(await (await browser.say('Pay.')).text())
      const [result] = chunks.filter(({ type }) => type.startsWith('tool-output'))
      // The agent inside an AgentTool receives an error instead.
      const isRefused = String(result?.['errorText']).startsWith(
        'Not run: this tool needs the approval',
      )
      expect(isRefused).toBe(!place.includes('AgentTool'))
      expect(chunks.at(-1)).toMatchObject({ type: 'finish', finishReason: 'stop' })
      expect(await (await browser.get('/approvals')).json()).toEqual({ approvals: [] })
      expect(server.errors.map(String).join()).toMatch(/needs (?:the )?approval/)
      expect(runs).toEqual([])
    },
  )
})

test('[AP711] a workflow waits for a tool that is a node and asks by itself', async () => {
  const runs: string[] = []
  await using server = await serve({
    agent: () =>
      new Workflow({
        name: 'flow',
        edges: [
          [
            'START',
            new FunctionNode('begin', () => ({})),
            asking(runs),
            new FunctionNode('tell', tell),
          ],
        ],
      }),
  })
  const answer = await (await server.browser().say('Pay.')).text()
  expect(answer).toContain('"type":"tool-approval-request"')
  expect(answer).not.toContain('It said')
  expect(runs).toEqual([])
})

function tell(_context: unknown, input: unknown): string {
  return `It said: ${JSON.stringify(input)}`
}
