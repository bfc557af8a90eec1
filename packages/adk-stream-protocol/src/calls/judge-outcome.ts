import { toResponse } from '../agent/call-responses.ts'
import type { Approval } from '../approvals/approval.ts'
import { argsToRun } from '../approvals/next-approval.ts'
import type { PolicyFunctions, PreviewContext } from '../approvals/policy.ts'
import { resolveVerdict, toPolicyCall } from '../approvals/policy.ts'
import { callInTime, PolicyPreview } from '../approvals/preview.ts'
import type { Preview } from '../protocol/preview.ts'
import { readReportedFailure } from '../protocol/message.ts'
import type { TermsOptions } from './call-terms.ts'

/** Whether a result reports a failure, and what the call did in words of the policy. */
export interface Judgement {
  readonly failure?: string
  readonly receipt?: Preview
}

export type JudgeOptions = Pick<TermsOptions, 'policy' | 'onError'>

/**
 * Judges the result of an approved call: by the policy's `isFailure`, or otherwise by the form of the result. A policy that fails
 * does not change the outcome of a call that has run: its error goes to `onError`.
 */
export async function judgeOutcome(
  approval: Approval,
  output: unknown,
  { policy, onError }: JudgeOptions,
): Promise<Judgement> {
  const { chat, toolName, terms } = approval
  const call = { chat, toolName, args: argsToRun(approval), claims: terms.claims }
  const verdict = terms.readsResult
    ? await resolveVerdict(policy, call, { required: () => false, onError })
    : undefined
  const { isFailure, receipt }: PolicyFunctions = verdict?.functions ?? {}
  const context: PreviewContext = { ...toPolicyCall(call), reader: chat.principalId }
  const attempt = async <Result>(name: string, run: () => Result | Promise<Result>) =>
    callInTime(name, run).catch((error: unknown) => {
      onError(error)
      return undefined
    })
  const reported = readReportedFailure(toResponse(output))
  const judged = isFailure && (await attempt('isFailure', () => isFailure(output, context)))
  const hasFailed = typeof judged === 'boolean' ? judged : reported !== undefined
  const made =
    receipt &&
    (await attempt('receipt', async () => {
      const read = await receipt(output, context)
      return read && PolicyPreview.parse(read)
    }))
  return {
    ...(hasFailed && { failure: reported?.reason ?? 'The result reports a failure.' }),
    ...(made && { receipt: made }),
  }
}
