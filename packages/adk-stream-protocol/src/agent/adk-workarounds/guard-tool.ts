import { AsyncLocalStorage } from 'node:async_hooks'
import { inspect } from 'node:util'

import type { BaseTool, Context } from '@google/adk'

import { returnsCaughtError } from '../call-responses.ts'
import type { ToolCall } from '../tool-call.ts'

/** Returns the error that the model may read instead of the one that a tool threw. */
export type ReplaceError = (call: ToolCall, error: Error) => Error

const guarded = new WeakSet<BaseTool>()

/** How to replace the errors of tools that run inside a call, by the context of the call. */
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

/** Set while a call runs whose inner errors are replaced. */
const replacing = new AsyncLocalStorage<ReplaceError>()

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
    const replace = replacing.getStore()
    const inside = replacements.get(toolContext)
    try {
      const runTool = (): Promise<unknown> =>
        inside ? replacing.run(inside, () => run(request)) : run(request)
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

/** Replaces the errors of the tools that run inside a call, as far as they are guarded. */
export function replaceErrorsInside(toolContext: Context, replace: ReplaceError): void {
  replacements.set(toolContext, replace)
}

/** Returns a thrown value as an `Error`. JavaScript can throw any value. */
export function toError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown
  const message = typeof thrown === 'string' ? thrown : inspect(thrown, { depth: 2 })
  return new Error(message, { cause: thrown })
}
