/** A payment that may be incomplete. */
export interface PaymentDraft {
  readonly amount?: number
  readonly currency?: string
  readonly recipient?: string
  readonly description?: string
}

/** The maximum number of amounts in one sentence. Bounds the time for hostile text. */
export const MAX_PAYMENTS = 20

const HONORIFICS = 'さん|様|さま|くん|君|ちゃん|氏|殿|先生'
const HONORIFIC_END = new RegExp(`(.)(?:${HONORIFICS})$`, 'u')
const HONORIFIC_THEN = new RegExp(`(?:${HONORIFICS})と`, 'gu')
// 「と」 joins two names after kanji, katakana or Latin letters. In さとう or やまと it is part of the name.
const JOINT = /[、,・&]|(?<=[^\p{Script=Hiragana}\s])と(?=.)/u

/** Removes さん, 様, くん, ちゃん… from a name, unless nothing else is left. */
export function stripHonorific(name: string): string {
  return name.trim().replace(HONORIFIC_END, '$1')
}

/** Splits `花子さんと太郎さん` or `Alice、Bob` into names without honorifics. */
export function splitJapaneseNames(list: string): string[] {
  return list
    .replaceAll(HONORIFIC_THEN, '、')
    .split(JOINT)
    .map(stripHonorific)
    .filter((name) => name !== '')
}
