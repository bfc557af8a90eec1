import { findMoney, type Money } from './money.ts'
import { splitJapaneseNames, MAX_PAYMENTS, type PaymentDraft } from './payment-draft.ts'

/** Reads `Aliceに30ドル、Bobに40ドル`, `100ドルをAliceに`, `AliceとBobに5ドルずつ`, `Bobに昼食代として12ユーロ`. */
export function readJapanesePayments(sentence: string): PaymentDraft[] {
  const amounts = priced(findMoney(sentence)).slice(0, MAX_PAYMENTS)
  if (amounts.length === 0) {
    const [recipient] = namesBehind(sentence).names
    return [{ ...(recipient !== undefined && { recipient }) }]
  }
  const drafts: PaymentDraft[] = []
  let cursor = 0
  for (const [index, money] of amounts.entries()) {
    const before = sentence.slice(Math.min(cursor, money.start), money.start)
    const after = sentence.slice(money.end, amounts[index + 1]?.start)
    const each = EACH.test(after)
    const ahead = namesAhead(before, each)
    const behind = ahead.length > 0 ? NOBODY : namesBehind(after)
    const names = ahead.length > 0 ? ahead : behind.names
    const description = descriptionIn(before, after.slice(0, behind.end))
    cursor = money.end + behind.end
    drafts.push(
      ...recipientsOf(names).map((name) => ({ ...priceOf(money), ...name, ...description })),
    )
  }
  return drafts
}

function priced(amounts: readonly Money[]): readonly Money[] {
  const withCurrency = amounts.filter(({ currency }) => currency !== undefined)
  return withCurrency.length > 0 ? withCurrency : amounts
}

function priceOf({ amount, currency }: Money): PaymentDraft {
  return { amount, currency: currency ?? 'USD' }
}

function recipientsOf(names: readonly string[]): readonly PaymentDraft[] {
  return names.length === 0 ? [{}] : names.map((recipient) => ({ recipient }))
}

const EACH = /^\s*[ずづ]つ/
// Names are short. The limit keeps a page-long sentence fast.
const REACH = 80

/** Reads 「花子さんに」 before the amount: the name before the last に or へ. */
function namesAhead(before: string, each: boolean): string[] {
  let text = before.slice(-REACH)
  for (;;) {
    const particle = Math.max(text.lastIndexOf('に'), text.lastIndexOf('へ'))
    if (particle === -1) return []
    text = text.slice(0, particle)
    const names = readNameList(text.replace(ADDRESSED, ''), each)
    if (names.length > 0) return names
  }
}

const NOBODY = { names: [], end: 0 }
// 「をAliceに」 after the amount. The particle must precede a verb, punctuation or the end, so that くにこ is not split.
const ADDRESSEE =
  /([^、。,]{1,60}?)(?:宛て?|あて)?[にへ](?:も|は)?(?=\s*(?:送|支払|払|振|渡|あげ|お|を|プレゼント|寄付|[、,。]|$))/u

function namesBehind(after: string): { names: readonly string[]; end: number } {
  const match = ADDRESSEE.exec(after.slice(0, REACH))
  if (match === null) return NOBODY
  const names = readNameList(match[1] ?? '', false)
  return names.length === 0 ? NOBODY : { names, end: match.index + match[0].length }
}

const ADDRESSED = /(?:宛て?|あて)$/
// Words before the first name of a list, longest first.
const LEAD_IN =
  /^(?:それでは|それから|そして|その後|では|じゃあ|また|あと|まず|次に|私は|僕は|から|です|て|で|を|と|の|も)+/u
// Words before に that are not recipients.
const NOT_A_NAME =
  /^(?:今日中|本日中|今|すぐ|今すぐ|至急|早急|一緒|代わり|ついで|次|先|最後|最初|追加|さら|特別)$|ため$|天気|現在地|トラック|BGM/u
function readNameList(text: string, each: boolean): string[] {
  const list = each ? text : lastWords(text)
  return splitJapaneseNames(list.trim().replace(LEAD_IN, ''))
    .map((name) => name.replace(LEAD_IN, ''))
    .filter((name) => name !== '' && name.length <= 40 && !NOT_A_NAME.test(name))
}

const BORDER = new Set('\t\n 、,。「」()を')

/** The end of the text that can be a list of names. It includes spaces between Latin words: 「Alice Smith」. */
function lastWords(text: string): string {
  let start = text.length
  while (start > 0) {
    const character = text.charAt(start - 1)
    const insideName = character === ' ' && LATIN_JOINT.test(text.slice(start - 2, start + 1))
    if (BORDER.has(character) && !insideName) break
    start -= 1
  }
  return text.slice(start)
}

const LATIN_JOINT = /^[a-z] [A-Z]$/

// 「昼食代として」 near the amount, or a word for a fee right before it: 「昼食代12ユーロ」.
const PURPOSE = /([^、。,\sにへをは]{1,30})として/u
const FEE = /([^、。,\sにへをは]{1,30}(?:代|料|費|分))[のをで]?\s*$/u

function descriptionIn(before: string, after: string): PaymentDraft {
  const near = before.slice(-REACH)
  const found = PURPOSE.exec(near) ?? PURPOSE.exec(after.slice(0, REACH)) ?? FEE.exec(near)
  return found?.[1] === undefined ? {} : { description: found[1] }
}
