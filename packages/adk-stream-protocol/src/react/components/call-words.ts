import { type Call, readFailure } from '../reading/call.ts'
import type { AdkTexts } from '../texts/texts.ts'

/** How far a call got, in one word. */
export function describeState(call: Call, { tool }: AdkTexts): string {
  if (readFailure(call)) return tool.failed
  switch (call.state) {
    case 'input-streaming':
      return tool.preparing
    case 'input-available':
    case 'approval-responded':
      return tool.running
    case 'approval-requested':
      return tool.waiting
    case 'output-available':
      return tool.done
    case 'output-error':
      return tool.failed
    case 'output-denied':
      return tool.denied
  }
}

/** The arguments at a glance: the values that are short enough to read. */
export function summarise(input: unknown): string {
  if (typeof input !== 'object' || input === null) return ''
  const values = Object.values(input).filter(
    (value) => typeof value === 'number' || (typeof value === 'string' && value !== ''),
  )
  return values.join(', ')
}
