import { isAgentTool } from '@google/adk'

import type { AgentGraph } from '../agent/tree/agent-graph.ts'
import { mayCallUnlisted, mergeGraphs, readAgentGraph } from '../agent/tree/agent-graph.ts'
import type { ApprovalBlocker } from '../agent/tree/can-wait.ts'
import { reasonOf } from '../agent/tree/can-wait.ts'
import type { ApprovalPolicy } from '../approvals/policy.ts'
import { findByName, isAnyName, isPattern, matchesName, specificity } from '../approvals/policy.ts'
import { asClientTool } from '../calls/client-tool.ts'
import { explainApproval, gates } from '../calls/explain-approval.ts'
import { suggestName } from '../shared/suggest-name.ts'
import { UNNAMED_AGENT } from './chats/chat-agents.ts'
import type { BridgeSettings } from './options.ts'

/** The settings that decide which tools may need approval. */
export type CheckedSettings = Pick<BridgeSettings, 'agents' | 'approvals' | 'appName' | 'live'>

/** Throws if an agent has a problem. Returns a function that checks the tools of toolsets, which can only be listed asynchronously. */
export function checkAgents(settings: CheckedSettings): () => Promise<void> {
  const graph = readAgentGraphs(settings)
  const [problem] = findProblems(settings, graph)
  if (problem !== undefined) throw new TypeError(`createBridge: ${problem}`)
  const { approvals } = settings
  const unknown = listUnknown(approvals, graph)
  return once(() => checkToolsets(graph, approvals, unknown))
}

/** Finds the tools of all agents of a bridge. */
export function readAgentGraphs({ agents, live }: CheckedSettings): AgentGraph {
  const graphs = Array.from(agents, ([name, root]) => {
    const option = name === UNNAMED_AGENT ? 'agent' : `agents.${name}`
    return readAgentGraph(root, option, live !== undefined)
  })
  return mergeGraphs(graphs)
}

/**
 * Finds the tools that need approval where ADK 2.0.0 cannot pause for it (AP12), the browser tools that are there (AP1060), and the
 * names and patterns of the policy for which no agent has a tool (AP111).
 */
export function* findProblems(
  { approvals: policy, appName }: CheckedSettings,
  graph: AgentGraph,
): Generator<string> {
  if (graph.tools.some(({ name, tool }) => isAgentTool(tool) && name === appName))
    yield `\`appName\` is ${appName}, which is also the name of an agent used as an AgentTool. ADK would store both in one session: choose another name.`
  const unknown = listUnknown(policy, graph)
  refuseTies(policy, graph.tools)
  yield* findBlocked(policy, graph, unknown)
  if (unknown.length > 0 && !graph.isOpaque && graph.toolsets.length === 0)
    yield describeUnknown(unknown, graph, [])
}

/** Finds the tools that may have to wait where ADK cannot. */
function* findBlocked(
  policy: ApprovalPolicy,
  graph: AgentGraph,
  unknown: readonly string[],
): Generator<string> {
  for (const found of graph.tools)
    if (found.obstacle && explainApproval(found, policy).need !== 'never')
      yield describe(found.obstacle, `the tool ${found.name}`, { policy, exempt: found.name })
  for (const { name, tool, obstacle } of graph.tools)
    // AP1060: an agent that overrides ADK's run methods may continue while the call waits.
    if (obstacle?.kind === 'overridden-run' && tool && asClientTool(tool))
      yield `the tool ${name} runs in the browser, ${reasonOf(obstacle)}`
  for (const { toolset, obstacle } of graph.toolsets)
    if (obstacle && mayGateToolset(policy, unknown, toolset.prefix))
      yield describe(obstacle, 'a tool of a toolset', {
        policy,
        exempt: `'${toolset.prefix ?? 'prefix'}_*'`,
      })
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
  const tools = await Promise.all(graph.toolsets.map(({ toolset }) => toolset.getTools()))
  const listed = tools.flat().map(({ name }) => name)
  const missing = unknown.filter((name) => !listed.some((tool) => matchesName(name, tool)))
  if (missing.length > 0)
    throw new TypeError(`createBridge: ${describeUnknown(missing, graph, listed)}`)
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

/** Returns the names and patterns in a policy that match neither a known tool, nor a tool of ADK, nor calls that are known only when they are made. */
function listUnknown(policy: ApprovalPolicy, graph: AgentGraph): string[] {
  if (typeof policy === 'function') return []
  return Object.keys(policy).filter(
    (name) =>
      !ADK_TOOLS.includes(name) &&
      !isAnyName(name) &&
      !graph.tools.some((tool) => matchesName(name, tool.name)) &&
      !mayCallUnlisted(graph, name),
  )
}

/** Tools that ADK adds to an agent by itself. */
const ADK_TOOLS = ['transfer_to_agent', 'set_model_response', 'finish_task']

function describeUnknown(
  [name = '']: readonly string[],
  { tools }: AgentGraph,
  listed: readonly string[],
): string {
  const names = [...tools.map((tool) => tool.name), ...listed]
  const what = isPattern(name)
    ? `has the pattern ${name}, which matches no tool of the agent.${suggestPattern(name, names)}`
    : `names the tool ${name}, which the agent does not have.${suggestName(name, names)}`
  return `\`approvals\` ${what} A tool under another name would run without approval.`
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
  return `${what} ${needs} ${reasonOf(obstacle)}${instead}`
}
