import { INPUT_CALL } from '../agent/history/input-calls.ts'
import { readAnswerSchema } from '../approvals/answer-schema.ts'
import type { Approval } from '../approvals/approval.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { isRecord } from '../protocol/guards.ts'
import type { CallOutcome } from './run-call.ts'

/** What a model or a workflow asks a person for. */
export interface InputRequest {
  readonly message: string
  readonly schema?: Readonly<Record<string, unknown>>
}

/** Whether a call of a tool asks a person for input, as ADK's `requestInputTool` does. */
export function isInputTool({
  name,
  isLongRunning,
}: {
  readonly name: string
  readonly isLongRunning: boolean
}): boolean {
  return name === INPUT_CALL && isLongRunning
}

/** Reads the arguments of `adk_request_input`. Returns the fault of arguments that a person cannot answer. */
export function readInputRequest(
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

/** Returns the outcome of an answered question: its answer. No tool runs. Returns undefined for an approval. */
export function toAnswerOutcome({ terms, state }: Approval): CallOutcome | undefined {
  if (terms.kind !== 'input') return undefined
  return { by: 'tool', result: 'payload' in state ? state.payload : null }
}
