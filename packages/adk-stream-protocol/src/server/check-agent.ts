import type { BaseAgent, BaseNode, BaseTool, LlmAgent, Workflow } from '@google/adk'
import {
  BaseTool as Tool,
  FunctionTool,
  JoinNode,
  NodeTool,
  ParallelWorker,
  RemoteA2AAgent,
  ToolNode,
  isAgentTool,
  isBaseAgent,
  isBaseTool,
  isBaseToolset,
  isFunctionTool,
  isLlmAgent,
  isLoopAgent,
  isParallelAgent,
  isRoutedAgent,
  isSequentialAgent,
  isWorkflow,
} from '@google/adk'

import type { ApprovalBlocker } from '../agent/adk-workarounds/can-wait.ts'
import { findApprovalBlocker, findOverriddenRun } from '../agent/adk-workarounds/can-wait.ts'
import { streamsArguments } from '../agent/adk-workarounds/model-call-ids.ts'
import { checkAgentCard } from '../agent/adk-workarounds/remote-agents.ts'
import { canNodeWait, listOwnNodes, readInner } from '../agent/adk-workarounds/workflow-nodes.ts'
import { INPUT_CALL } from '../agent/history/input-calls.ts'
import type { ApprovalPolicy } from '../approvals/policy.ts'
import { findByName, isAnyName, isPattern, matchesName, specificity } from '../approvals/policy.ts'
import { asBrowserTool } from '../calls/browser-tool.ts'
import { suggestName } from '../shared/suggest-name.ts'
import { refuseOtherCopy } from './adk-copies.ts'
import { UNNAMED_AGENT } from './chats/chat-agents.ts'
import type { BridgeSettings } from './options.ts'

/**
 * Throws if a tool needs approval where ADK 2.0.0 cannot pause for it (AP12), if a browser tool is there (AP1060), or if the policy has a name or pattern for which no
 * agent has a tool (AP111).
 * Returns a function that checks the tools of toolsets, which can only be listed asynchronously.
 */
export function checkAgents({
  agents,
  approvals: policy,
  appName,
  live,
}: Pick<BridgeSettings, 'agents' | 'approvals' | 'appName' | 'live'>): () => Promise<void> {
  const graphs = Array.from(agents, ([name, root]) => {
    const option = name === UNNAMED_AGENT ? 'agent' : `agents.${name}`
    return readAgentGraph(root, option, live !== undefined)
  })
  const graph = {
    tools: graphs.flatMap(({ tools }) => tools),
    toolsets: graphs.flatMap(({ toolsets }) => toolsets),
    remotes: graphs.flatMap(({ remotes }) => remotes),
    isOpaque: graphs.some(({ isOpaque }) => isOpaque),
  }
  if (graph.tools.some(({ name, tool }) => isAgentTool(tool) && name === appName))
    throw new TypeError(
      `createBridge: \`appName\` is ${appName}, which is also the name of an agent used as an AgentTool. ADK would store both in one session: choose another name.`,
    )
  const unknown = unknownNames(
    policy,
    graph.tools.map(({ name }) => name),
  ).filter((name) => !isRemoteName(name, graph.remotes))
  refuseTies(policy, graph.tools)
  for (const { name, tool, obstacle } of graph.tools)
    if (obstacle && mayNeedApproval(name, tool, policy))
      throw new TypeError(describe(obstacle, `the tool ${name}`, { policy, exempt: name }))
  refuseBrowserTools(graph.tools)
  for (const { prefix, obstacle } of graph.toolsets)
    if (obstacle && mayGateToolset(policy, unknown, prefix))
      throw new TypeError(
        describe(obstacle, 'a tool of a toolset', { policy, exempt: `'${prefix ?? 'prefix'}_*'` }),
      )
  if (unknown.length > 0 && !graph.isOpaque && graph.toolsets.length === 0)
    throw unknownTool(unknown, graph, [])
  return once(() => checkToolsets(graph, policy, unknown))
}

