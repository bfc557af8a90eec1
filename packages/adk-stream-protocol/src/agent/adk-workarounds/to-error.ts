import { inspect } from 'node:util'

import type { BaseTool } from '@google/adk'

/** What was thrown, as an error. JavaScript may throw anything. */
export function toError(thrown: unknown): Error {
  if (thrown instanceof Error) return thrown
  const message = typeof thrown === 'string' ? thrown : inspect(thrown, { depth: 2 })
  return new Error(message, { cause: thrown })
}

const guarded = new WeakSet<BaseTool>()

/**
 * Makes a tool throw errors only. For anything else that is thrown, ADK 2.0.0 calls no error callback: the words would reach the page,
 * and `throw undefined` would be a success. ADK takes the tool from the agent, so that there is no place for a wrapper.
 */
export function throwErrorsOnly(tool: BaseTool): void {
  if (guarded.has(tool)) return
  guarded.add(tool)
  const run = tool.runAsync.bind(tool)
  const value: BaseTool['runAsync'] = async (request) => {
    try {
      return await run(request)
    } catch (thrown) {
      throw toError(thrown)
    }
  }
  Reflect.defineProperty(tool, 'runAsync', { value, configurable: true, writable: true })
}
