import type { ApprovalPolicy, ResolvedTerms } from '../approvals/policy.ts'
import { resolvePolicy } from '../approvals/policy.ts'
import { UNDETERMINED } from '../agent/call-responses.ts'
import { chatOf } from '../agent/tool-call.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { describeIssues } from '../agent/tool-failure.ts'

export interface TermsOptions {
  /** Which calls need approval, and on which terms, beside what the tools themselves require. */
  readonly policy: ApprovalPolicy
  /** How long a person may take where the policy does not say. */
  readonly deadlineMs: number | undefined
  /** Hears of a policy that throws or answers nonsense. */
  readonly onError: (error: unknown) => void
}

/** What a tool asks by itself, with `toolContext.requestConfirmation()`. */
export interface ToolQuestion {
  readonly hint: string
  readonly payload?: unknown
}

/** What is known of a call before it runs. */
export type CallCheck =
  | { readonly verdict: 'run' }
  | { readonly verdict: 'ask'; readonly terms: ResolvedTerms }
  /** The tool failed to say whether the call needs approval. The call is answered with this and does not run. */
  | { readonly verdict: 'refuse'; readonly response: { readonly error: string } }

/** Says whether a call runs, needs approval first, or is refused. The policy decides; where it is silent, the tool does. */
export async function checkCall(call: ToolCall, options: TermsOptions): Promise<CallCheck> {
  const { tool, toolArgs, toolContext } = call
  let failure: unknown
  const required = async (): Promise<boolean> => {
    try {
      return await tool.checkRequireConfirmation(toolArgs, toolContext)
    } catch (error) {
      failure = error ?? new Error('checkRequireConfirmation threw no error object.')
      throw error
    }
  }
  const terms = await resolve(call, { ...options, required })
  if (failure !== undefined) return { verdict: 'refuse', response: describeFailure(failure) }
  return terms ? { verdict: 'ask', terms } : { verdict: 'run' }
}

/** Arguments that do not fit the schema are described to the model, so that it can correct them. Other errors are for the log. */
function describeFailure(failure: unknown): { error: string } {
  const issues = describeIssues(failure)
  return issues === undefined ? UNDETERMINED : { error: `Not run: ${issues}` }
}

/** On which terms a tool is answered that asked by itself. A policy that wants no approval does not answer for it: what it asks, it needs. */
export async function resolveQuestionTerms(
  call: ToolCall,
  question: ToolQuestion,
  options: TermsOptions,
): Promise<ResolvedTerms | undefined> {
  const asked = { ...options, ...question, required: () => true }
  return (await resolve(call, asked)) ?? resolve(call, { ...asked, policy: {} })
}

/**
 * Whether a call that the policy lets run must be confirmed in the name of the policy, because the tool itself would ask. A tool that
 * fails to say is not confirmed.
 */
export async function needsConfirmation(call: ToolCall): Promise<boolean> {
  const { tool, toolArgs, toolContext } = call
  try {
    return await tool.checkRequireConfirmation(toolArgs, toolContext)
  } catch {
    return false
  }
}

async function resolve(
  { tool, toolArgs, toolContext }: ToolCall,
  {
    policy,
    deadlineMs,
    hint,
    payload,
    ...defaults
  }: TermsOptions & Partial<ToolQuestion> & { readonly required: () => boolean | Promise<boolean> },
): Promise<ResolvedTerms | undefined> {
  const chat = chatOf(toolContext.invocationContext.session)
  return resolvePolicy(
    policy,
    { chat, toolName: tool.name, args: toolArgs },
    {
      ...defaults,
      ...(deadlineMs !== undefined && { deadlineMs }),
      ...(hint !== undefined && { hint }),
      ...(payload !== undefined && { payload }),
    },
  )
}