/** AP1060: throws if a browser tool is where an agent that overrides ADK's run methods may continue while the call waits. */
function refuseBrowserTools(tools: readonly FoundTool[]): void {
  for (const { name, tool, obstacle } of tools)
    if (obstacle?.kind === 'overridden-run' && tool && asBrowserTool(tool))
      throw new TypeError(
        `createBridge: the tool ${name} runs in the browser, ${reasonOf(obstacle)}`,
      )
}

/**
 * Whether a verdict that requires approval may be about a tool of a toolset. The verdict `false` for `files_*` exempts the toolset with
 * the prefix `files`, unless a more specific name may be that of one of its tools.
 */
function mayGateToolset(
  policy: ApprovalPolicy,
  unknown: readonly string[],
  prefix: string | undefined,
): boolean {
  if (typeof policy === 'function') return true
  const gated = Object.keys(policy).filter(
    (name) => gates(policy[name]) && (isPattern(name) || unknown.includes(name)),
  )
  const start = `${prefix}_`
  const isExempt = prefix !== undefined && findByName(policy, `${start}*`) === false
  if (!isExempt) return gated.length > 0
  return gated.some((name) => {
    const [head = ''] = name.split('*')
    if (!isPattern(name)) return name.startsWith(start)
    const mayMatch = head.startsWith(start) || start.startsWith(head)
    return mayMatch && specificity(name) >= specificity(start)
  })
}

/** Lists the toolsets if the policy names tools that only they can contain. Throws if they do not. */
async function checkToolsets(
  graph: AgentGraph,
  policy: ApprovalPolicy,
  unknown: readonly string[],
): Promise<void> {
  if (unknown.length === 0 || graph.isOpaque || graph.toolsets.length === 0) return
  const listed = (await Promise.all(graph.toolsets.map(({ listNames }) => listNames()))).flat()
  const missing = unknown.filter((name) => !listed.some((tool) => matchesName(name, tool)))
  if (missing.length > 0) throw unknownTool(missing, graph, listed)
  refuseTies(
    policy,
    listed.map((name) => ({ name })),
  )
}

/** Throws if two equally specific patterns match a tool. */
function refuseTies(policy: ApprovalPolicy, tools: readonly { readonly name: string }[]): void {
  if (typeof policy !== 'function') for (const { name } of tools) findByName(policy, name)
}

/** Returns a function that does the work until it has succeeded once. */
function once(work: () => Promise<void>): () => Promise<void> {
  let done = false
  return async () => {
    if (!done) await work()
    done = true
  }
}

/** Returns the names and patterns in a policy that match neither a known tool nor a tool of ADK. */
function unknownNames(policy: ApprovalPolicy, known: readonly string[]): string[] {
  if (typeof policy === 'function') return []
  return Object.keys(policy).filter(
    (name) =>
      !ADK_TOOLS.includes(name) &&
      !isAnyName(name) &&
      !known.some((tool) => matchesName(name, tool)),
  )
}

/** Whether a name is that of questions of a remote agent, or for its calls, which are known only when it asks for their approval. */
function isRemoteName(name: string, remotes: readonly string[]): boolean {
  if (name === INPUT_CALL) return remotes.length > 0
  return remotes.some((remote) => name.startsWith(`${remote}.`))
}

/** Tools that ADK adds to an agent by itself. */
const ADK_TOOLS = ['transfer_to_agent', 'set_model_response', 'finish_task']

function unknownTool(
  [name = '']: readonly string[],
  { tools }: AgentGraph,
  listed: readonly string[],
): TypeError {
  const names = [...tools.map((tool) => tool.name), ...listed]
  const what = isPattern(name)
    ? `has the pattern ${name}, which matches no tool of the agent.${suggestPattern(name, names)}`
    : `names the tool ${name}, which the agent does not have.${suggestName(name, names)}`
  return new TypeError(
    `createBridge: \`approvals\` ${what} A tool under another name would run without approval.`,
  )
}

