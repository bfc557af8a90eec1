import type { InvocationContext } from '@google/adk'
import { Context, generateClientFunctionCallId, requestInputTool } from '@google/adk'
import type { FunctionCall, Part } from '@google/genai'

import type { ResolvedTerms } from '../approvals/policy.ts'
import { CONFIRMATION_TOOL } from '../protocol/message.ts'
import type { TermsOptions } from './call-terms.ts'
import { checkCall } from './call-terms.ts'

/** A `RequestInput` of a workflow node, as the ledger asks it. */
interface NodeQuestion {
  readonly toolCallId: string
  readonly terms: ResolvedTerms
  /** The request in the form in which ADK requests an approval. */
  readonly request: Part
}

/** Returns the terms of a `RequestInput`, on the same policy as questions of a model. Throws if a person cannot answer it. */
export async function resolveNodeQuestion(
  { id = '', name = '', args = {} }: FunctionCall,
  invocationContext: InvocationContext,
  options: TermsOptions,
): Promise<NodeQuestion> {
  const { message } = args
  const hasMessage = typeof message === 'string' && message !== ''
  const toolArgs = { ...args, message: hasMessage ? message : 'The workflow needs your input.' }
  const toolContext = new Context({ invocationContext, functionCallId: id })
  const check = await checkCall({ tool: requestInputTool, toolArgs, toolContext }, options)
  if (check.verdict !== 'ask')
    throw new Error(
      `A RequestInput of a workflow node cannot be asked. ${check.verdict === 'refuse' ? check.response.error : ''}`,
    )
  const functionCall = {
    id: generateClientFunctionCallId(),
    name: CONFIRMATION_TOOL,
    args: { originalFunctionCall: { id, name, args } },
  }
  return { toolCallId: id, terms: check.terms, request: { functionCall } }
}
