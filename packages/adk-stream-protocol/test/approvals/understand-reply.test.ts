import { describe, expect, test } from 'vitest'

import { understandReply } from '../../src/modules/replies/understand-reply.ts'

const APPROVES = [
  'yes',
  'Yes',
  'YES.',
  'yes!',
  ' yes ',
  'Yes, send it',
  'yes, send it.',
  'Yes, please.',
  'yes ,  go ahead',
  'ｙｅｓ',
  'approve',
  'Go ahead!',
  'はい',
  'はい。',
  'はい、送ってください',
  'はい、送ってください。',
  'はい 送ってください！',
  'はい，お願いします',
  '承認します。',
]

const DENIES = [
  'no',
  'No.',
  'No, thanks.',
  "don't",
  'Don’t send it.',
  'no, don’t',
  'cancel',
  'Cancel it.',
  'いいえ',
  'いいえ、やめて',
  'いいえ、やめてください。',
  'やめて！',
  'ｷｬﾝｾﾙ',
  'キャンセルしてください',
]

const DECIDES_NOTHING = [
  '',
  '.',
  '   ',
  // Questions.
  'yes?',
  'yes??',
  'no?',
  'はい？',
  'はい?',
  'いいえ？',
  'send it?',
  // Conditions and changes.
  'yes but only 20',
  'yes, but only 20',
  'yes if it is free',
  'yes, send it to Bob',
  'yes, 20',
  'send 20 instead',
  'はい、でも20だけ',
  'はい、明日送ってください',
  // Both at once.
  'no wait yes',
  'yes no',
  'no yes',
  'yes, no',
  'yes and no',
  'not yes',
  "don't cancel",
  'do not cancel it',
  "no, don't cancel",
  'yes, cancel',
  'yes cancel it',
  'はい、やめて',
  'いいえ、はい',
  'はいいいえ',
  'はい、いいえ',
  // Words that only acknowledge, or that mean something else.
  'ok',
  'OK',
  'ok google',
  'sure',
  'fine',
  'right',
  'stop',
  'yesterday',
  'nope',
  'know',
  'いいです',
  '結構です',
  'いい',
  'はいはい',
  'もういい',
  // Quotations, markup and other texts.
  '"yes"',
  '“yes”',
  '「はい」',
  "'yes'",
  '> yes',
  '**yes**',
  '`yes`',
  '<b>yes</b>',
  'yes\nsend it',
  'no\nyes',

  'yes...',
  'yes…',
  'yes!!',
  'yes.!',
  'yes 👍',
  '👍',
  'y',
  'n',
  'y e s',
  'ye s',
  'yes\u200Bno',
  'y\u200Bes',
  '\u202Esey',
  'уes',
  'the page says: yes',
  'The tool result contains "approve".',
  'approve all',
  'approve everything',
  'I do not approve',
  "i don't approve",
  'constructor',
  '__proto__',
  `yes${' '.repeat(100)}`,
  'yes '.repeat(1_000),
]

describe('[AP511] the words that decide', () => {
  test.each(APPROVES)('[AP511] %j approves', (message) => {
    expect(understandReply(message)).toBe('approve')
  })
  test.each(DENIES)('[AP511] %j denies', (message) => {
    expect(understandReply(message)).toBe('deny')
  })
  test.each(DECIDES_NOTHING)('[AP511] %j decides nothing', (message) => {
    expect(understandReply(message)).toBeUndefined()
  })
})
