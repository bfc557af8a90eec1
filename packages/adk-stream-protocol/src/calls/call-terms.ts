import type { Session } from '@google/adk'

import type { ApprovalPolicy, ResolvedTerms } from '../approvals/policy.ts'
import { resolvePolicy } from '../approvals/policy.ts'
import { repeatsDenied } from './repeated-denial.ts'
import { DENIED_BEFORE, UNDETERMINED, describeIssues } from '../agent/call-responses.ts'
import { chatOf } from '../agent/tool-call.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { readToolClaims } from './read-tool-claims.ts'
import { isInputTool, readInputRequest, toInputTerms } from './input-terms.ts'

export interface TermsOptions {
  /** Which calls need approval, and on which terms, in addition to what the tools require. */
  readonly policy: ApprovalPolicy
  /** How long people may take if the policy does not say, in ms. */
  readonly deadlineMs: number | undefined
  /** Receives the error of a policy that throws or returns an invalid verdict. */
  readonly onError: (error: unknown) => void
}

/** A confirmation that a tool requests itself, with `toolContext.requestConfirmation()`. */
export interface ToolQuestion {
  readonly hint: string
  readonly payload?: unknown
}

/** The verdict on a call before it runs. */
export type CallCheck =
  | { readonly verdict: 'run' }
  | { readonly verdict: 'ask'; readonly terms: ResolvedTerms }
  /** The call gets this response and does not run: its need for approval is unknown, or the person denied it before. */
  | { readonly verdict: 'refuse'; readonly response: { readonly error: string } }

/**
 * Returns whether a call runs, needs approval first, or is refused. The policy takes precedence over the tool. `session` is the session of
 * the chat.
 */
export async function checkCall(
  call: ToolCall,
  options: TermsOptions,
  session: Session = call.toolContext.invocationContext.session,
): Promise<CallCheck> {
  const { tool, toolArgs, toolContext } = call
  if (isInputTool(tool)) return checkInput(call, options)
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
  if (!terms) return { verdict: 'run' }
  return repeatsDenied(session.events, { name: tool.name, args: toolArgs })
    ? { verdict: 'refuse', response: DENIED_BEFORE }
    : { verdict: 'ask', terms }
}

/** Returns the terms of a question to a person, or what is wrong with it. */
async function checkInput(call: ToolCall, options: TermsOptions): Promise<CallCheck> {
  const request = readInputRequest(call.toolArgs)
  if ('fault' in request)
    return { verdict: 'refuse', response: { error: `Not asked: ${request.fault}` } }
  const terms = await resolveQuestionTerms(call, { hint: request.message }, options)
  return terms
    ? { verdict: 'ask', terms: toInputTerms(terms, request) }
    : { verdict: 'refuse', response: UNDETERMINED }
}

/** Describes invalid arguments to the model, so that it can correct them. Other errors are only logged. */
function describeFailure(failure: unknown): { error: string } {
  const issues = describeIssues(failure)
  return issues === undefined ? UNDETERMINED : { error: `Not run: ${issues}` }
}

/**
 * Returns the terms for a tool that requests confirmation itself. A policy cannot waive it, because the tool needs
 * the response.
 */
export async function resolveQuestionTerms(
  call: ToolCall,
  question: ToolQuestion,
  options: TermsOptions,
): Promise<ResolvedTerms | undefined> {
  const asked = { ...options, ...question, required: () => true }
  return (await resolve(call, asked)) ?? resolve(call, { ...asked, policy: {} })
}

/**
 * Whether to confirm a call that the policy allows, because the tool would request confirmation otherwise. Returns
 * false if the tool fails to determine it.
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
    { chat, toolName: tool.name, args: toolArgs, claims: readToolClaims(tool) },
    {
      ...defaults,
      ...(deadlineMs !== undefined && { deadlineMs }),
      ...(hint !== undefined && { hint }),
      ...(payload !== undefined && { payload }),
    },
  )
}
