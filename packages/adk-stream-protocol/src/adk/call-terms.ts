import type { ApprovalPolicy, ResolvedTerms } from '../approvals/policy.ts'
import { resolvePolicy } from '../approvals/policy.ts'
import { chatOf } from './gate-chat.ts'
import type { ToolCall } from './tool-call.ts'

export interface TermsOptions {
  /** Which calls need approval, and on which terms, beside what the tools themselves require. */
  readonly policy: ApprovalPolicy
  /** How long a person may take where the policy does not say. */
  readonly deadlineMs: number | undefined
  /** Hears of a policy that throws or answers nonsense. */
  readonly onError: (error: unknown) => void
}

/** What a tool asks by itself, with `toolContext.requestConfirmation()`. */
export interface OwnQuestion {
  readonly hint: string
  readonly payload?: unknown
}

/** On which terms a call needs approval before it runs; nothing when it needs none. */
export async function termsOfCall(
  call: ToolCall,
  options: TermsOptions,
): Promise<ResolvedTerms | undefined> {
  return resolve(call, { ...options, required: () => isGated(call) })
}

/** On which terms a tool is answered that asked by itself. A policy that wants no approval does not answer for it: what it asks, it needs. */
export async function termsOfQuestion(
  call: ToolCall,
  question: OwnQuestion,
  options: TermsOptions,
): Promise<ResolvedTerms | undefined> {
  const asked = { ...options, ...question, required: () => true }
  return (await resolve(call, asked)) ?? resolve(call, { ...asked, policy: {} })
}

/** Whether the tool itself wants approval for a call. */
export async function isGated({ tool, toolArgs, toolContext }: ToolCall): Promise<boolean> {
  try {
    return await tool.checkRequireConfirmation(toolArgs, toolContext)
  } catch {
    // The arguments do not fit the tool's schema. The tool checks them again before it does anything, and says what is wrong.
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
  }: TermsOptions & Partial<OwnQuestion> & { readonly required: () => boolean | Promise<boolean> },
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
