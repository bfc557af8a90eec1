import type { Style } from './results.ts'

/** Two numbers as the user wrote them, such as `9.9` and `9.11`. */
export type Comparison = readonly [first: string, second: string]

const LARGER = /\b(?:larger|bigger|greater|more)\b|大き/i
const NUMBER = /\d{1,9}(?:\.\d{1,9})?/g

/** Reads the question which of two numbers is larger. */
export function readComparison(text: string): Comparison | undefined {
  const [first, second, ...others] = text.match(NUMBER) ?? []
  const isQuestion = LARGER.test(text) && second !== undefined && others.length === 0
  return isQuestion && first !== undefined ? [first, second] : undefined
}

/** Returns the reasoning and the reply. */
export function compareNumbers(
  [first, second]: Comparison,
  { language, spoken }: Style,
): { readonly thought: string; readonly reply: string } {
  const places = Math.max(decimalsOf(first).length, decimalsOf(second).length)
  const aligned = [first, second].map((written) => Number(written).toFixed(places))
  const [one = '', two = ''] = aligned
  const difference = Math.abs(Number(first) - Number(second)).toFixed(places)
  const isEqual = Number(first) === Number(second)
  const [larger, smaller] = Number(first) > Number(second) ? [first, second] : [second, first]
  const samePart = Math.trunc(Number(first)) === Math.trunc(Number(second))
  const japanese = language === 'ja'
  const thought = japanese
    ? `${first}と${second}を比べます。小数点以下の桁数が違うと間違えやすいので、桁をそろえます：${one}と${two}。`
    : `Compare ${first} and ${second}. Numbers with a different count of decimals are easily misread, so write both with ${String(places)} decimals: ${one} and ${two}.`
  if (isEqual)
    return {
      thought,
      reply: japanese
        ? `${first}と${second}は同じ大きさです。`
        : `${first} and ${second} are equal.`,
    }
  if (spoken)
    return { thought, reply: japanese ? `${larger}のほうが大きいです。` : `${larger} is larger.` }
  const reply = japanese
    ? `**${larger}のほうが大きい**です。\n\n1. ${samePart ? '整数部分は同じです。' : '整数部分が違います。'}\n2. 桁をそろえると、${one}と${two}です。\n3. 差は${difference}なので、${larger} > ${smaller}です。`
    : `**${larger} is larger.**\n\n1. ${samePart ? 'The whole parts are the same.' : 'The whole parts differ.'}\n2. With the same number of decimals they are ${one} and ${two}.\n3. The difference is ${difference}, so ${larger} > ${smaller}.`
  return { thought, reply }
}

function decimalsOf(written: string): string {
  return written.split('.')[1] ?? ''
}
