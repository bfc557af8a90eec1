import type { BaseTool, Context, LlmRequest, LlmResponse } from '@google/adk'
import { BasePlugin } from '@google/adk'
import type { Content } from '@google/genai'

export interface RunGuardOptions {
  /** Hears of errors that ADK turns into events or tool results. */
  readonly onError: (error: unknown) => void
}

/**
 * The one place through which every tool call and every model call of a run passes. It must be the first plugin: a plugin that
 * returns a value keeps the later ones from being asked.
 */
export class RunGuard extends BasePlugin {
  readonly #options: RunGuardOptions

  constructor(options: RunGuardOptions) {
    super('adk-stream-protocol:run-guard')
    this.#options = options
  }

  // AP0: a tool that needs approval does not run where nobody can be asked. The model is told, so it can tell the person.
  override async beforeToolCallback(params: {
    tool: BaseTool
    toolArgs: Record<string, unknown>
    toolContext: Context
  }): Promise<Record<string, unknown> | undefined> {
    const { tool, toolArgs, toolContext } = params
    const gated = await needsApproval(tool, toolArgs, toolContext)
    return gated ? { error: NEEDS_APPROVAL } : undefined
  }

  // AP0: a tool may also ask for approval while it runs. ADK would end the run there, without the results of the calls beside
  // it; so the request is taken back and refused at once.
  override async afterToolCallback(params: {
    toolContext: Context
  }): Promise<Record<string, unknown> | undefined> {
    const { functionCallId, actions } = params.toolContext
    const requests = actions.requestedToolConfirmations
    if (functionCallId === undefined || !Object.hasOwn(requests, functionCallId)) return undefined
    delete requests[functionCallId]
    return { error: NEEDS_APPROVAL }
  }

  override async beforeModelCallback(params: {
    callbackContext: Context
    llmRequest: LlmRequest
  }): Promise<LlmResponse | undefined> {
    // ADK 2.0.0 asks the model again after a streamed long-running call or transfer, because the usage report that follows it
    // counts as the last event. Gemini refuses a conversation that ends on an unanswered call, and a transfer would be answered
    // twice. An empty response ends the agent's part instead.
    const { callbackContext, llmRequest } = params
    return endsOnCall(llmRequest.contents) || hasHandedOver(callbackContext) ? {} : undefined
  }

  override async onModelErrorCallback(params: {
    callbackContext: Context
    error: Error
  }): Promise<undefined> {
    // A turn that was stopped breaks off its request; that is no fault.
    if (params.callbackContext.abortSignal?.aborted) return
    this.#options.onError(params.error)
  }

  override async onToolErrorCallback(params: { error: Error }): Promise<undefined> {
    this.#options.onError(params.error)
  }
}

const NEEDS_APPROVAL =
  'Not run: this tool needs the approval of a person, which this server cannot ask for.'

async function needsApproval(
  tool: BaseTool,
  toolArgs: Record<string, unknown>,
  toolContext: Context,
): Promise<boolean> {
  try {
    return await tool.checkRequireConfirmation(toolArgs, toolContext)
  } catch {
    // The arguments do not fit the tool's schema. The tool checks them again before it does anything, and says what is wrong.
    return false
  }
}

function endsOnCall(contents: readonly Content[]): boolean {
  return contents.at(-1)?.parts?.some((part) => part.functionCall !== undefined) === true
}

/** Whether the last transfer of this run was made by the agent itself: the conversation is another's then. */
function hasHandedOver({ invocationContext, invocationId, agentName }: Context): boolean {
  const transfer = invocationContext.session.events.findLast(
    (event) => event.invocationId === invocationId && event.actions.transferToAgent !== undefined,
  )
  return transfer?.author === agentName && transfer.actions.transferToAgent !== agentName
}
