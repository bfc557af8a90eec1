import { z } from 'zod'

import { ActStep } from './act-step.ts'

const When = z.union(
  [z.string().min(1), z.instanceof(RegExp), z.strictObject({ toolResult: z.string().min(1) })],
  { error: 'when must be a text, a /regular expression/ or {toolResult: name}' },
)

const Exchange = z.strictObject({
  /**
   * The user's text (case and surrounding space do not matter), a regular expression that it must match (in a file written
   * `/…/flags`), or the function whose result has come.
   */
  when: When.transform(toCondition),
  /** What the model then does. */
  do: z.array(ActStep).min(1, { error: 'do must list at least one step' }),
})

/** A conversation written down: the first exchange that fits decides. */
export const Scenario = z.strictObject({ exchanges: z.array(Exchange) })
export type Scenario = z.input<typeof Scenario>

export type Condition =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'pattern'; readonly pattern: RegExp }
  | { readonly type: 'tool-result'; readonly name: string }

export function normalise(text: string): string {
  return text.trim().toLowerCase()
}

function toCondition(when: z.infer<typeof When>, context: z.RefinementCtx): Condition {
  if (when instanceof RegExp) return { type: 'pattern', pattern: when }
  if (typeof when === 'object') return { type: 'tool-result', name: when.toolResult }
  const [, source, flags] = /^\/(.+)\/([a-z]*)$/s.exec(when) ?? []
  if (source === undefined) return { type: 'text', text: normalise(when) }
  try {
    return { type: 'pattern', pattern: new RegExp(source, flags) }
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    context.addIssue({ code: 'custom', message: reason })
    return z.NEVER
  }
}
