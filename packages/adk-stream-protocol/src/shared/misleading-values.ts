import { isDeceptive, toLiteral } from './literal-text.ts'

export type Severity = 'low' | 'medium' | 'high'

/**
 * Returns whether a value of a call could mislead the person who decides it: it is deceptive, or it has several lines or runs of spaces and is
 * a part of a text that describes the call.
 */
export function hasMisleadingValue(args: unknown, descriptions: readonly string[]): boolean {
  const shown = descriptions.map((description) => toLiteral(description))
  return listTexts(args).some((text) => {
    const literal = toLiteral(text)
    return isDeceptive(text) || (literal !== text && shown.some((each) => each.includes(literal)))
  })
}

/** Returns the severity of a call with a misleading value: one level above the policy's. */
export function raiseSeverity(severity: Severity = 'low'): Severity {
  return RAISED[severity]
}

const RAISED = { low: 'medium', medium: 'high', high: 'high' } as const

/** Deeper values are not read: arguments that deep are not made for people. */
const MAX_DEPTH = 64

/** Returns the texts in arguments, at any depth. */
export function listTexts(value: unknown, depth = 0): string[] {
  if (typeof value === 'string') return [value]
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return []
  return Object.values(value).flatMap((item) => listTexts(item, depth + 1))
}
