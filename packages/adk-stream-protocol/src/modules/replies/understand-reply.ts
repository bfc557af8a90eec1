/**
 * The whole messages that approve. Words that people also use to say that they have read something ("ok", "sure", 「いいです」) are not
 * in the lists: they decide nothing.
 */
const APPROVALS: readonly string[] = [
  'yes',
  'yes please',
  'yes do it',
  'yes please do',
  'yes please do it',
  'yes send it',
  'yes please send it',
  'yes go ahead',
  'yes please go ahead',
  'yes approve',
  'yes approve it',
  'yes i approve',
  'go ahead',
  'please go ahead',
  'approve',
  'approve it',
  'approved',
  'i approve',
  'i approve it',
  'はい',
  'はいどうぞ',
  'はいお願い',
  'はいお願いします',
  'はい送って',
  'はい送ってください',
  'はい送信してください',
  'はい進めて',
  'はい進めてください',
  'はい実行して',
  'はい実行してください',
  'はい承認',
  'はい承認します',
  'お願いします',
  '進めてください',
  '実行してください',
  '承認',
  '承認します',
  '承認する',
]

/** The whole messages that deny. */
const DENIALS: readonly string[] = [
  'no',
  'no thanks',
  'no thank you',
  "no don't",
  'no do not',
  "no don't do it",
  'no do not do it',
  "no don't send it",
  'no do not send it',
  'no cancel',
  'no cancel it',
  "don't",
  'do not',
  "don't do it",
  'do not do it',
  "please don't",
  'please do not',
  "don't send it",
  'do not send it',
  'cancel',
  'cancel it',
  'please cancel',
  'please cancel it',
  'deny',
  'deny it',
  'i deny',
  'reject',
  'reject it',
  'いいえ',
  'いいえ結構です',
  'いいえやめて',
  'いいえやめてください',
  'いいえ送らないで',
  'いいえ送らないでください',
  'いいえキャンセル',
  'いいえキャンセルして',
  'いいえキャンセルしてください',
  'やめて',
  'やめてください',
  '送らないで',
  '送らないでください',
  'キャンセル',
  'キャンセルして',
  'キャンセルしてください',
  'キャンセルします',
  '中止して',
  '中止してください',
  '却下',
  '却下します',
  '拒否します',
]

const FORMS: ReadonlyMap<string, 'approve' | 'deny'> = new Map([
  ...APPROVALS.map((form) => [form, 'approve'] as const),
  ...DENIALS.map((form) => [form, 'deny'] as const),
])

/** Longer than the longest form, with some space for punctuation. */
const MAX_LENGTH = 60

/**
 * Returns what a message decides, or undefined if it decides nothing. Only whole messages of the lists above decide. Case, the width of
 * characters, commas and one `.`, `!` or `。` at the end do not matter; everything else does.
 */
export function understandReply(message: string): 'approve' | 'deny' | undefined {
  if (message.length > MAX_LENGTH) return undefined
  const text = message.normalize('NFKC').toLowerCase().replaceAll('’', "'").trim()
  // A message of several lines is not one short reply.
  if (/[\r\n\t\u2028\u2029]/.test(text)) return undefined
  const words = text.replace(/ *[.!。]$/, '').replace(/ *[,、] *| +/g, ' ')
  const isJapanese = /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]/u.test(words)
  return FORMS.get(isJapanese ? words.replaceAll(' ', '') : words)
}
