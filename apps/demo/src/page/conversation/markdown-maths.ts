import { Lexer, Marked, type Tokens, type TokenizerExtension } from 'marked'

/** A formula in LaTeX. */
export interface MathsToken extends Tokens.Generic {
  readonly type: 'maths'
  readonly raw: string
  readonly text: string
  /** Whether the formula stands in a line of its own. */
  readonly isBlock: boolean
}

export function isMaths(token: Tokens.Generic): token is MathsToken {
  return token.type === 'maths'
}

/** Creates a lexer of Markdown that also reads formulas: `$$…$$` and `\[…\]`, in a line `$…$` and `\(…\)`. */
export function createLexer(): Lexer {
  return new Lexer(options)
}

const BLOCK = /^ {0,3}(?:\$\$((?:[^$]|\$(?!\$))+)\$\$|\\\[([^]+?)\\\])[ \t]*(?:\n+|$)/
const INLINE = /^(?:\$\$([^$\n]+)\$\$|\\\(([^\n]+?)\\\)|\\\[([^\n]+?)\\\])/
/** No space inside the dollars, and no digit behind them. */
const BETWEEN_DOLLARS = /^\$(?!\s)([^$\n]+?)(?<!\s)\$(?![\d$])/

const block: TokenizerExtension = {
  name: 'maths',
  level: 'block',
  start: (text) => /^ {0,3}(?:\$\$|\\\[)/m.exec(text)?.index,
  tokenizer(text) {
    const match = BLOCK.exec(text)
    return match ? toToken(match[0], match[1] ?? match[2] ?? '', true) : undefined
  },
}

const inline: TokenizerExtension = {
  name: 'maths',
  level: 'inline',
  start: (text) => /\$|\\[([]/.exec(text)?.index,
  tokenizer(text) {
    const match = INLINE.exec(text)
    if (match) return toToken(match[0], match[1] ?? match[2] ?? match[3] ?? '', false)
    const between = BETWEEN_DOLLARS.exec(text)
    if (!between?.[1] || !isFormula(between[1])) return undefined
    return toToken(between[0], between[1], false)
  },
}

// Of its own, so that nothing else is changed.
const options = { ...new Marked({ extensions: [block, inline] }).defaults }

/** Tells a formula from amounts of money: `$5 or 10$` is none. */
function isFormula(text: string): boolean {
  return /[\\^_={}<>+]/.test(text) || /^[a-z]$/i.test(text)
}

function toToken(raw: string, text: string, isBlock: boolean): MathsToken {
  return { type: 'maths', raw, text: text.trim(), isBlock }
}
