import type { BaseAgent, BaseNode, BaseTool, BaseToolset, LlmAgent, Workflow } from '@google/adk'
import {
  JoinNode,
  NodeTool,
  ParallelWorker,
  RemoteA2AAgent,
  ToolNode,
  isAgentTool,
  isBaseAgent,
  isBaseTool,
  isBaseToolset,
  isLlmAgent,
  isLoopAgent,
  isParallelAgent,
  isRoutedAgent,
  isSequentialAgent,
  isWorkflow,
} from '@google/adk'

import type { ApprovalBlocker } from './can-wait.ts'
import { findApprovalBlocker, findOverriddenRun } from './can-wait.ts'
import { streamsArguments } from '../adk-workarounds/model-call-ids.ts'
import { checkAgentCard } from './remote-agents.ts'
import { canNodeWait, listOwnNodes, readInner } from './workflow-nodes.ts'
import { INPUT_CALL } from '../events/input-names.ts'
import { refuseOtherCopy } from './adk-copies.ts'

/** A tool of an agent, at any depth. */
export interface FoundTool {
  readonly name: string
  /** The name of the agent that has the tool. Undefined for a tool that is a node of a workflow. */
  readonly agent: string | undefined
  /** Undefined for a node that ADK converts to a tool. */
  readonly tool: BaseTool | undefined
  readonly obstacle: ApprovalBlocker | undefined
}

export interface FoundToolset {
  readonly toolset: BaseToolset
  readonly agent: string | undefined
  readonly obstacle: ApprovalBlocker | undefined
}

/** All tools and toolsets that an agent may call. */
export interface AgentGraph {
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
  /** The agent whose tools are visited. */
  owner: string | undefined
}

/** Finds the tools of an agent at any depth: in sub-agents, workflows, and agents or nodes used as tools. */
export function readAgentGraph(root: unknown, option: string, isLive: boolean): AgentGraph {
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
    owner: undefined,
  }
  visit(graph, root)
  return graph
}

/** Returns the graphs of several agents as one. */
export function mergeGraphs(graphs: readonly AgentGraph[]): AgentGraph {
  return {
    tools: graphs.flatMap(({ tools }) => tools),
    toolsets: graphs.flatMap(({ toolsets }) => toolsets),
    remotes: graphs.flatMap(({ remotes }) => remotes),
    isOpaque: graphs.some(({ isOpaque }) => isOpaque),
  }
}

/** Whether a name is that of questions of a remote agent, or for its calls, which are known only when it asks for their approval. */
export function mayCallUnlisted({ remotes }: AgentGraph, name: string): boolean {
  if (name === INPUT_CALL) return remotes.length > 0
  return remotes.some((remote) => name.startsWith(`${remote}.`))
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
  const outer = graph.owner
  graph.owner = agent.name
  for (const tool of agent.tools) visitToolUnion(graph, tool, obstacle)
  graph.owner = outer
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
  else if (isBaseToolset(tool)) graph.toolsets.push({ toolset: tool, agent: graph.owner, obstacle })
  else visitNodeTool(graph, { tool: undefined, node: tool }, obstacle)
}

function visitTool(graph: GraphReading, tool: BaseTool, obstacle?: ApprovalBlocker): void {
  // ADK declares the node private.
  if (tool instanceof NodeTool)
    return visitNodeTool(graph, { tool, node: Reflect.get(tool, 'node') }, obstacle)
  graph.tools.push({ name: tool.name, agent: graph.owner, tool, obstacle })
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
  graph.tools.push({ name, agent: graph.owner, tool, obstacle })
  visit(graph, node, obstacle)
}

function isKnownAgent(agent: BaseAgent): boolean {
  return [isSequentialAgent, isLoopAgent, isParallelAgent, isRoutedAgent].some((is) => is(agent))
}

function readName(node: unknown): string {
  const name: unknown = typeof node === 'object' && node !== null && Reflect.get(node, 'name')
  return typeof name === 'string' ? name : ''
}