/** Suggests the beginning of a tool's name that is most similar to the text before the first `*` and ends with the same character. */
function suggestPattern(pattern: string, names: readonly string[]): string {
  const head = pattern.slice(0, pattern.indexOf('*'))
  const starts = names.flatMap((name) =>
    Array.from(name, (_, index) => name.slice(0, index + 1)).filter((start) =>
      start.endsWith(head.slice(-1)),
    ),
  )
  return head === '' ? '' : suggestName(`${head}*`, new Set(starts.map((start) => `${start}*`)))
}

/** Whether a call of a tool may need approval. The policy overrides the tool. */
function mayNeedApproval(
  name: string,
  tool: BaseTool | undefined,
  policy: ApprovalPolicy,
): boolean {
  if (typeof policy === 'function') return true
  const named = findByName(policy, name)
  if (named !== undefined) return gates(named)
  return tool !== undefined && decidesByItself(tool)
}

function gates(verdict: Exclude<ApprovalPolicy, (...args: never) => unknown>[string] | undefined) {
  return typeof verdict === 'object' ? verdict.required !== false : verdict !== false
}

/** Whether a tool itself may ask for approval. A tool that overrides ADK's check may do so for any call. */
function decidesByItself(tool: BaseTool): boolean {
  const check: unknown = Reflect.get(tool, 'checkRequireConfirmation')
  if (isFunctionTool(tool) && check === FunctionTool.prototype.checkRequireConfirmation)
    return Reflect.get(tool, 'requireConfirmation') !== false
  return check !== Tool.prototype.checkRequireConfirmation
}

function describe(
  obstacle: ApprovalBlocker,
  what: string,
  { policy, exempt }: { readonly policy: ApprovalPolicy; readonly exempt: string },
): string {
  const isFunction = typeof policy === 'function'
  const needs = isFunction
    ? 'may need approval, because `approvals` is a function,'
    : 'needs approval,'
  const instead = isFunction
    ? ` Or exempt what needs no approval: \`approvals: { '*': yourFunction, ${exempt}: false }\`.`
    : ''
  return `createBridge: ${what} ${needs} ${reasonOf(obstacle)}${instead}`
}

function reasonOf(obstacle: ApprovalBlocker): string {
  switch (obstacle.kind) {
    case 'overridden-run':
      return `but the class of ${obstacle.agent} overrides ADK's run methods, so it may continue while a call waits. Give the tool to an agent that is not below ${obstacle.agent}. Or use a class of ADK and do not override \`runAsyncImpl\`, \`runLiveImpl\` or the like: a SequentialAgent, a Workflow, or an LlmAgent that transfers.`
    case 'live-steps':
      return `but in a live session the agent ${obstacle.agent} continues while ${obstacle.step} waits for an approval. Serve ${obstacle.agent} with a bridge without \`live\`, or let an LlmAgent transfer between the steps.`
    case 'nested-steps':
      return `but ${obstacle.agent} runs inside an AgentTool, and continues there while ${obstacle.step} waits for an approval. Make ${obstacle.agent} a sub-agent, or put ${obstacle.step} last.`
    case 'same-name':
      return `but two agents have the name ${obstacle.agent}, and a step is found by its name when it continues. Give each agent its own name.`
    case 'workflow':
      return `but the node ${obstacle.node} of a workflow cannot be resumed after an approval. Give the tool to an LlmAgent that is a node of its own, with a name that no other node has, in the workflow that is the agent of the bridge.`
    case 'node-sub-agent':
      return `but ${obstacle.agent} is below the node ${obstacle.node} of a workflow, where only an LlmAgent with a name of its own can be continued, in a node that is not in the mode \`task\`. Make ${obstacle.agent} a node of its own, or an AgentTool of ${obstacle.node}.`
    case 'node-tool':
      return `but ADK cannot resume ${obstacle.tool}, a node that is used as a tool, after an approval. Give the tool to an LlmAgent directly.`
  }
}

/** A tool of an agent, at any depth. */
interface FoundTool {
  readonly name: string
  /** Undefined for a node that ADK converts to a tool. */
  readonly tool: BaseTool | undefined
  readonly obstacle: ApprovalBlocker | undefined
}

