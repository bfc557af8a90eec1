import type { BaseTool, Context } from '@google/adk'
import { isLlmAgent } from '@google/adk'

import { toResponse } from './approval-answers.ts'

/**
 * Runs a call with the arguments of its approver. ADK would run it with those of the model, so its own steps are taken here: the
 * agent's callbacks first, then the tool, which checks the arguments by its schema. The model is told what really ran.
 */
export async function runEdited(call: {
  readonly tool: BaseTool
  readonly toolArgs: Record<string, unknown>
  readonly toolContext: Context
}): Promise<Record<string, unknown>> {
  const { tool, toolArgs: args, toolContext } = call
  const { agent } = toolContext.invocationContext
  const callbacks = isLlmAgent(agent) ? agent.canonicalBeforeToolCallbacks : []
  for (const callback of callbacks) {
    const instead = await callback({ tool, args, context: toolContext })
    if (instead) return instead
  }
  const result: unknown = await tool.runAsync({ args, toolContext })
  return { ...toResponse(result), edited_arguments: args }
}
