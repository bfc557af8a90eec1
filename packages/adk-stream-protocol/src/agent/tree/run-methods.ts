import type { BaseAgent, BaseNode } from '@google/adk'
import {
  isBaseAgent,
  LlmAgent,
  LoopAgent,
  ParallelAgent,
  ParallelWorker,
  RemoteA2AAgent,
  RoutedAgent,
  SequentialAgent,
  ToolNode,
  Workflow,
} from '@google/adk'

// oxlint-disable typescript/no-deprecated -- Some of these agents are deprecated in favour of Workflow, and in use.
/** The classes of ADK whose runs the bridge can end at a call that waits, and resume. A subclass has the class of its parent. */
const KNOWN_CLASSES = [
  LlmAgent,
  SequentialAgent,
  LoopAgent,
  ParallelAgent,
  RoutedAgent,
  RemoteA2AAgent,
  Workflow,
  ToolNode,
  ParallelWorker,
]
// oxlint-enable typescript/no-deprecated

/** The methods that run an agent or a node. */
const RUN_METHODS = [
  'run',
  'runImpl',
  'runAsync',
  'runAsyncImpl',
  'runLive',
  'runLiveImpl',
] as const

/** The original methods, by the functions that replace them in runs of the bridge. */
const originals = new WeakMap<object, unknown>()

/**
 * Whether an agent or a node runs as its class of ADK does. A class that overrides ADK's run methods may do anything after a call that
 * waits, and only that class knows how to continue.
 */
export function runsAsAdk(part: BaseNode): boolean {
  const Known = KNOWN_CLASSES.find((known) => part instanceof known)
  if (!Known) return false
  return RUN_METHODS.every((name) => {
    const method: unknown = Reflect.get(part, name)
    const original = typeof method === 'function' ? (originals.get(method) ?? method) : method
    return original === Reflect.get(Known.prototype, name)
  })
}

/** Throws if ADK cannot run an agent live. `name` is that of the agent among several agents of a bridge, or empty. */
export function assertRunsLive(name: string, agent: object): asserts agent is BaseAgent {
  if (!isBaseAgent(agent))
    throw new TypeError(
      `createBridge: \`live\` needs an agent${name === '' ? '' : `, and ${name} is a workflow`}. ADK cannot run workflows live.`,
    )
  if (agent instanceof RemoteA2AAgent)
    throw new TypeError(
      `createBridge: \`live\` needs a local agent, and ${agent.name} is a remote one, which ADK cannot run live. Leave out \`live\`, or use it as a tool: new AgentTool({ agent }).`,
    )
}

/** Replaces a method that runs an agent or a node. Does nothing if it was replaced before. */
export function replaceRunMethod<Run extends (...args: never) => unknown>(
  part: BaseNode,
  name: (typeof RUN_METHODS)[number],
  replace: (original: Run) => Run,
): void {
  // ADK declares most of these methods protected. The caller knows the signature.
  const original = Reflect.get(part, name) as Run
  if (originals.has(original)) return
  const value = replace(original)
  originals.set(value, original)
  Reflect.defineProperty(part, name, { value, configurable: true, writable: true })
}
