import type { BaseTool } from '@google/adk'
import { z } from 'zod'

import { ProtocolError } from '../protocol/errors.ts'

/** Refuses changed arguments that the tool itself would refuse (I6). */
export function checkEdit(
  tool: BaseTool | undefined,
  args: Readonly<Record<string, unknown>>,
): void {
  const schema = tool && readSchema(tool)
  if (!schema)
    throw badEdit(
      'The arguments of this call cannot be changed: the tool has no schema to check them by.',
    )
  const parsed = schema.safeParse(args)
  if (parsed.success) return
  const issue = parsed.error.issues[0]
  const place = issue?.path.join('.') ?? ''
  throw badEdit(
    `The changed arguments do not fit the tool: ${place === '' ? '' : `${place}: `}${issue?.message ?? 'wrong shape'}`,
  )
}

// ADK keeps the schema of a FunctionTool to itself, and checks by it only when the tool runs: too late to tell the approver.
function readSchema(tool: BaseTool): z.ZodObject | undefined {
  const parameters: unknown = Reflect.get(tool, 'parameters')
  return parameters instanceof z.ZodObject ? parameters : undefined
}

function badEdit(message: string): ProtocolError {
  return new ProtocolError('bad-request', { message })
}
