import { isDeceptive, toLiteral } from '../../shared/literal-text.ts'
import type { Approval } from './approval.ts'
import type { Arguments } from './call.ts'
import { listTexts } from './quoted-values.ts'

type Severity = NonNullable<Approval['severity']>

/**
 * Returns whether a value of a call could mislead the person who decides it: it is deceptive, or it has several lines or runs of spaces and is
 * a part of the description.
 */
export function hasMisleadingValue(args: Arguments, description: string): boolean {
  const shown = toLiteral(description)
  return listTexts(args).some((text) => {
    const literal = toLiteral(text)
    return isDeceptive(text) || (literal !== text && shown.includes(literal))
  })
}

/** Returns an approval for the person who decides it: with a severity one level above the policy's if a value could mislead them. */
export function raiseSeverity<Shown extends { readonly severity?: Severity | undefined }>(
  approval: Shown,
  args: Arguments,
  description: string,
): Shown {
  if (!hasMisleadingValue(args, description)) return approval
  return { ...approval, severity: RAISED[approval.severity ?? 'low'] }
}

const RAISED = { low: 'medium', medium: 'high', high: 'high' } as const
