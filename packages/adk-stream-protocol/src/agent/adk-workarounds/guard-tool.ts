import { AsyncLocalStorage } from 'node:async_hooks'
import { inspect } from 'node:util'

import type { BaseAgent, BaseTool, Context, SingleBeforeToolCallback } from '@google/adk'
import { isAgentTool, isBaseAgent, isLlmAgent } from '@google/adk'

import { returnsCaughtError } from '../call-responses.ts'
import type { ToolCall } from '../tool-call.ts'

/** Returns the error that the model may read instead of the one that a tool threw. */
type ReplaceError = (call: ToolCall, error: Error) => Error

const guarded = new WeakSet<BaseTool | BaseAgent>()

/** How to replace errors inside an agent that is used as a tool, by the context of its call. */
const replacements = new WeakMap<Context, ReplaceError>()

/** `args`: the arguments that the tool runs with, as an approver may have edited them. */
type WrapRun = (run: () => Promise<unknown>, args: ToolCall['toolArgs']) => Promise<unknown>

/** What to do around the run of a tool, by the context of its call and by who does it. */
const wrappers = new WeakMap<Context, Map<object, WrapRun>>()

/**
 * Runs `wrap` in place of a guarded tool. It receives the run of the tool, with the later wrappers around it, and may leave it out. The
 * callbacks of plugins and agents run as for any tool. A second wrapper of the same owner replaces the first one.
 */
export function wrapRun(toolContext: Context, owner: object, wrap: WrapRun): void {
  const known = wrappers.get(toolContext) ?? new Map<object, WrapRun>()
  wrappers.set(toolContext, known.set(owner, wrap))
}

/** Runs a call with everything that was put around it. */
async function runWrapped(
  { toolContext, toolArgs }: Omit<ToolCall, 'tool'>,
  run: () => Promise<unknown>,
): Promise<unknown> {
  const around = [...(wrappers.get(toolContext)?.values() ?? [])]
  return around.reduceRight<typeof run>((inner, wrap) => () => wrap(inner, toolArgs), run)()
}

/** Set while an agent runs that is used as a tool. */
const nested = new AsyncLocalStorage<ReplaceError>()

/**
 * Makes a tool throw `Error` objects only. If a tool throws anything else, ADK 2.0.0 calls no error callback: the
 * text would reach the page, and `throw undefined` would count as success. ADK takes the tool from the agent, so the
 * tool cannot be wrapped.
 */
export function guardTool(tool: BaseTool): void {
  if (guarded.has(tool)) return
  guarded.add(tool)
  const run = tool.runAsync.bind(tool)
  const value: BaseTool['runAsync'] = async (request) => {
    const { args: toolArgs, toolContext } = request
    const replace = nested.getStore()
    const inside = replacements.get(toolContext)
    try {
      const runTool = (): Promise<unknown> =>
        inside ? nested.run(inside, () => run(request)) : run(request)
      const result = await runWrapped({ toolContext, toolArgs }, runTool)
      if (!replace || !returnsCaughtError(tool, result)) return result
      throw new Error(JSON.stringify(result))
    } catch (thrown) {
      const error = toError(thrown)
      throw replace?.({ tool, toolArgs, toolContext }, error) ?? error
    }
  }
  Reflect.defineProperty(tool, 'runAsync', { value, configurable: true, writable: true })
}

/**
 * Replaces the errors of tools inside an agent that is used as a tool. ADK runs such an agent with a separate runner
 * without plugins, and would pass the error message to its model. Only a callback of the agent can intercept that
 * run.
 */
export function guardNested({ tool, toolContext }: ToolCall, replace: ReplaceError): void {
  if (!guardAgentOf(tool)) return
  replacements.set(toolContext, replace)
}

/** Guards the agent of an `AgentTool`. Returns false for any other tool. */
function guardAgentOf(tool: BaseTool): boolean {
  // ADK declares the agent private.
  const agent: unknown = isAgentTool(tool) && Reflect.get(tool, 'agent')
  if (!isBaseAgent(agent)) return false
  guardAgent(agent)
  return true
}

function guardAgent(agent: BaseAgent): void {
  if (guarded.has(agent)) return
  guarded.add(agent)
  if (isLlmAgent(agent)) {
    const callbacks = agent.canonicalBeforeToolCallbacks
    agent.beforeToolCallback = [guardNestedTool, ...callbacks]
  }
  for (const subAgent of agent.subAgents) guardAgent(subAgent)
}

// The tools of a toolset are known only when they are called.
const guardNestedTool: SingleBeforeToolCallback = ({ tool }) => {
  guardTool(tool)
  guardAgentOf(tool)
  return undefined
}

/** Returns a thrown value as an `Error`. JavaScript can throw any value. */
export function toError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown
  const message = typeof thrown === 'string' ? thrown : inspect(thrown, { depth: 2 })
  return new Error(message, { cause: thrown })
}
