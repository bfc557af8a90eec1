import type { BaseTool } from '@google/adk'

import { readArgumentsSchema } from '../../calls/arguments-schema.ts'
import { ProtocolError } from '../../protocol/errors.ts'

/** Refuses changed arguments that do not fit the schema of the tool (AP5). */
export function checkEdit(
  tool: BaseTool | undefined,
  args: Readonly<Record<string, unknown>>,
): void {
  const schema = tool && readArgumentsSchema(tool)
  if (!schema)
    throw badEdit(
      'The arguments of this call cannot be changed: the tool has no schema by which they can be checked.',
    )
  const parsed = schema.safeParse(args)
  if (parsed.success) return
  const issue = parsed.error.issues[0]
  const place = issue?.path.join('.') ?? ''
  throw badEdit(
    `The changed arguments do not fit the tool: ${place === '' ? '' : `${place}: `}${issue?.message ?? 'wrong shape'}`,
  )
}

function badEdit(message: string): ProtocolError {
  return new ProtocolError('bad-request', { message })
}