interface FoundToolset {
  readonly prefix: string | undefined
  readonly listNames: () => Promise<string[]>
  readonly obstacle: ApprovalBlocker | undefined
}

/** All tools and toolsets that an agent may call. */
interface AgentGraph {
  readonly tools: readonly FoundTool[]
  readonly toolsets: readonly FoundToolset[]
  /** The names of the remote A2A agents. */
  readonly remotes: readonly string[]
  /** Whether a part, such as a function in a workflow, may run agents or tools that cannot be listed. */
  readonly isOpaque: boolean
}

/** A graph while it is read. */
interface GraphReading extends AgentGraph {
  /** The option that contains the agent. */
  readonly option: string
  readonly root: unknown
  readonly isLive: boolean
  readonly tools: FoundTool[]
  readonly toolsets: FoundToolset[]
  readonly remotes: string[]
  isOpaque: boolean
  /** The visited parts and the obstacles above them. Agents and workflows may contain each other. */
  readonly visited: Map<unknown, Set<string>>
  /** How many AgentTools the visited part is inside of. */
  nesting: number
}

/** Finds the tools of an agent at any depth: in sub-agents, workflows, and agents or nodes used as tools. */
function readAgentGraph(root: unknown, option: string, isLive: boolean): AgentGraph {
  const graph: GraphReading = {
    option,
    root,
    isLive,
    tools: [],
    toolsets: [],
    remotes: [],
    isOpaque: false,
    visited: new Map(),
    nesting: 0,
  }
  visit(graph, root)
  return graph
}

function visit(graph: GraphReading, part: unknown, obstacle?: ApprovalBlocker): void {
  refuseOtherCopy(part, graph.option)
  const seen = graph.visited.get(part) ?? new Set()
  const key = `${obstacle?.kind ?? ''} ${graph.nesting > 0}`
  if (seen.has(key)) return
  graph.visited.set(part, seen.add(key))
  if (isBaseAgent(part)) visitAgent(graph, part, obstacle)
  else if (isBaseTool(part)) visitTool(graph, part, obstacle)
  else if (isWorkflow(part)) visitWorkflow(graph, part, obstacle ?? findOverriddenRun(part))
  else if (part instanceof ToolNode) visit(graph, part.tool, obstacle ?? findOverriddenRun(part))
  else if (part instanceof ParallelWorker)
    visit(graph, readInner(part), obstacle ?? { kind: 'workflow', node: part.name })
  else if (!(part instanceof JoinNode)) graph.isOpaque = true
}

function visitWorkflow(graph: GraphReading, workflow: Workflow, obstacle?: ApprovalBlocker): void {
  // The nodes of an entry function are known only when it runs.
  if (!workflow.graph) graph.isOpaque = true
  for (const own of listOwnNodes(workflow)) {
    const node = readInner(own)
    const blocked = findNodeBlocker(own)
    if (obstacle || !isWorkflow(graph.root) || !canNodeWait(node, graph.root)) {
      // The nodes of a nested workflow may wait, and so may a tool.
      const mayWait = isWorkflow(own) || node instanceof ToolNode
      visit(graph, node, obstacle ?? (isWorkflow(graph.root) && mayWait ? undefined : blocked))
      continue
    }
    if (isLlmAgent(node)) visitNodeAgent(graph, node, own.name)
  }
}

/** Returns the reason why a node that cannot wait cannot. */
function findNodeBlocker(node: BaseNode): ApprovalBlocker {
  const isKnown = isBaseAgent(node) || node instanceof ParallelWorker
  return (isKnown ? findOverriddenRun(node) : undefined) ?? { kind: 'workflow', node: node.name }
}

