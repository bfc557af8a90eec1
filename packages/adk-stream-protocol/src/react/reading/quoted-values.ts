import { toLiteral } from '../../shared/literal-text.ts'
import { listTexts } from '../../shared/misleading-values.ts'
import type { Arguments } from './call.ts'

/** A part of a text: words of the application, or a value that the model chose. */
export interface TextPart {
  readonly text: string
  readonly isValue: boolean
}

/**
 * Splits a literal text at the argument values that it contains. A single word stays in the text around it: it cannot be mistaken for
 * another sentence.
 */
export function splitAtValues(text: string, args: Arguments): TextPart[] {
  const values = listTexts(args)
    .map((value) => toLiteral(value))
    .filter((value) => value !== '' && !ONE_WORD.test(value))
    .toSorted((one, other) => other.length - one.length)
  return values.reduce<TextPart[]>(
    (parts, value) => parts.flatMap((part) => (part.isValue ? part : splitAt(part.text, value))),
    [{ text, isValue: false }],
  )
}

/** Returns a literal text with quotation marks around the values of `splitAtValues`. */
export function quoteValues(
  text: string,
  args: Arguments,
  quote: (value: string) => string,
): string {
  return splitAtValues(toLiteral(text), args)
    .map((part) => (part.isValue ? quote(part.text) : part.text))
    .join('')
}

const ONE_WORD = /^[\p{L}\p{M}\p{N}@._+'’-]{1,40}$/u

function splitAt(text: string, value: string): TextPart[] {
  return text
    .split(value)
    .flatMap((between, index): TextPart[] => [
      ...(index > 0 ? [{ text: value, isValue: true }] : []),
      ...(between === '' ? [] : [{ text: between, isValue: false }]),
    ])
}
