import { findMoney, type Money } from './money.ts'
import { stripHonorific, MAX_PAYMENTS, type PaymentDraft } from './payment-draft.ts'

/** Reads `send $30 to Alice and $40 to Bob for lunch`, `pay Bob 12 euros`, `send Ann and Bob $5 each`. */
export function readEnglishPayments(sentence: string): PaymentDraft[] {
  const tokens = readTokens(sentence)
  const amounts = amountIndexes(tokens).slice(0, MAX_PAYMENTS)
  if (amounts.length === 0) return [withoutAmount(tokens)]
  const drafts: PaymentDraft[] = []
  let start = 0
  for (const index of amounts) {
    // The number is part of the description of an earlier payment: "for 2 tickets".
    if (index < start) continue
    const tail = readTail({ sentence, tokens }, index + 1)
    const names = firstNonEmpty([
      () => tail.names,
      () => namesBefore(tokens, start, index),
      () => namesAfterTo(tokens.slice(start, index)),
    ])
    drafts.push(...namesOrNone(names).map((name) => draftOf(tokens[index], name, tail.description)))
    start = tail.end
  }
  return drafts
}

type Token =
  | { readonly kind: 'money'; readonly money: Money; readonly start: number; readonly end: number }
  | { readonly kind: 'word'; readonly text: string; readonly start: number; readonly end: number }
  | { readonly kind: 'mark'; readonly start: number; readonly end: number }

