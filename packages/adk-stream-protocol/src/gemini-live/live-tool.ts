import type { BaseTool, LlmRequest, RunAsyncToolRequest } from '@google/adk'
import { BaseTool as Tool } from '@google/adk'
import { Behavior } from '@google/genai'

import type { ToolCall } from '../agent/tool-call.ts'

/** ADK's own tool for transfers. ADK must run it itself. */
const TRANSFER = 'transfer_to_agent'

/**
 * A tool that hands its call over and returns at once. While a tool runs, ADK receives neither audio nor interruptions. ADK expects no
 * result from a long-running tool that returns undefined; `onCall` provides it later.
 */
class LiveTool extends Tool {
  readonly inner: BaseTool
  readonly #onCall: (call: ToolCall) => void

  constructor(inner: BaseTool, onCall: (call: ToolCall) => void) {
    super({ name: inner.name, description: inner.description, isLongRunning: true })
    this.inner = inner
    this.#onCall = onCall
  }

  override async runAsync({ args, toolContext }: RunAsyncToolRequest): Promise<undefined> {
    this.#onCall({ tool: this.inner, toolArgs: args, toolContext })
  }
}

/** Whether a tool only hands its calls over. */
export function isLiveTool(tool: BaseTool): boolean {
  return tool instanceof LiveTool
}

/** Wraps every tool of a live request, so that `onCall` receives its calls. */
export function wrapTools(request: LlmRequest, onCall: (call: ToolCall) => void): void {
  for (const [name, tool] of Object.entries(request.toolsDict)) {
    if (name === TRANSFER || tool instanceof LiveTool) continue
    request.toolsDict[name] = new LiveTool(tool, onCall)
  }
}

/** Returns the original tool of a live request by its name. */
export function findLiveTool({ toolsDict }: LlmRequest, name: string): BaseTool | undefined {
  const tool = Object.hasOwn(toolsDict, name) ? toolsDict[name] : undefined
  return tool instanceof LiveTool ? tool.inner : undefined
}

/** Declares all functions as `NON_BLOCKING`: the model does not wait for their results. */
export function declareNonBlocking({ config }: LlmRequest): void {
  for (const tool of config?.tools ?? []) {
    if (!('functionDeclarations' in tool)) continue
    for (const declaration of tool.functionDeclarations ?? []) {
      if (declaration.name !== TRANSFER) declaration.behavior = Behavior.NON_BLOCKING
    }
  }
}
