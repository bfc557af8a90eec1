import type { BaseAgent, BaseTool } from '@google/adk'
import { isBaseAgent, isBaseTool, isLlmAgent } from '@google/adk'
import { z } from 'zod'

import { ProtocolError } from '../protocol/errors.ts'

/** Refuses changed arguments that the tool itself would refuse (I6). */
export type CheckEdit = (toolName: string, args: Readonly<Record<string, unknown>>) => Promise<void>

/** Checks edits by the schemas of the tools of an agent and of all agents below it. */
export function checkEditsOf(root: unknown): CheckEdit {
  return async (toolName, args) => {
    const tool = isBaseAgent(root) ? await findTool(root, toolName) : undefined
    const schema = tool && readSchema(tool)
    if (!schema) {
      throw new ProtocolError('bad-request', {
        message: `The arguments of ${toolName} cannot be changed: it has no schema to check them by.`,
      })
    }
    const parsed = schema.safeParse(args)
    if (parsed.success) return
    const issue = parsed.error.issues[0]
    const place = issue?.path.join('.') ?? ''
    throw new ProtocolError('bad-request', {
      message: `The changed arguments do not fit ${toolName}: ${place === '' ? '' : `${place}: `}${issue?.message ?? 'wrong shape'}`,
    })
  }
}

async function findTool(agent: BaseAgent, toolName: string): Promise<BaseTool | undefined> {
  if (isLlmAgent(agent)) {
    const tools = await agent.canonicalTools()
    const found = tools.find((tool) => isBaseTool(tool) && tool.name === toolName)
    if (found) return found
  }
  for (const sub of agent.subAgents) {
    const found = await findTool(sub, toolName)
    if (found) return found
  }
  return undefined
}

// ADK keeps the schema of a FunctionTool to itself, and checks by it only when the tool runs: too late to tell the approver.
function readSchema(tool: BaseTool): z.ZodObject | undefined {
  const parameters: unknown = Reflect.get(tool, 'parameters')
  return parameters instanceof z.ZodObject ? parameters : undefined
}