// A word may contain dots, apostrophes and @, which keeps names and mail addresses together. A mark is any other sign.
const WORD_OR_MARK = /[\p{L}\p{N}_@](?:[\p{L}\p{M}\p{N}_@.'+-]*[\p{L}\p{M}\p{N}_@])?|[^\s]/gu
const TITLE = /^(?:mr|mrs|ms|dr)$/i

function readTokens(sentence: string): Token[] {
  const tokens: Token[] = []
  let from = 0
  for (const money of findMoney(sentence)) {
    tokens.push(...wordTokens(sentence, from, money.start))
    tokens.push({ kind: 'money', money, start: money.start, end: money.end })
    from = money.end
  }
  tokens.push(...wordTokens(sentence, from, sentence.length))
  return tokens
}

function wordTokens(sentence: string, from: number, to: number): Token[] {
  const tokens: Token[] = []
  for (const { 0: text, index } of sentence.slice(from, to).matchAll(WORD_OR_MARK)) {
    const place = { start: from + index, end: from + index + text.length }
    const previous = tokens.at(-1)
    const closesTitle = text === '.' && previous?.kind === 'word' && TITLE.test(previous.text)
    if (closesTitle) continue
    tokens.push(
      /[\p{L}\p{N}@]/u.test(text) ? { kind: 'word', text, ...place } : { kind: 'mark', ...place },
    )
  }
  return tokens
}

/** Returns the amounts with a currency, or plain numbers if there are none. */
function amountIndexes(tokens: readonly Token[]): number[] {
  const all = tokens.flatMap((token, index) => (token.kind === 'money' ? [{ token, index }] : []))
  const priced = all.filter(({ token }) => token.money.currency !== undefined)
  return (priced.length > 0 ? priced : all).map(({ index }) => index)
}

function draftOf(
  token: Token | undefined,
  recipient: string | undefined,
  description: string,
): PaymentDraft {
  const money = token?.kind === 'money' ? token.money : undefined
  return {
    ...(money && { amount: money.amount, currency: money.currency ?? 'USD' }),
    ...(recipient !== undefined && { recipient }),
    ...(description !== '' && { description }),
  }
}

function withoutAmount(tokens: readonly Token[]): PaymentDraft {
  const verb = tokens.findIndex((token) => VERBS.has(wordOf(token)))
  const [recipient] = firstNonEmpty([
    () => namesAfterTo(tokens),
    () => (verb === -1 ? [] : readNames(tokens, verb + 1).names),
  ])
  return draftOf(undefined, recipient, '')
}

interface Tail {
  readonly names: readonly string[]
  readonly description: string
  readonly end: number
}

/** Reads `to NAMES` and `for DESCRIPTION` after an amount, in either order. */
function readTail(
  { sentence, tokens }: { sentence: string; tokens: readonly Token[] },
  from: number,
): Tail {
  let names: readonly string[] = []
  let description = ''
  let index = from
  for (;;) {
    const word = wordOf(tokens[index])
    if (word === 'each' || word === 'apiece') index += 1
    else if (word === 'to' && names.length === 0) {
      const list = readNames(tokens, index + 1)
      if (list.names.length === 0) break
      names = list.names
      index = list.next
    } else if (word === 'for' && description === '') {
      const end = descriptionEnd(tokens, index + 1, names.length > 0)
      description = textBetween(sentence, tokens[index + 1], tokens[end - 1])
      index = Math.max(end, index + 1)
    } else break
  }
  return { names, description, end: index }
}

function descriptionEnd(tokens: readonly Token[], from: number, recipientKnown: boolean): number {
  const morePayments = tokens.slice(from).some(({ kind }) => kind === 'money')
  const ends = (token: Token): boolean => {
    const word = wordOf(token)
    if (token.kind === 'mark' || word === 'please') return true
    return (word === 'to' && !recipientKnown) || (word === 'and' && morePayments)
  }
  const end = tokens.findIndex((token, index) => index >= from && ends(token))
  return end === -1 ? tokens.length : end
}

function textBetween(sentence: string, first: Token | undefined, last: Token | undefined): string {
  if (first === undefined || last === undefined || last.end <= first.start) return ''
  const text = sentence.slice(first.start, last.end)
  return PRONOUNS.has(text.toLowerCase()) ? '' : text
}

/** Reads the names before an amount: `pay Bob $5`, `send Ann and Bob $5`, `… and Bob $40`. */
function namesBefore(tokens: readonly Token[], from: number, amount: number): readonly string[] {
  const before = tokens.slice(from, amount)
  const verb = before.findLastIndex((token) => VERBS.has(wordOf(token)))
  const start = before.findIndex(
    (token, index) => index > verb && !LEAD_INS.has(wordOf(token)) && token.kind === 'word',
  )
  if (start === -1) return []
  const list = readNames(before, start)
  return list.next === before.length ? list.names : []
}

function namesAfterTo(tokens: readonly Token[]): readonly string[] {
  for (const [index, token] of tokens.entries()) {
    if (wordOf(token) !== 'to') continue
    const { names } = readNames(tokens, index + 1)
    if (names.length > 0) return names
  }
  return []
}

interface NameList {
  readonly names: readonly string[]
  readonly next: number
}

/** Reads `Alice` or `Alice, Bob and Carol`. A name right before an amount belongs to that amount. */
function readNames(tokens: readonly Token[], from: number): NameList {
  const names: string[] = []
  let next = from
  let index = afterEach(tokens, from)
  for (;;) {
    const name = readName(tokens, index)
    const isFirst = names.length === 0
    if (name === undefined || (!isFirst && !name.isProper)) break
    if (!isFirst && tokens[name.next]?.kind === 'money') break
    names.push(name.text)
    next = name.next
    index = afterJoint(tokens, next)
    if (index === next) break
  }
  return { names, next }
}

/** Returns the position after `each of` or `both`, or the same position. */
function afterEach(tokens: readonly Token[], from: number): number {
  const word = wordOf(tokens[from])
  if (word === 'both') return from + 1
  return word === 'each' && wordOf(tokens[from + 1]) === 'of' ? from + 2 : from
}

/** Returns the position after `,`, `&`, `and` or `, and`, or the same position. */
function afterJoint(tokens: readonly Token[], from: number): number {
  let index = from
  while (tokens[index]?.kind === 'mark' || wordOf(tokens[index]) === 'and') index += 1
  return index
}

interface Name {
  readonly text: string
  readonly next: number
  /** Whether it is certainly a name: capitalised, not Latin, or an address. */
  readonly isProper: boolean
}

const MAX_NAME_WORDS = 4
const LONGEST_NAME = 80

function readName(tokens: readonly Token[], from: number): Name | undefined {
  const first = tokens[from]
  if (first?.kind !== 'word' || NO_NAME.has(wordOf(first)) || PRONOUNS.has(wordOf(first))) {
    return undefined
  }
  const isProper = PROPER.test(first.text)
  const next = nameEnd(tokens, from, isProper)
  const ownsThing = OWN_THINGS.has(wordOf(tokens[next]))
  const isOnlyArticle = next === from + 1 && ARTICLES.has(wordOf(first))
  // "my account" is not a recipient. "Alice's account" is Alice.
  if (isOnlyArticle || (ownsThing && !isProper)) return undefined
  const parts = tokens
    .slice(from, next)
    .flatMap((token) => (token.kind === 'word' ? [token.text] : []))
  const text = stripHonorific(parts.join(' ').replace(/'s$/, ''))
  return text.length > LONGEST_NAME
    ? undefined
    : { text, next: ownsThing ? next + 1 : next, isProper }
}

/** A proper name continues while words are capitalised, "my best friend" until a word that cannot be part of it. */
function nameEnd(tokens: readonly Token[], from: number, isProper: boolean): number {
  const belongs = isProper ? belongsToProperName : belongsToPlainName
  const isLong = isProper || ARTICLES.has(wordOf(tokens[from]))
  const limit = from + (isLong ? MAX_NAME_WORDS : 1)
  let end = from + 1
  while (end < limit && belongs(tokens[end])) end += 1
  return end
}

const PROPER = /^\p{Lu}|^[^\p{Script=Latin}]|@/u
const belongsToProperName = (token: Token | undefined): boolean =>
  token?.kind === 'word' && PROPER.test(token.text) && !NO_NAME.has(wordOf(token))
const belongsToPlainName = (token: Token | undefined): boolean =>
  token?.kind === 'word' && !NO_NAME.has(wordOf(token)) && !OWN_THINGS.has(wordOf(token))

const words = (list: string): ReadonlySet<string> => new Set(list.split(' '))
const VERBS = words('pay send give transfer wire remit tip lend donate owe')
const ARTICLES = words('my the our your his their a an')
const OWN_THINGS = words("account wallet's wallet")
const PRONOUNS = words('me you it him her them us someone somebody everyone this that')
const LEAD_INS = words('and also then please to now first')
const NO_NAME = new Set([
  ...VERBS,
  ...LEAD_INS,
  ...words(
    'for from with via using on by in at as of or if but so because when today tomorrow tonight',
  ),
  ...words(
    'what where who how why tell show check get make do be have know see change play let thanks each exactly only about',
  ),
  ...words("another money payment payments is are the's i i'd i'll can could would will weather"),
])

function wordOf(token: Token | undefined): string {
  return token?.kind === 'word' ? token.text.toLowerCase() : ''
}

function namesOrNone(names: readonly string[]): readonly (string | undefined)[] {
  return names.length === 0 ? [undefined] : names
}

function firstNonEmpty(readers: readonly (() => readonly string[])[]): readonly string[] {
  for (const read of readers) {
    const names = read()
    if (names.length > 0) return names
  }
  return []
}
