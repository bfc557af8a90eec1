import type { BaseTool, Context, Event, InvocationContext, PluginManager } from '@google/adk'
import type { Content } from '@google/genai'

import { APPROVAL_UNAVAILABLE } from '../agent/call-responses.ts'
import type { TermsOptions } from '../calls/call-terms.ts'
import { QuietPlugin } from '../agent/adk-workarounds/plugin-callbacks.ts'
import { checkCall } from '../calls/call-terms.ts'
import { isLiveTool } from './live-tool.ts'

export interface LivePluginOptions {
  /** The plugins that the host passed to `createBridge`. */
  readonly hostPlugins: PluginManager
  /** Decides which calls need approval. */
  readonly terms: TermsOptions
  /** Called before the model connects. */
  readonly onRun: (context: InvocationContext) => void
  /** Converts an event before ADK stores and yields it. */
  readonly prepare: (event: Event) => Promise<Event>
}

interface ToolParams {
  readonly tool: BaseTool
  readonly toolArgs: Record<string, unknown>
  readonly toolContext: Context
}

/**
 * The only plugin that ADK knows in a live run. It calls the host's plugins: for everything except the moment when ADK hands a call over.
 * `runLiveCall` calls their tool callbacks when the tool runs.
 */
export class LivePlugin extends QuietPlugin {
  readonly #options: LivePluginOptions

  constructor(options: LivePluginOptions) {
    super('adk-stream-protocol:live')
    this.#options = options
  }

  override async beforeRunCallback(params: {
    invocationContext: InvocationContext
  }): Promise<Content | undefined> {
    this.#options.onRun(params.invocationContext)
    return this.#options.hostPlugins.runBeforeRunCallback(params)
  }

  override async beforeToolSelection(params: {
    callbackContext: Context
    tools: Readonly<Record<string, BaseTool>>
  }): Promise<Readonly<Record<string, BaseTool>> | undefined> {
    return this.#options.hostPlugins.runBeforeToolSelection(params)
  }

  override async afterRunCallback(params: { invocationContext: InvocationContext }): Promise<void> {
    await this.#options.hostPlugins.runAfterRunCallback(params)
  }

  override async onEventCallback(params: {
    invocationContext: InvocationContext
    event: Event
  }): Promise<Event> {
    const { hostPlugins, prepare } = this.#options
    const changed = hostPlugins.hasPlugins
      ? await hostPlugins.runOnEventCallback(params)
      : undefined
    return prepare(changed ?? params.event)
  }

  override async beforeToolCallback(
    params: ToolParams,
  ): Promise<Record<string, unknown> | undefined> {
    if (isLiveTool(params.tool)) return undefined
    // ADK runs this tool itself, so it cannot wait for an approval.
    const check = await checkCall(params, this.#options.terms)
    if (check.verdict !== 'run')
      return check.verdict === 'refuse' ? check.response : APPROVAL_UNAVAILABLE
    return this.#options.hostPlugins.runBeforeToolCallback(params)
  }

  override async afterToolCallback(
    params: ToolParams & { readonly result: Record<string, unknown> },
  ): Promise<Record<string, unknown> | undefined> {
    return isLiveTool(params.tool)
      ? undefined
      : this.#options.hostPlugins.runAfterToolCallback(params)
  }

  override async onToolErrorCallback(
    params: ToolParams & { readonly error: Error },
  ): Promise<Record<string, unknown> | undefined> {
    return this.#options.hostPlugins.runOnToolErrorCallback(params)
  }
}
