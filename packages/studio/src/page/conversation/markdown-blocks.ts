import { type Links, type Token, Lexer, Marked, type Tokens, type TokenizerExtension } from 'marked'
import remend from 'remend'

/** The blocks of a Markdown text, and the targets of its reference links. */
export interface MarkdownBlocks {
  readonly blocks: readonly Token[]
  /** The same object until a target is added. */
  readonly links: Links
}

/** Splits a growing Markdown text into blocks. Only the last block is read again when text is added. */
export class BlockLexer {
  /** The text of the blocks that cannot change any more. */
  #settledText = ''
  #settled: readonly Token[] = []
  #links: Links = {}

  /** If more text follows, completes emphasis, links and code that are not closed yet. */
  lex(source: string, { streaming }: { readonly streaming: boolean }): MarkdownBlocks {
    const text = source.replaceAll(/\r\n?/g, '\n')
    if (!text.startsWith(this.#settledText)) this.#reset()
    const rest = this.#lexBlocks(text.slice(this.#settledText.length))
    // A later line can only change the last block.
    const openAt = rest.findLastIndex(({ type }) => type !== 'space')
    const open = openAt < 0 ? rest : rest.slice(openAt)
    const openLength = open.reduce((length, { raw }) => length + raw.length, 0)
    this.#settled = [...this.#settled, ...rest.slice(0, Math.max(0, openAt))]
    this.#settledText = text.slice(0, text.length - openLength)
    const last = streaming ? this.#complete(open) : open
    return { blocks: [...this.#settled, ...last], links: this.#links }
  }

  #reset(): void {
    this.#settledText = ''
    this.#settled = []
    this.#links = {}
  }

  #lexBlocks(text: string): Token[] {
    const lexer = createLexer()
    lexer.tokens.links = { ...this.#links }
    // Reads no inline text: each block does that when it is rendered.
    const tokens = lexer.blockTokens(text, lexer.tokens)
    if (Object.keys(lexer.tokens.links).length > Object.keys(this.#links).length)
      this.#links = lexer.tokens.links
    return tokens
  }

  #complete(open: readonly Token[]): readonly Token[] {
    const [block] = open
    if (!block || block.type === 'code' || block.type === 'space') return open
    const completed = remend(block.raw)
    return completed === block.raw ? open : this.#lexBlocks(completed)
  }
}

/** Splits the text of a block into its inline parts. */
export function lexInline(text: string, links: Links): Token[] {
  const lexer = createLexer()
  lexer.tokens.links = links
  return lexer.inlineTokens(text)
}

const NAMED: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: '\u00A0',
  hellip: '…',
  mdash: '—',
  ndash: '–',
  copy: '©',
}

/** Replaces character references such as `&amp;`. Unknown ones stay as they are. */
export function decodeReferences(text: string): string {
  if (!text.includes('&')) return text
  return text.replaceAll(
    /&(?:#(\d{1,7})|#x([\da-f]{1,6})|([a-z]{2,8}));/gi,
    (whole: string, decimal?: string, hexadecimal?: string, name?: string) => {
      if (name !== undefined) return NAMED[name] ?? whole
      const code = decimal === undefined ? Number(`0x${hexadecimal}`) : Number(decimal)
      return code > 0 && code <= 0x10_ff_ff ? String.fromCodePoint(code) : whole
    },
  )
}

/** A formula in LaTeX. */
export interface MathsToken extends Tokens.Generic {
  readonly type: 'maths'
  readonly raw: string
  readonly text: string
  /** Whether the formula is on a separate line. */
  readonly isBlock: boolean
}

export function isMaths(token: Tokens.Generic): token is MathsToken {
  return token.type === 'maths'
}

/** Creates a lexer of Markdown that also reads formulas: `$$…$$` and `\[…\]`, in a line `$…$` and `\(…\)`. */
function createLexer(): Lexer {
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

// A separate instance: extensions of the shared one would apply to all uses of marked.
const options = { ...new Marked({ extensions: [block, inline] }).defaults }

/** Distinguishes a formula from amounts of money: `$5 or 10$` is not a formula. */
function isFormula(text: string): boolean {
  return /[\\^_={}<>+]/.test(text) || /^[a-z]$/i.test(text)
}

function toToken(raw: string, text: string, isBlock: boolean): MathsToken {
  return { type: 'maths', raw, text: text.trim(), isBlock }
}
