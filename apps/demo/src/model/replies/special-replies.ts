import type { Action } from 'gemini-emulator'
import { normalise } from '../reading/language.ts'
import { naturalPieces } from './render.ts'
import type { Style } from './results.ts'
import type { Language } from '../../demo-info.ts'

/** Special replies that the user can request: sources, executed code, a long reply, errors. */
export type SpecialReply = 'tea' | 'sources' | 'code' | 'long' | 'busy' | 'error'

/** Returns the special reply that a text requests, or undefined. */
export function readSpecialReply(text: string): SpecialReply | undefined {
  const plain = normalise(text)
  return REQUESTS.find(({ words }) => words.test(plain))?.reply
}

/** Returns the actions of a special reply. */
export function createSpecialReply(reply: SpecialReply, { language, spoken }: Style): Action[] {
  const texts = TEXTS[language]
  switch (reply) {
    case 'tea':
      return [
        say(spoken ? texts.teaSpoken : texts.tea),
        { type: 'ground', sources: TEA_SOURCES[language] },
      ]
    case 'sources':
      return [say(texts.sources), { type: 'ground', sources: SOURCES }]
    case 'code':
      return [say(texts.beforeCode), ...(spoken ? [] : [CODE]), say(texts.afterCode)]
    case 'long':
      return [say(texts.long(spoken ? SPOKEN_SENTENCES : WRITTEN_SENTENCES))]
    case 'busy':
      return [{ type: 'fail', status: 429, message: EXHAUSTED, retryAfterSeconds: 10 }]
    case 'error':
      return [
        say(texts.beforeError),
        { type: 'fail', status: 500, message: 'An internal error has occurred.' },
      ]
  }
}

// Google's message. A Live client can recognise a quota error only by this text.
const EXHAUSTED = 'Resource has been exhausted (e.g. check quota).'

const REQUESTS: readonly { readonly reply: SpecialReply; readonly words: RegExp }[] = [
  {
    reply: 'busy',
    words: /\brate.?limit|\btoo many requests\b|\b(?:be|are you|act) busy\b|レート制限|混雑|忙し/i,
  },
  {
    reply: 'error',
    words:
      /\b(?:cause|simulate|show|make|give|throw|raise)\s(?:me\s)?(?:an?\s|some\s)?errors?\b|エラーを?(?:起こ|出し|発生|見せ)/i,
  },
  {
    reply: 'long',
    words:
      /\b(?:long|longer) (?:answer|story|text|reply|speech)\b|長い(?:話|答え|回答|返事|文章|物語)/i,
  },
  {
    reply: 'code',
    words:
      /\b(?:run|execute) (?:some |a |this |the )?(?:code|python|program)\b|(?:コード|プログラム|python)を?実行/i,
  },
  { reply: 'tea', words: /\bsearch\b.*\btea\b|お茶.*(?:検索|調べ)/i },
  {
    reply: 'sources',
    words: /\bsearch\b|\blook (?:it |this |that )?up\b|\bsources?\b|検索|調べて|出典/i,
  },
]

// Reserved example domains.
const SOURCES = [
  { uri: 'https://example.com/', title: 'Example Domain' },
  { uri: 'https://example.org/search', title: 'Example Search' },
]

const TEA_SOURCES = {
  en: [
    { uri: 'https://example.com/tea/china', title: 'Tea in ancient China (sample source)' },
    { uri: 'https://example.com/tea/japan', title: 'Eisai and tea in Japan (sample source)' },
    { uri: 'https://example.com/tea/europe', title: 'How tea came to Europe (sample source)' },
  ],
  ja: [
    { uri: 'https://example.com/tea/china', title: '古代中国のお茶（見本の出典）' },
    { uri: 'https://example.com/tea/japan', title: '栄西と日本のお茶（見本の出典）' },
    { uri: 'https://example.com/tea/europe', title: 'ヨーロッパへのお茶の伝来（見本の出典）' },
  ],
} as const satisfies Record<Language, unknown>

const CODE: Action = {
  type: 'code',
  language: 'PYTHON',
  code: 'print(sum(n * n for n in range(1, 11)))',
  outcome: 'OUTCOME_OK',
  output: '385\n',
}

const WRITTEN_SENTENCES = 40
// About half a minute of speech, to try an interruption.
const SPOKEN_SENTENCES = 6

const TEXTS = {
  en: {
    teaSpoken: 'Tea comes from China. It reached Japan with monks, and Europe with Dutch ships.',
    tea: `Tea has been drunk for more than two thousand years.

- **China:** Tea was first a medicine. In the eighth century Lu Yu wrote *The Classic of Tea*, the first book about it.
- **Japan:** Monks brought tea from China. In 1191 the monk Eisai returned with seeds, and tea spread with Zen.
- **Europe:** Dutch ships carried tea from about 1610. By the eighteenth century it was the daily drink of Britain.

This reply is scripted, and its sources are samples.`,
    sources:
      'I am an emulator and search nothing, but this is what an answer with sources looks like.',
    beforeCode: 'Let me compute the sum of the first ten squares. ',
    afterCode: 'It is 385.',
    long: (sentences: number) =>
      count(sentences)
        .map((n) => `This is sentence ${n} of ${sentences}, and you may stop me at any time.`)
        .join(' '),
    beforeError: 'Something is about to go wrong: ',
  },
  ja: {
    teaSpoken: 'お茶は中国で生まれ、僧が日本に、オランダの船がヨーロッパに伝えました。',
    tea: `お茶は二千年以上前から飲まれています。

- **中国：** 初めは薬として使われました。八世紀に陸羽が、最初の茶の本『茶経』を書きました。
- **日本：** 僧が中国から伝えました。1191年に栄西が茶の種を持ち帰り、禅とともに広まりました。
- **ヨーロッパ：** 1610年ごろからオランダの船が運びました。十八世紀には英国で日常の飲み物になりました。

この回答は用意されたもので、出典は見本です。`,
    sources: 'エミュレーターなので実際の検索はしませんが、出典のある答えはこのようになります。',
    beforeCode: '1から10までの二乗の和を計算します。',
    afterCode: '答えは385です。',
    long: (sentences: number) =>
      count(sentences)
        .map((n) => `これは${sentences}文のうちの${n}文目です。いつでも止めていただけます。`)
        .join(''),
    beforeError: 'これからエラーが起こります。',
  },
} as const satisfies Record<Language, unknown>

function count(to: number): number[] {
  return Array.from({ length: to }, (_, index) => index + 1)
}

function say(text: string): Action {
  return { type: 'say', text, pieces: naturalPieces(text) }
}
