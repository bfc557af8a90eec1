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
/** Subclasses that override a run method. */
class CustomLoop extends LoopAgent {
  protected override runAsyncImpl(context: InvocationContext) {
    return super.runAsyncImpl(context)
  }
}
class CustomSequence extends SequentialAgent {
  protected override runAsyncImpl(context: InvocationContext) {
    return super.runAsyncImpl(context)
  }
}
class CustomParallel extends ParallelAgent {
  protected override runAsyncImpl(context: InvocationContext) {
    return super.runAsyncImpl(context)
  }
}
class CustomRouted extends RoutedAgent {
  override runAsync(context: InvocationContext) {
    return super.runAsync(context)
  }
}
/** An agent that runs its sub-agents one after the other, as ADK's guide to custom agents shows. */
class Custom extends Base {
  protected override async *runAsyncImpl(context: InvocationContext): AsyncGenerator<Event, void> {
    for (const subAgent of this.subAgents) yield* subAgent.runAsync(context)
  }

  // oxlint-disable-next-line require-yield -- It does not talk.
  protected override async *runLiveImpl(): AsyncGenerator<Event, void> {
    throw new Error('not supported')
  }
}
class CustomLlm extends LlmAgent {
  protected override runAsyncImpl(context: InvocationContext) {
    return super.runAsyncImpl(context)
  }
}
class CustomLive extends LlmAgent {
  protected override runLiveImpl(context: InvocationContext) {
    return super.runLiveImpl(context)
  }
}
/** A class of the application that runs as ADK's. */
class Named extends LlmAgent {
  readonly label = 'Payments'
}
class CustomFlow extends Workflow {
  protected override runImpl(...args: Parameters<Workflow['runImpl']>) {
    return super.runImpl(...args)
  }
}
class CustomToolNode extends ToolNode {
  protected override runImpl(...args: Parameters<ToolNode['runImpl']>) {
    return super.runImpl(...args)
  }
}
function changed(tools: Tools): LlmAgent {
  const agent = agentOf('payer', tools)
  Reflect.set(agent, 'runAsyncImpl', async function* runNothing() {})
  return agent
}
type CustomClass = typeof CustomLoop | typeof CustomSequence | typeof CustomParallel | typeof Custom
const customAgent = (Class: CustomClass, tools: Tools) =>
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
  ['a loop that overrides the run', customAgent(CustomLoop, [payment(true)])],
  ['a loop that overrides the run, by a policy', customAgent(CustomLoop, [payment()]), BY_NAME],
  ['a sequence that overrides the run', customAgent(CustomSequence, [payment(true)])],
  [
    'a sequence that overrides the run, by a function',
    customAgent(CustomSequence, [payment()]),
    ANY,
  ],
  ['such a sequence with a toolset', customAgent(CustomSequence, [new Toolset()]), BY_NAME],
  ['a node as tool with a gated tool inside', agentOf('root', [flow(payment(true))])],
  ['a NodeTool with a gated agent', agentOf('root', [new NodeTool(flow(loop([payment(true)])))])],
  ['a gated NodeTool', agentOf('root', [new NodeTool(flow(payment()))]), { flow: true }],
  ['a gated node as tool', agentOf('root', [flow(agentOf('inner'))]), { flow: true }],
  [
    'a gated tool in an AgentTool in a custom loop',
    customAgent(CustomLoop, [agentTool([payment(true)])]),
  ],
  [
    'a checked tool in an AgentTool in a custom loop',
    customAgent(CustomLoop, [agentTool([new Checked()])]),
  ],
  [
    'a policy for a tool in an AgentTool in a custom sequence',
    customAgent(CustomSequence, [agentTool([payment()])]),
    BY_NAME,
  ],
  ['a gated tool in a loop in an AgentTool', agentOf('root', [asTool(loop([payment(true)]))])],
])('[AP12] refused: %s', (_name, agent, approvals) => {
  const create = () => createBridge({ agent, ...(approvals && { approvals }) })
  expect(create).toThrow(TypeError)
  expect(create).toThrow(/needs? approval/)
})

