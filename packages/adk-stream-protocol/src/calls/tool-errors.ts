import type { Context } from '@google/adk'

import { guardNested, guardTool } from '../agent/adk-workarounds/guard-tool.ts'
import { QuietPlugin } from '../agent/adk-workarounds/plugin-callbacks.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import {
  describeToolError,
  returnsCaughtError,
  ApprovalUnavailableError,
} from '../agent/call-responses.ts'

export interface ToolErrorsOptions {
  /** Whether the model may read the message of an error that a tool threw. */
  readonly exposeErrors: boolean
  /** Receives each call that this plugin responded for. */
  readonly onFailure?: (call: ToolCall) => void
  /** Receives errors that a tool caught itself. ADK does not report them. */
  readonly onError?: (error: unknown) => void
  /** Receives errors that tools threw inside an agent that is used as a tool. ADK does not report them. */
  readonly onNestedError: (error: unknown) => void
}

/** The last plugin of a run. Responds for a tool that threw, unless a plugin of the host did. */
export class ToolErrors extends QuietPlugin {
  readonly #options: ToolErrorsOptions
  readonly #responded = new WeakSet<Context>()

  constructor(options: ToolErrorsOptions) {
    super('adk-stream-protocol:tool-errors')
    this.#options = options
  }

  /** Whether this plugin made the response of a call, so that clients may not see it. */
  hasResponded(toolContext: Context): boolean {
    return this.#responded.has(toolContext)
  }

  /** Call this before a tool runs, so that this plugin sees everything that the tool throws. */
  guard(call: ToolCall): void {
    guardTool(call.tool)
    if (!this.#options.exposeErrors) guardNested(call, (inner, error) => this.#hide(inner, error))
  }

  /** Returns the response for the model to a failed call. */
  respond(call: ToolCall, error: unknown): Record<string, unknown> {
    const { exposeErrors, onFailure } = this.#options
    if (exposeErrors) this.#responded.add(call.toolContext)
    if (exposeErrors) onFailure?.(call)
    return describeToolError(call, error, exposeErrors)
  }

  /** Like `respond`, for a tool that returned an error message. */
  respondToCaught(call: ToolCall, error: Error): Record<string, unknown> {
    this.#options.onError?.(error)
    return this.respond(call, error)
  }

  #hide(call: ToolCall, error: Error): Error {
    // This message is our own.
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