/** Visits an agent that is a node, or to which a node transfers, and that can wait. */
function visitNodeAgent(graph: GraphReading, agent: LlmAgent, node: string): void {
  visitTools(graph, agent)
  for (const subAgent of agent.subAgents)
    if (isLlmAgent(subAgent) && canNodeWait(subAgent, graph.root))
      visitNodeAgent(graph, subAgent, node)
    else visit(graph, subAgent, { kind: 'node-sub-agent', node, agent: subAgent.name })
}

function visitAgent(graph: GraphReading, agent: BaseAgent, outer?: ApprovalBlocker): void {
  const obstacle = outer ?? findOverriddenRun(agent)
  if (isLlmAgent(agent)) visitTools(graph, agent, obstacle)
  else if (agent instanceof RemoteA2AAgent) {
    checkAgentCard(agent)
    graph.remotes.push(agent.name)
  } else if (!isKnownAgent(agent)) graph.isOpaque = true
  for (const subAgent of agent.subAgents)
    visit(
      graph,
      subAgent,
      obstacle ??
        findApprovalBlocker(agent, subAgent, { isLive: graph.isLive, isNested: graph.nesting > 0 }),
    )
}

function visitTools(graph: GraphReading, agent: LlmAgent, obstacle?: ApprovalBlocker): void {
  refuseSameNames(agent)
  refuseStreamedArguments(agent)
  for (const tool of agent.tools) visitToolUnion(graph, tool, obstacle)
}

/** AP1001: throws if an agent lets its model stream arguments in parts. */
function refuseStreamedArguments(agent: LlmAgent): void {
  if (streamsArguments(agent))
    throw new TypeError(
      `createBridge: the agent ${agent.name} sets \`streamFunctionCallArguments\`, but ADK cannot read arguments that are streamed in parts. Remove it from the \`toolConfig\` of the agent.`,
    )
}

/** ADK would fail at the first message. */
function refuseSameNames({ name: agent, tools }: LlmAgent): void {
  const names = tools.flatMap((tool) => (isBaseToolset(tool) ? [] : [readName(tool)]))
  const twice = names.find((name, index) => name !== '' && names.indexOf(name) !== index)
  if (twice !== undefined)
    throw new TypeError(
      `createBridge: the agent ${agent} has two tools with the name ${twice}. Give each tool its own name.`,
    )
}

function visitToolUnion(graph: GraphReading, tool: unknown, obstacle?: ApprovalBlocker): void {
  refuseOtherCopy(tool, graph.option)
  if (isBaseTool(tool)) visit(graph, tool, obstacle)
  else if (isBaseToolset(tool))
    graph.toolsets.push({
      prefix: tool.prefix,
      listNames: async () => (await tool.getTools()).map(({ name }) => name),
      obstacle,
    })
  else visitNodeTool(graph, { tool: undefined, node: tool }, obstacle)
}

function visitTool(graph: GraphReading, tool: BaseTool, obstacle?: ApprovalBlocker): void {
  // ADK declares the node private.
  if (tool instanceof NodeTool)
    return visitNodeTool(graph, { tool, node: Reflect.get(tool, 'node') }, obstacle)
  graph.tools.push({ name: tool.name, tool, obstacle })
  // ADK declares the agent private. It can wait wherever the call of the tool can.
  if (!isAgentTool(tool)) return
  graph.nesting += 1
  visit(graph, Reflect.get(tool, 'agent'), obstacle)
  graph.nesting -= 1
}

function visitNodeTool(
  graph: GraphReading,
  { tool, node }: { readonly tool: NodeTool | undefined; readonly node: unknown },
  outer?: ApprovalBlocker,
): void {
  const name = tool?.name ?? readName(node)
  const obstacle = outer ?? { kind: 'node-tool', tool: name }
  graph.tools.push({ name, tool, obstacle })
  visit(graph, node, obstacle)
}

function isKnownAgent(agent: BaseAgent): boolean {
  return [isSequentialAgent, isLoopAgent, isParallelAgent, isRoutedAgent].some((is) => is(agent))
}

function readName(node: unknown): string {
  const name: unknown = typeof node === 'object' && node !== null && Reflect.get(node, 'name')
  return typeof name === 'string' ? name : ''
}
