import type { BaseTool, Context, Event, InvocationContext, PluginManager } from '@google/adk'
import type { Content } from '@google/genai'

import { UNASKABLE } from '../adk/approval-answers.ts'
import type { TermsOptions } from '../adk/call-terms.ts'
import { QuietPlugin } from '../adk/quiet-plugin.ts'
import { checkCall } from '../adk/call-terms.ts'
import { isHandover } from './live-tool.ts'

export interface LivePluginOptions {
  /** The host's plugins. */
  readonly hosted: PluginManager
  /** On which terms calls need approval. */
  readonly terms: TermsOptions
  /** Hears of the run before the model is connected. */
  readonly onRun: (context: InvocationContext) => void
  /** Makes an event ready to be stored and told. */
  readonly prepare: (event: Event) => Promise<Event>
}

interface ToolParams {
  readonly tool: BaseTool
  readonly toolArgs: Record<string, unknown>
  readonly toolContext: Context
}

/**
 * The only plugin of a live run. Those of the host stand behind it: they hear of everything but the handing over of calls, and of a
 * tool when it really runs.
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
    return this.#options.hosted.runBeforeRunCallback(params)
  }

  override async beforeToolSelection(params: {
    callbackContext: Context
    tools: Readonly<Record<string, BaseTool>>
  }): Promise<Readonly<Record<string, BaseTool>> | undefined> {
    return this.#options.hosted.runBeforeToolSelection(params)
  }

  override async afterRunCallback(params: { invocationContext: InvocationContext }): Promise<void> {
    await this.#options.hosted.runAfterRunCallback(params)
  }

  override async onEventCallback(params: {
    invocationContext: InvocationContext
    event: Event
  }): Promise<Event> {
    const { hosted, prepare } = this.#options
    const changed = hosted.hasPlugins ? await hosted.runOnEventCallback(params) : undefined
    return prepare(changed ?? params.event)
  }

  override async beforeToolCallback(
    params: ToolParams,
  ): Promise<Record<string, unknown> | undefined> {
    if (isHandover(params.tool)) return undefined
    // A tool that ADK runs itself, of whatever agent: nobody can be asked about it from here.
    const check = await checkCall(params, this.#options.terms)
    if (check.verdict !== 'run') return check.verdict === 'refuse' ? check.response : UNASKABLE
    return this.#options.hosted.runBeforeToolCallback(params)
  }

  override async afterToolCallback(
    params: ToolParams & { readonly result: Record<string, unknown> },
  ): Promise<Record<string, unknown> | undefined> {
    return isHandover(params.tool) ? undefined : this.#options.hosted.runAfterToolCallback(params)
  }

  override async onToolErrorCallback(
    params: ToolParams & { readonly error: Error },
  ): Promise<Record<string, unknown> | undefined> {
    return this.#options.hosted.runOnToolErrorCallback(params)
  }
}
