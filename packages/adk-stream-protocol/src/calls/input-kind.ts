import { UNDETERMINED } from '../agent/call-responses.ts'
import { INPUT_CALL } from '../agent/events/input-names.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { readAnswerSchema } from '../approvals/answer-schema.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { isRecord } from '../protocol/guards.ts'
import type { CallCheck, CallKind, TermsOptions } from './call-kind.ts'
import { resolveQuestionTerms } from './call-terms.ts'

/** The questions of a model, or of a workflow: calls of ADK's `requestInputTool`. */
export const INPUT_KIND: CallKind = {
  name: 'input',
  asks: 'before-call',
  isEnabled: true,
  hasPolicy: true,
  answer: { isResult: true, toSchema: ({ schema = {} }) => schema },
  check: (call, options) =>
    call.tool.name === INPUT_CALL && call.tool.isLongRunning
      ? checkInput(call, options)
      : undefined,
}

/** What a model or a workflow asks a person for. */
interface InputRequest {
  readonly message: string
  readonly schema?: Readonly<Record<string, unknown>>
}

/** Returns the terms of a question to a person, or what is wrong with it. */
async function checkInput(call: ToolCall, options: TermsOptions): Promise<CallCheck> {
  const request = readInputRequest(call.toolArgs)
  if ('fault' in request)
    return { verdict: 'refuse', response: { error: `Not asked: ${request.fault}` } }
  const question = { hint: request.message, isAnsweredByOne: true } as const
  const terms = await resolveQuestionTerms(call, question, options)
  return terms
    ? { verdict: 'ask', terms: toInputTerms(terms, request) }
    : { verdict: 'refuse', response: UNDETERMINED }
}

/** Reads the arguments of `adk_request_input`. Returns the fault of arguments that a person cannot answer. */
function readInputRequest(
  args: Readonly<Record<string, unknown>>,
): InputRequest | { readonly fault: string } {
  const { message, response_schema: schema } = args
  if (typeof message !== 'string' || message === '') return { fault: '`message` is missing.' }
  if (!isRecord(schema) || Object.keys(schema).length === 0) return { message }
  const read = readAnswerSchema(schema)
  return 'fault' in read ? { fault: `\`response_schema\`: ${read.fault}` } : { message, ...read }
}

/** Returns the terms of a question. One person answers it, and its answer may be reported again after a crash. */
export function toInputTerms(terms: ResolvedTerms, { schema }: InputRequest): ResolvedTerms {
  const [step = { principals: [], roles: [] }] = terms.chain
  return {
    ...terms,
    kind: 'input',
    ...(schema && { schema }),
    chain: [{ ...step, count: 1 }],
    idempotent: true,
  }
}
