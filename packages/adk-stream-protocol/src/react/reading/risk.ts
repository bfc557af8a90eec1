import { hasMisleadingValue, raiseSeverity } from '../../shared/misleading-values.ts'
import type { Approval } from './approval.ts'
import type { Arguments } from './call.ts'

/**
 * Returns an approval for the person who decides it: with a severity one level above the policy's if a value could mislead them. The server
 * has raised it already if it knew (AP1102); only the page knows the description that it shows without a preview.
 */
export function raiseShownSeverity<
  Shown extends {
    readonly severity?: Approval['severity'] | undefined
    readonly misleading?: Approval['misleading'] | undefined
  },
>(approval: Shown, args: Arguments, description: string): Shown {
  if (approval.misleading || !hasMisleadingValue(args, [description])) return approval
  return { ...approval, severity: raiseSeverity(approval.severity) }
}
