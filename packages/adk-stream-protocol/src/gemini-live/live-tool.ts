import type { BaseTool, LlmRequest, RunAsyncToolRequest } from '@google/adk'
import { BaseTool as Tool } from '@google/adk'
import { Behavior } from '@google/genai'

import type { ToolCall } from '../adk/tool-call.ts'

/** ADK's own way to another agent, which it must take itself. */
const TRANSFER = 'transfer_to_agent'

/**
 * A tool that never keeps a live run waiting. ADK receives nothing while a tool runs, neither sound nor interruptions; a long-running
 * one that returns nothing is answered later, by whoever took the call.
 */
class LiveTool extends Tool {
  readonly inner: BaseTool
  readonly #begin: (call: ToolCall) => void

  constructor(inner: BaseTool, begin: (call: ToolCall) => void) {
    super({ name: inner.name, description: inner.description, isLongRunning: true })
    this.inner = inner
    this.#begin = begin
  }

  override async runAsync({ args, toolContext }: RunAsyncToolRequest): Promise<undefined> {
    this.#begin({ tool: this.inner, toolArgs: args, toolContext })
  }
}

/** Whether ADK runs a tool only to hand its call over. */
export function isHandover(tool: BaseTool): boolean {
  return tool instanceof LiveTool
}

/** Puts every tool of a live request behind the one that takes its calls. */
export function wrapTools(request: LlmRequest, begin: (call: ToolCall) => void): void {
  for (const [name, tool] of Object.entries(request.toolsDict)) {
    if (name === TRANSFER || tool instanceof LiveTool) continue
    request.toolsDict[name] = new LiveTool(tool, begin)
  }
}

/** The tool behind a name of a live request. */
export function findLiveTool({ toolsDict }: LlmRequest, name: string): BaseTool | undefined {
  const tool = Object.hasOwn(toolsDict, name) ? toolsDict[name] : undefined
  return tool instanceof LiveTool ? tool.inner : undefined
}

/** Declares all functions as ones that the model need not wait for. */
export function declareFree({ config }: LlmRequest): void {
  for (const tool of config?.tools ?? []) {
    if (!('functionDeclarations' in tool)) continue
    for (const declaration of tool.functionDeclarations ?? []) {
      if (declaration.name !== TRANSFER) declaration.behavior = Behavior.NON_BLOCKING
    }
  }
}
