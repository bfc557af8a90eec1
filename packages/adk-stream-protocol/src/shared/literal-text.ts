/** A piece of visible text, or a mark for characters that a reader would not notice. */
export interface TextPiece {
  readonly kind: 'text' | 'mark'
  readonly text: string
}

/** How a text is shown. */
export interface LiteralOptions {
  /** Whether line breaks, tabs and runs of spaces stay, in a text that has a frame of its own. Default false: the text is one line. */
  readonly multiline?: boolean | undefined
  /** Whether a space at the start or the end stays, because other text is next to it. Default false: it gets a mark. */
  readonly isPart?: boolean | undefined
}

/**
 * Control, format and filler characters: direction marks, zero-width characters, line and paragraph separators, soft hyphens, tags,
 * variation selectors, and letters without a glyph.
 */
const HIDDEN =
  /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Variation_Selector}]|\u034F|\u115F|\u1160|\u17B4|\u17B5|\u2800|\u3164|\uFFA0/u
const BREAKS: ReadonlySet<string | undefined> = new Set(['\r\n', '\n', '\r'])
const SPACE = /^\p{Zs}$/u

/** Scripts that need joiners for correct spelling, and emoji, which are composed with joiners and selectors. */
const JOINING =
  /[\p{Script=Arabic}\p{Script=Bengali}\p{Script=Devanagari}\p{Script=Gujarati}\p{Script=Gurmukhi}\p{Script=Kannada}\p{Script=Khmer}\p{Script=Malayalam}\p{Script=Mongolian}\p{Script=Myanmar}\p{Script=Oriya}\p{Script=Sinhala}\p{Script=Syriac}\p{Script=Tamil}\p{Script=Telugu}\p{Extended_Pictographic}\p{Emoji_Modifier}\p{Variation_Selector}]/u
const JOINERS = new Set(['\u200C', '\u200D', '\uFE0E', '\uFE0F'])

/** More accents than this on one letter cover the lines above and below it. */
const MAX_ACCENTS = 4
/** More equal marks than this in a row are counted. */
const MAX_MARKS = 4

/**
 * Splits text into visible text and marks. Line breaks, tabs, runs of spaces, hidden characters, piles of accents and look-alike letters get
 * a mark, so that a value stays in its line and shows what it contains.
 */
export function readPieces(text: string, options: LiteralOptions = {}): TextPiece[] {
  if (PLAIN.test(text)) return [{ kind: 'text', text }]
  const pieces: TextPiece[] = []
  let visible = ''
  const add = (mark: string): void => {
    if (visible !== '') pieces.push(...splitAtMarks(visible))
    visible = ''
    if (mark !== '') pieces.push({ kind: 'mark', text: mark })
  }
  let repeated = { mark: '', count: 0 }
  const addRepeated = (): void => {
    if (repeated.count > 0) add(repeatMark(repeated.mark, repeated.count))
    repeated = { mark: '', count: 0 }
  }
  for (const { character, mark } of findMarks(text, options)) {
    if (mark === undefined || mark !== repeated.mark) addRepeated()
    if (mark === undefined) visible += character
    else repeated = { mark, count: repeated.count + 1 }
  }
  addRepeated()
  add('')
  return pieces
}

/** Most texts. The others are read character by character. */
const PLAIN = /^[!-~]+(?: [!-~]+)*$/

function repeatMark(mark: string, count: number): string {
  if (count === 1) return mark
  return mark.length === 1 && count <= MAX_MARKS ? mark.repeat(count) : `${mark}×${count}`
}

/** Returns the text in one line, with marks for everything that a reader would not notice, for attributes and other plain text. */
export function toLiteral(text: string, options?: LiteralOptions): string {
  return readPieces(text, options)
    .map((piece) => piece.text)
    .join('')
}

/** Returns whether a value is not what it looks like: it has hidden or look-alike characters, or consists of spaces. */
export function isDeceptive(text: string): boolean {
  return toLiteral(text, { multiline: true }) !== text || (text !== '' && text.trim() === '')
}

/** A word that looks like another one, and its letters of another script. */
export interface LookAlike {
  readonly word: string
  readonly letters: readonly { readonly letter: string; readonly script: LookAlikeScript }[]
}

/**
 * Finds words that mix Latin letters with letters of another script that look like them ("pаypal" with a Cyrillic a), words of such letters
 * only, and mathematical letters. Scripts that are normally written together, such as Latin and Japanese, are not reported.
 */
export function findLookAlikes(text: string): LookAlike[] {
  return (text.match(WORDS) ?? []).flatMap((word) => {
    const letters = [...new Set(word)].flatMap((letter) => {
      const script = isLookAlike(letter, word) ? findScript(letter) : undefined
      return script === undefined ? [] : [{ letter, script }]
    })
    return letters.length === 0 ? [] : [{ word, letters }]
  })
}

type LookAlikeScript = (typeof SCRIPTS)[number][0]

const SCRIPTS = [
  ['Cyrillic', /\p{Script=Cyrillic}/u],
  ['Greek', /\p{Script=Greek}/u],
  ['Armenian', /\p{Script=Armenian}/u],
  ['Cherokee', /\p{Script=Cherokee}/u],
  ['Lisu', /\p{Script=Lisu}/u],
  ['Coptic', /\p{Script=Coptic}/u],
  ['mathematical', /[\u{1D400}-\u{1D7FF}]/u],
] as const

const WORDS = /[\p{L}\p{M}\p{N}]+/gu