test.each<Case>([
  ['parallel steps that override the run', customAgent(CustomParallel, [payment(true)])],
  ['a router that overrides the run', routed(CustomRouted, [payment(true)])],
  ['a custom class', customAgent(Custom, [payment(true)])],
  ['a custom class, by a policy', customAgent(Custom, [payment()]), BY_NAME],
  ['a custom class, by a function', customAgent(Custom, [payment()]), ANY],
  ['a custom class, by a function for a pattern', customAgent(Custom, [payment()]), { '*': ANY }],
  ['a custom class with a checked tool', customAgent(Custom, [new Checked()])],
  ['a custom class with a toolset', customAgent(Custom, [new Toolset()]), { 'pay*': true }],
  ['a custom class with a toolset, by a function', customAgent(Custom, [new Toolset()]), ANY],
  [
    'a custom class with a toolset whose prefix is not exempt from all patterns',
    customAgent(Custom, [new Toolset().withPrefix('files')]),
    { 'files_*': false, 'files_del*': true },
  ],
  [
    'a custom class with a toolset of which a tool is named',
    customAgent(Custom, [new Toolset().withPrefix('files')]),
    { 'files_*': false, files_delete: true },
  ],
  ['a custom class, two levels above', customAgent(Custom, [asTool(sequence([payment(true)]))])],
  [
    'a custom class in an AgentTool',
    agentOf('root', [asTool(customAgent(Custom, [payment(true)]))]),
  ],
  [
    'a custom class in a sequence',
    new SequentialAgent({ name: 'steps', subAgents: [customAgent(Custom, [payment(true)])] }),
  ],
  [
    'an LlmAgent that overrides the run',
    new CustomLlm({ name: 'a', model, tools: [payment(true)] }),
  ],
  [
    'an agent below an LlmAgent that overrides the run',
    new CustomLlm({ name: 'a', model, subAgents: [agentOf('b', [payment(true)])] }),
  ],
  [
    'an LlmAgent that overrides the live run',
    new CustomLive({ name: 'a', model, tools: [payment(true)] }),
  ],
  ['an LlmAgent whose run was replaced', changed([payment(true)])],
  [
    'a node that overrides the run',
    flow(new CustomLlm({ name: 'a', model, tools: [payment(true)] })),
  ],
  ['a custom class as a node', flow(customAgent(Custom, [payment(true)]))],
  ['a tool node that overrides the run', flow(new CustomToolNode(payment(true)))],
  [
    'a workflow that overrides the run',
    new CustomFlow({ name: 'flow', edges: [['START', agentOf('payer', [payment(true)])]] }),
  ],
])('[AP1060] refused: %s', (_name, agent, approvals) => {
  const create = () => createBridge({ agent, ...(approvals && { approvals }) })
  expect(create).toThrow(/needs? approval.* overrides ADK's run methods/)
})

/** A tool that needs no approval and waits for the page. */
const locate = browserTool({ name: 'locate', description: 'Locates.', parameters: z.object({}) })

test.each<Case>([
  ['a custom class', customAgent(Custom, [locate])],
  [
    'a custom class, by a policy that exempts it from approvals',
    customAgent(Custom, [locate]),
    ANY_BUT,
  ],
  ['a sequence that overrides the run', customAgent(CustomSequence, [payment(), locate])],
  ['an LlmAgent that overrides the run', new CustomLlm({ name: 'a', model, tools: [locate] })],
  ['an AgentTool in a custom class', customAgent(Custom, [agentTool([locate])])],
  ['a custom class in an AgentTool', agentOf('root', [asTool(customAgent(Custom, [locate]))])],
  ['a custom class as a node', flow(customAgent(Custom, [locate]))],
])('[AP1060] refused with a browser tool: %s', (_name, agent, approvals) => {
  const create = () => createBridge({ agent, ...(approvals && { approvals }) })
  expect(create).toThrow(/the tool locate runs in the browser, .* overrides ADK's run methods/)
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
  ['a custom class', customAgent(Custom, [payment(), new Toolset()])],
  ['a custom class without sub-agents', new Custom({ name: 'own' })],
  ['a custom class without tools, with a policy that is a function', customAgent(Custom, []), ANY],
  [
    'a custom class whose tool is exempt',
    customAgent(Custom, [payment(true)]),
    { '*': ANY, pay: false },
  ],
  [
    'a custom class whose toolset is exempt by its prefix',
    customAgent(Custom, [new Toolset().withPrefix('files')]),
    { '*': ANY, 'files_*': false, 'github_issues_*': true },
  ],
  [
    'a custom class beside a gated tool',
    new LlmAgent({
      name: 'front',
      model,
      tools: [payment(true)],
      subAgents: [customAgent(Custom, [tool('mail', () => ({}))])],
    }),
  ],
  [
    'a subclass that does not override the run',
    new Named({ name: 'a', model, tools: [payment(true)] }),
  ],
  ['a router', routed(RoutedAgent, [payment(true)])],
  [
    'a subclass that does not override the run, with a browser tool',
    new Named({ name: 'a', model, tools: [locate] }),
  ],
  ['a sequence with a browser tool', sequence([locate])],
  [
    'a custom class beside a browser tool',
    new LlmAgent({ name: 'front', model, tools: [locate], subAgents: [customAgent(Custom, [])] }),
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
    'a sequence that overrides the run',
    (llm, tools) =>
      new CustomSequence({
        name: 'steps',
        subAgents: [
          new LlmAgent({ name: 'payer', model: llm, tools }),
          new LlmAgent({ name: 'last', model: llm, instruction: 'I am last' }),
        ],
      }),
  ],
  [
    'a custom class',
    (llm, tools) =>
      new Custom({ name: 'own', subAgents: [new LlmAgent({ name: 'payer', model: llm, tools })] }),
  ],
  [
    'parallel steps that override the run',
    (llm, tools) =>
      new CustomParallel({
        name: 'own',
        subAgents: [new LlmAgent({ name: 'payer', model: llm, tools })],
      }),
  ],
  [
    'an LlmAgent that overrides the run',
    (llm, tools) => new CustomLlm({ name: 'payer', model: llm, tools }),
  ],
  [
    'an agent that a custom class keeps to itself',
    (llm, tools) => {
      const payer = new LlmAgent({ name: 'payer', model: llm, tools })
      return new (class extends Custom {
        protected override async *runAsyncImpl(context: InvocationContext) {
          yield* payer.runAsync(context)
        }
      })({ name: 'own' })
    },
  ],
  [
    'a custom class in an AgentTool',
    (llm, tools) => {
      const inner = new Custom({
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
    'an AgentTool in a custom loop',
    (llm, tools) =>
      new CustomLoop({
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
