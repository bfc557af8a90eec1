import * as z from 'zod'

import { describeIssues } from '../../agent/call-responses.ts'
import { assessRisk } from '../../approvals/risk.ts'
import type { ApprovalPolicy, CallToJudge, PolicyFunctions } from '../../approvals/policy.ts'
import { resolveVerdict } from '../../approvals/policy.ts'
import type { ApprovalTerms } from '../../approvals/approval.ts'
import { fitsSchema } from '../../calls/arguments-schema.ts'
import { readToolClaims } from '../../calls/call-terms.ts'
import { MAX_STEPS, type PlanTool } from './plan-tool.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'

/** A call of a plan, as the policy judges it now. */
export interface PlanStep {
  readonly call: CallToJudge
  readonly terms: ApprovalTerms
  readonly functions: PolicyFunctions
  /** For how long its approval is valid, in ms. */
  readonly expiresMs: number
}

interface ProposedPlan {
  readonly tool: PlanTool
  readonly args: Readonly<Record<string, unknown>>
  readonly chat: AppChatRef
}

interface JudgeOptions {
  readonly policy: ApprovalPolicy
  readonly onError: (error: unknown) => void
}

const Plan = z.strictObject({
  steps: z
    .array(z.strictObject({ tool: z.string(), args: z.record(z.string(), z.unknown()) }))
    .min(1)
    .max(MAX_STEPS),
})

/** Returns the calls of a plan, or why they cannot be approved together. */
export async function judgePlan(
  { tool: { tools }, args, chat }: ProposedPlan,
  { policy, onError }: JudgeOptions,
): Promise<readonly PlanStep[] | { readonly fault: string }> {
  const parsed = Plan.safeParse(args)
  if (!parsed.success) return { fault: describeIssues(parsed.error) ?? 'its form is wrong.' }
  const steps: PlanStep[] = []
  for (const [index, step] of parsed.data.steps.entries()) {
    const refuse = (why: string) => ({ fault: `step ${index + 1} (${step.tool}): ${why}` })
    const tool = tools.get(step.tool)
    if (!tool) return refuse('there is no such tool in plans.')
    if (fitsSchema(tool, step.args) === false)
      return refuse('the arguments do not match the schema of the tool.')
    const call = { chat, toolName: step.tool, args: step.args, claims: readToolClaims(tool) }
    const verdict = await resolveVerdict(policy, call, { required: () => true, onError })
    if (!verdict) return refuse('this call needs no approval. Make it directly.')
    const { terms, functions } = verdict
    const { misleading } = assessRisk({ args: step.args, terms })
    if (!terms.plans || misleading)
      return refuse('a person decides this call by itself. Make it without a plan.')
    steps.push({ call, terms, functions, expiresMs: terms.plans.expiresMs })
  }
  return steps
}
