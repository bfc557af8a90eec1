import type { Context } from '@google/adk'

import { guardNested, guardTool } from '../agent/adk-workarounds/guard-tool.ts'
import { QuietPlugin } from '../agent/adk-workarounds/quiet-plugin.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import {
  describeToolError,
  returnsCaughtError,
  ApprovalUnavailableError,
} from '../agent/tool-failure.ts'

export interface ToolErrorsOptions {
  /** Whether the model is told the words of an error that a tool threw. */
  readonly exposeErrors: boolean
  /** Gets each call that this answered for. */
  readonly onFailure?: (call: ToolCall) => void
  /** Gets the errors that a tool caught itself, and that ADK reports nowhere. */
  readonly onError?: (error: unknown) => void
  /** Gets the errors that a tool threw inside an agent that is used as a tool. ADK reports them nowhere. */
  readonly onNestedError: (error: unknown) => void
}

/** The last plugin of a run: answers for a tool that threw, unless a plugin of the host has. */
export class ToolErrors extends QuietPlugin {
  readonly #options: ToolErrorsOptions
  readonly #responded = new WeakSet<Context>()

  constructor(options: ToolErrorsOptions) {
    super('adk-stream-protocol:tool-errors')
    this.#options = options
  }

  /** Whether the response of a call came from here, and is not for clients. */
  hasResponded(toolContext: Context): boolean {
    return this.#responded.has(toolContext)
  }

  /** To be called before a tool runs: what it throws is then such that this can answer for it. */
  guard(call: ToolCall): void {
    guardTool(call.tool)
    if (!this.#options.exposeErrors) guardNested(call, (inner, error) => this.#hide(inner, error))
  }

  /** What the model is told of a call that failed. */
  respond(call: ToolCall, error: unknown): Record<string, unknown> {
    const { exposeErrors, onFailure } = this.#options
    if (exposeErrors) this.#responded.add(call.toolContext)
    if (exposeErrors) onFailure?.(call)
    return describeToolError(call, error, exposeErrors)
  }

  /** The same for a tool that returned the words of an error. */
  respondToCaught(call: ToolCall, error: Error): Record<string, unknown> {
    this.#options.onError?.(error)
    return this.respond(call, error)
  }

  #hide(call: ToolCall, error: Error): Error {
    // The words of this error are ours.
    if (error instanceof ApprovalUnavailableError) return error
    this.#options.onNestedError(error)
    return new Error(String(describeToolError(call, error, false)['error']), { cause: error })
  }

  override async onToolErrorCallback(
    call: ToolCall & { readonly error: Error },
  ): Promise<Record<string, unknown>> {
    return this.respond(call, call.error)
  }

  override async afterToolCallback(
    call: ToolCall & { readonly result: Record<string, unknown> | null | undefined },
  ): Promise<Record<string, unknown> | undefined> {
    const { tool, result } = call
    if (!returnsCaughtError(tool, result)) return undefined
    return this.respondToCaught(call, new Error(String(result?.['error'])))
  }
}
