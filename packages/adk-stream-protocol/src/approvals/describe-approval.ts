import type { Preview } from '../protocol/preview.ts'
import { toLiteral } from '../shared/literal-text.ts'

/** An approval in words, for clients that have no components of ours: channels, and pages of other kits. All texts are literal (RE160). */
export interface ApprovalInWords {
  /** The headline of the preview, the hint or the title. Undefined if there is none. */
  readonly headline: string | undefined
  /** The tool with its arguments, in one line. */
  readonly call: string
  /** A line for each argument. */
  readonly args: readonly string[]
  /** What the preview adds to the headline. */
  readonly preview: readonly string[]
}

interface AskedCall {
  readonly toolName: string
  readonly args: Readonly<Record<string, unknown>>
  readonly hint?: string | undefined
  readonly title?: string | undefined
  /** What kind of question it is. Undefined for a call that needs approval. */
  readonly kind?: string | undefined
}

export function describeApproval(
  { toolName, args, hint, title, kind }: AskedCall,
  preview: Preview | undefined,
): ApprovalInWords {
  const headline = preview?.headline ?? hint ?? title
  const values = Object.entries(args).map(([name, value]) =>
    toLiteral(`${name}: ${JSON.stringify(value)}`),
  )
  return {
    // The text of a question has lines of its own.
    headline: headline && toLiteral(headline, { multiline: kind !== undefined }),
    call: `${toolName}(${shorten(values.join(', '))})`,
    args: values,
    preview: preview ? describePreview(preview) : [],
  }
}

const MAX_ARGUMENTS = 300

function shorten(text: string): string {
  return text.length > MAX_ARGUMENTS ? `${text.slice(0, MAX_ARGUMENTS)}…` : text
}

/** The texts are literal already (AP1100), apart from those of a changed text. */
function describePreview({ lines = [], changes = [], text, picture, blocked }: Preview): string[] {
  const prefix = text?.label === undefined ? '' : `${text.label}: `
  const changed = text && [`${prefix}${toLiteral(text.before)} → ${toLiteral(text.after)}`]
  return [
    ...lines.map(({ label, value }) => `${label}: ${value}`),
    ...changes.map(({ label, before, after }) => `${label}: ${before} → ${after}`),
    ...(changed ?? []),
    ...(picture ? [picture.alt] : []),
    ...(blocked === undefined ? [] : [blocked]),
  ]
}
