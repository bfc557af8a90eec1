import type { BaseTool, Context } from '@google/adk'

/** A call as ADK hands it to its callbacks. */
export interface ToolCall {
  readonly tool: BaseTool
  readonly toolArgs: Record<string, unknown>
  readonly toolContext: Context
}