/** Returns the script of a letter, or undefined if its script has no look-alike letters. */
function findScript(letter: string): LookAlikeScript | undefined {
  return SCRIPTS.find(([, letters]) => letters.test(letter))?.[0]
}

function isLookAlike(letter: string, word: string): boolean {
  const script = /\p{M}/u.test(letter) ? undefined : findScript(letter)
  if (script === undefined) return false
  if (script === 'mathematical' || /\p{Script=Latin}/u.test(word)) return true
  const isMixed = /\p{Script=Cyrillic}/u.test(word) && /\p{Script=Greek}/u.test(word)
  return isMixed || looksLatin(word)
}

/** Cyrillic and Greek letters that most fonts draw like Latin ones, each followed by the Latin letter. */
const SAME_SHAPE =
  'АAВBЕEЅSІIЈJКKМMНHОOРPСCТTУYХXаaеeѕsіiјjоoрpсcуyхxԁdԛqԝwһhΑAΒBΕEΖZΗHΙIΚKΜMΝNΟOΡPΤTΥYΧXοo'

/** Letters that a reader may take for Latin ones. Ordinary words of their languages contain them. */
const SIMILAR_SHAPE =
  'кkмmтtвbнhгrαaρpνvιiτtκkεeυuωwηnɡgıiɑaᴀaʙbᴄcᴅdᴇeꜰfɢgʜhɪiᴊjᴋkʟlᴍmɴnᴏoᴘpʀrꜱsᴛtᴜuᴠvᴡwʏyᴢz'

/** Whether a word of several letters has only letters of other scripts that look like Latin ones. */
function looksLatin(word: string): boolean {
  return word.length > 1 && Array.from(word).every((letter) => findLatin(SAME_SHAPE, letter))
}

/** Returns the Latin letter that a letter looks like. Returns the letter itself if it looks like none. */
export function toLatinLetter(letter: string): string {
  const same = findLatin(SAME_SHAPE, letter)
  if (same !== undefined) return same
  const lower = letter.toLowerCase()
  const similar = findLatin(SIMILAR_SHAPE, lower)
  if (similar === undefined) return letter
  return lower === letter ? similar : similar.toUpperCase()
}

/** Returns the Latin letter that follows a letter in a table. */
function findLatin(table: string, letter: string): string | undefined {
  const index = table.indexOf(letter)
  return index % 2 === 0 ? table[index + 1] : undefined
}

/** Returns the code point of a character, such as `U+202E`. */
function nameCharacter(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

interface MarkedCharacter {
  readonly character: string
  /** What is shown in place of the character. Undefined: the character itself. */
  readonly mark?: string | undefined
}

function* findMarks(text: string, options: LiteralOptions): Generator<MarkedCharacter> {
  const characters = text.match(/\r\n|[!-~]+|[^]/gu) ?? []
  const lookAlikes = findLetters(text)
  let [accents, offset] = [0, 0]
  for (const [index, character] of characters.entries()) {
    const neighbours = { before: characters[index - 1], after: characters[index + 1] }
    const isAscii = /^[!-~]/.test(character)
    accents = !isAscii && /^\p{M}$/u.test(character) ? accents + 1 : 0
    if (isAscii) yield { character }
    else if (lookAlikes.has(offset))
      yield { character, mark: `${character}⟨${nameCharacter(character)}⟩` }
    else {
      const around = { ...neighbours, ...options, isPiled: accents > MAX_ACCENTS }
      yield { character, mark: findMark(character, around) }
    }
    offset += character.length
  }
}

/** Returns the offsets of look-alike letters. */
function findLetters(text: string): ReadonlySet<number> {
  const offsets = new Set<number>()
  if (/^[ -~]*$/.test(text)) return offsets
  for (const { 0: word, index } of text.matchAll(WORDS)) {
    let offset = index
    for (const letter of word) {
      if (isLookAlike(letter, word)) offsets.add(offset)
      offset += letter.length
    }
  }
  return offsets
}

interface Surroundings extends LiteralOptions {
  readonly before: string | undefined
  readonly after: string | undefined
  /** Whether too many accents precede it. */
  readonly isPiled: boolean
}

function findMark(character: string, around: Surroundings): string | undefined {
  const { before, after, multiline = false, isPart = false, isPiled } = around
  if (character === '\t') return multiline ? undefined : '⇥'
  if (BREAKS.has(character)) return multiline ? undefined : '⏎'
  if (SPACE.test(character)) {
    const isRun = SPACE.test(before ?? '') || SPACE.test(after ?? '')
    const isEdge = before === undefined || after === undefined
    const isNextToBreak = BREAKS.has(before) || BREAKS.has(after)
    return !multiline && (isRun || isNextToBreak || (isEdge && !isPart)) ? '␣' : undefined
  }
  const isSpelling = JOINERS.has(character) && JOINING.test(before ?? '')
  const isHidden = HIDDEN.test(character) && !isSpelling
  return isHidden || isPiled ? `⟨${nameCharacter(character)}⟩` : undefined
}

/** Marks of a text that is literal already: the server marks the texts of a preview, and the page shows them. */
const MARKS = /([⏎⇥␣]|⟨U\+[0-9A-F]{4,6}⟩)/u

function splitAtMarks(text: string): TextPiece[] {
  return text
    .split(MARKS)
    .map((piece, index) => ({ kind: index % 2 === 1 ? 'mark' : 'text', text: piece }) as const)
    .filter((piece) => piece.text !== '')
}
