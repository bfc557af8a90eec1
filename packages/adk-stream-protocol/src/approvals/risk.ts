import type { Preview } from '../protocol/preview.ts'
import type { Severity } from '../shared/misleading-values.ts'
import { hasMisleadingValue, raiseSeverity } from '../shared/misleading-values.ts'
import type { Approval } from './approval.ts'

/** The severity with which a call is shown and decided. */
interface Risk {
  readonly severity?: Severity
  /** Whether a value could mislead the person who decides. The severity is then one level above the policy's. */
  readonly misleading?: true
}

/** Returns the risk of a call, from its policy and its values (AP1102). A question keeps the severity of its terms. */
export function assessRisk(
  { args, terms }: Pick<Approval, 'args' | 'terms'>,
  preview?: Pick<Preview, 'headline'>,
): Risk {
  const { severity, title = '', hint = '', kind } = terms
  if (kind === undefined && hasMisleadingValue(args, [title, hint, preview?.headline ?? '']))
    return { severity: raiseSeverity(severity), misleading: true }
  return severity === undefined ? {} : { severity }
}
