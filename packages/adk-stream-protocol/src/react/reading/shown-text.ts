/** A piece of visible text, or a character that is invisible or changes how its neighbours are shown. */
export type TextPiece =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'hidden'; readonly name: string }

/**
 * Control, format and filler characters: direction marks, zero-width characters, line and paragraph separators, soft hyphens, tags,
 * variation selectors, and letters without a glyph. The page's layout shows tabs and line breaks.
 */
const HIDDEN =
  /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}\p{Variation_Selector}]|\u034F|\u115F|\u1160|\u17B4|\u17B5|\u2800|\u3164|\uFFA0/u
const LAYOUT = new Set(['\t', '\n', '\r'])

/** Scripts that need joiners for correct spelling, and emoji, which are composed with joiners and selectors. */
const JOINING =
  /[\p{Script=Arabic}\p{Script=Bengali}\p{Script=Devanagari}\p{Script=Gujarati}\p{Script=Gurmukhi}\p{Script=Kannada}\p{Script=Khmer}\p{Script=Malayalam}\p{Script=Mongolian}\p{Script=Myanmar}\p{Script=Oriya}\p{Script=Sinhala}\p{Script=Syriac}\p{Script=Tamil}\p{Script=Telugu}\p{Extended_Pictographic}\p{Emoji_Modifier}\p{Variation_Selector}]/u
const JOINERS = new Set(['\u200C', '\u200D', '\uFE0E', '\uFE0F'])

/** Splits text into visible text and hidden characters, which are shown as their code point. */
export function readPieces(text: string): TextPiece[] {
  const pieces: TextPiece[] = []
  let shown = ''
  let before = ''
  for (const character of text) {
    if (isHidden(character, before)) {
      if (shown !== '') pieces.push({ kind: 'text', text: shown })
      shown = ''
      pieces.push({ kind: 'hidden', name: nameCharacter(character) })
    } else shown += character
    before = character
  }
  if (shown !== '' || pieces.length === 0) pieces.push({ kind: 'text', text: shown })
  return pieces
}

/** Returns the text with hidden characters as code points, for attributes and other plain text. */
export function toLiteral(text: string): string {
  if (!HIDDEN.test(text)) return text
  return readPieces(text)
    .map((piece) => (piece.kind === 'text' ? piece.text : `⟨${piece.name}⟩`))
    .join('')
}

/**
 * Returns words that mix Latin letters with letters of another script that look like them ("pаypal" with a Cyrillic a), or that use
 * mathematical letters. Scripts that are normally written together, such as Latin and Japanese, are not reported.
 */
export function findLookAlikes(text: string): string[] {
  return (text.match(/[\p{L}\p{M}\p{N}]+/gu) ?? []).filter(
    (word) =>
      MATHEMATICAL.test(word) ||
      (/\p{Script=Latin}/u.test(word) && LATIN_LOOK_ALIKES.test(word)) ||
      (/\p{Script=Cyrillic}/u.test(word) && /\p{Script=Greek}/u.test(word)),
  )
}

const LATIN_LOOK_ALIKES =
  /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}\p{Script=Lisu}\p{Script=Coptic}]/u
const MATHEMATICAL = /[\u{1D400}-\u{1D7FF}]/u

function isHidden(character: string, before: string): boolean {
  if (LAYOUT.has(character) || !HIDDEN.test(character)) return false
  return !(JOINERS.has(character) && JOINING.test(before))
}

function nameCharacter(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}

/**
 * Returns a name of the code in words, such as "Book trip" for `book_trip` and "Get URL" for `getURL`. A name without letters stays as
 * it is.
 */
export function toWords(name: string): string {
  const words = name
    .replaceAll(/([\p{Ll}\p{N}])(\p{Lu})/gu, '$1 $2')
    .replaceAll(/(\p{Lu})(\p{Lu}\p{Ll})/gu, '$1 $2')
    .split(/[_\-.\s/]+/u)
    .filter((word) => word !== '')
    .map((word) => (/^\p{Lu}\p{Ll}/u.test(word) ? word.toLowerCase() : word))
  const text = words.join(' ')
  const [first = ''] = text
  return text === '' ? name : `${first.toUpperCase()}${text.slice(first.length)}`
}

/** The name of a tool or an agent for people: that of the application, the given title, or the name of the code in words. */
export function toDisplayName(
  name: string,
  names: Readonly<Record<string, string>>,
  title?: string,
): string {
  const own = Object.hasOwn(names, name) ? names[name] : undefined
  return own ?? (title === undefined || title.trim() === '' ? toWords(name) : title)
}
