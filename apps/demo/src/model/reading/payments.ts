import { hasHiragana } from './language.ts'
import { findMoney } from './money.ts'
import type { PaymentDraft } from './payment-draft.ts'
import { readEnglishPayments } from './payments-english.ts'
import { readJapanesePayments } from './payments-japanese.ts'

/** Returns whether the text is about a payment. It may also forbid it or ask about it, see `isNotAnOrder`. */
export function wantsPayment(text: string): boolean {
  if (SURE.test(text)) return true
  return LIKELY.test(text) && (MONEY_WORD.test(text) || findMoney(text).some(hasCurrency))
}

/** Returns whether the payment in the sentence is forbidden, in the past or hypothetical. */
export function isNotAnOrder(sentence: string): boolean {
  return NOT_AN_ORDER.test(sentence)
}

/** Reads the payments of one sentence. Drafts may be incomplete. */
export function readPayments(sentence: string): PaymentDraft[] {
  if (!hasHiragana(sentence)) return readEnglishPayments(sentence)
  const japanese = readJapanesePayments(sentence)
  if (japanese.every(isComplete)) return japanese
  // 「send 50ドル to 花子さん」 is English with Japanese words.
  const english = readEnglishPayments(sentence)
  return english.length > 0 && english.every(isComplete) ? english : japanese
}

/** Returns whether the draft has all required values. */
export function isComplete(draft: PaymentDraft): boolean {
  return draft.amount !== undefined && draft.recipient !== undefined
}

const hasCurrency = ({ currency }: { readonly currency?: string }): boolean =>
  currency !== undefined

// Verbs that always refer to money, except in "pay attention" and "pay a visit".
const SURE =
  /\b(?:pay(?!\s+(?:attention|a visit))|payment|transfer|remit|wire)\b|送金|支払|払って|払い|振り?込|お金を(?:送|渡)/i
// Verbs that refer to money only with an amount or a word for money.
const LIKELY = /\b(?:send|give|tip|lend|donate|owe)\b|送|渡し|あげて|プレゼント|寄付/i
const MONEY_WORD = /\bmoney\b|お金/i
const NOT_AN_ORDER =
  /\b(?:don't|do not|never|did|didn't|have you|has|was|were|what if|what happens|how (?:do|can|does|would)|why)\b|ないで|しない|ましたか|したか|どうやって|なぜ|キャンセル/i
