import { normalise } from './language.ts'
import { readSpecialReply } from '../replies/special-replies.ts'

export type Topic =
  | 'your-name'
  | 'name-given'
  | 'balance'
  | 'leave'
  | 'help'
  | 'identity'
  | 'markdown'
  | 'think'
  | 'thanks'
  | 'goodbye'
  | 'greeting'

/** Returns the topic of small talk, or undefined for other texts. */
export function topicOf(text: string): Topic | undefined {
  const plain = normalise(text)
  return TOPICS.find(({ words }) => words.test(plain))?.topic
}

/** Returns whether the text is small talk. */
export function isSmallTalk(text: string): boolean {
  return topicOf(text) !== undefined || readSpecialReply(text) !== undefined
}

/** Returns the user's name from the latest text that has it. */
export function rememberedName(texts: readonly string[]): string | undefined {
  return texts.map(givenName).findLast((name) => name !== undefined)
}

/** Returns the subject of a requested picture, or undefined. */
export function readPictureSubject(text: string): string | undefined {
  const plain = normalise(text)
  const match = ENGLISH_PICTURE.exec(plain) ?? JAPANESE_PICTURE.exec(plain)
  return match
    ?.slice(1)
    .find((subject) => subject !== undefined)
    ?.trim()
}

// The first match is used. Questions precede the statements that they contain.
const TOPICS: readonly { readonly topic: Topic; readonly words: RegExp }[] = [
  {
    topic: 'your-name',
    words:
      /\bwhat(?:'s| is) my name\b|\b(?:know|remember) my name\b|\bwho am i\b|(?:私|僕|俺)の名前(?:は|を|って)(?:何|なん|覚え|知|\?|$)|私は誰/i,
  },
  {
    topic: 'name-given',
    words:
      /\bmy name is\b|\bcall me \p{L}|(?:私|僕|俺)?の?名前は.{1,30}(?:です|だよ|と申します|といいます)|と呼んで/iu,
  },
  {
    topic: 'leave',
    words:
      /\b(?:don't|do not|never) (?:send|pay|transfer|wire|give|do)\b|\bnever mind\b|(?:送ら|払わ|し)ないで|やめて/i,
  },
  {
    topic: 'balance',
    words: /\b(?:my|wallet|remaining) balance\b|\bhow much (?:money )?do i have\b|残高/i,
  },
  {
    topic: 'help',
    words: /\bwhat can (?:you|i)\b|\bhelp\b|何ができ|なにができ|できること|使い方|ヘルプ|助けて/i,
  },
  {
    topic: 'identity',
    words:
      /\b(?:who|what) are you\b|\bare you (?:a |an )?(?:real|human|ai|bot|robot|gemini|emulator)\b|\byour name\b|あなたは(?:誰|だれ|何)|あなたの名前|自己紹介|君は誰/i,
  },
  {
    topic: 'markdown',
    words:
      /\bmarkdown\b|\bcode (?:example|sample|block|snippet)\b|\b(?:show|write) (?:me )?(?:some |a )?(?:code|table)\b|マークダウン|コードの?例|サンプルコード|表を見せて/i,
  },
  {
    topic: 'think',
    words:
      /\bthink\b|\bstep by step\b|\bexplain your reasoning\b|考えて|段階的に|ステップごと|順を追って/i,
  },
  { topic: 'thanks', words: /\b(?:thanks|thank you|thx|cheers)\b|ありがと|感謝/i },
  {
    topic: 'goodbye',
    words: /\b(?:goodbye|bye|see you|good night)\b|さようなら|さよなら|またね|おやすみ/i,
  },
  {
    topic: 'greeting',
    words:
      /^\W*(?:hello|hi|hey|good (?:morning|afternoon|evening)|greetings)\b|こんにちは|こんばんは|おはよう|はじめまして|もしもし|^やあ/i,
  },
]

// "my name is Ken", "call me Ken Sato"; 「私の名前は健です」「健と呼んで」
const ENGLISH_NAME =
  /\b(?:[Mm]y name is|[Cc]all me) (\p{L}[\p{L}\p{M}'-]{0,39}(?: \p{Lu}[\p{L}\p{M}'-]{0,39})?)/u
const JAPANESE_NAME =
  /名前は([^\s、。!?]{1,30}?)(?:です|だよ|と申します|といいます)|([^\s、。!?はを]{1,20})と呼んで/u
const QUESTION_WORD = /^(?:何|なん|誰|だれ)/

function givenName(text: string): string | undefined {
  const plain = normalise(text)
  const match = ENGLISH_NAME.exec(plain) ?? JAPANESE_NAME.exec(plain)
  const name = match?.slice(1).find((group) => group !== undefined)
  return name === undefined || QUESTION_WORD.test(name) ? undefined : name
}

// "draw (me) a cat", "generate an image of a cat", 「猫の絵を描いて」「猫の画像を生成して」. All lengths are bounded.
const ENGLISH_PICTURE =
  /\b(?:(?:draw|paint|sketch|generate|create|make|show)\s(?:[a-z]{1,10}\s){0,4}(?:image|picture|drawing|painting|illustration)\sof\s|(?:draw|paint|sketch)\s(?:me\s)?)([^.!?\n]{1,60})/i
const JAPANESE_PICTURE =
  /([^\s、。!?]{1,30}?)の?(?:絵|画像|イラスト)を?(?:描|書|かい|生成|作)|([^\s、。!?]{1,30})を描いて/u
