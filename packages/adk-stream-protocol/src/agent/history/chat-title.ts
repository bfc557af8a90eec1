import type { Content } from '@google/genai'

/** The text of a spoken message without a transcript. */
export const UNTRANSCRIBED = '(spoken)'

/** Characters as a reader counts them. */
const MAX_CHARACTERS = 60
/** Characters may be long, with accents upon accents; nobody reads more than this. */
const MAX_LENGTH = 240

/** What a chat is called by what was said first in it: the beginning of the text, or else what was sent. Empty if there is neither. */
export function titleOf({ parts = [] }: Content): string {
  const text = parts.map((part) => part.text ?? '').join(' ')
  const said = shorten(text.slice(0, MAX_LENGTH * 2))
  if (said !== '') return said
  const { displayName = '', mimeType = '' } =
    parts.find((part) => part.inlineData)?.inlineData ?? {}
  return shorten(displayName.slice(0, MAX_LENGTH)) || mimeType
}

/** Whether something can be read of what was said: not what is empty, nor what was spoken and not understood. */
export function saysSomething(content: Content | undefined): boolean {
  return content !== undefined && !['', UNTRANSCRIBED].includes(titleOf(content))
}

/** A text as one line that can be stored and shown: without control characters, NUL among them, and without direction marks. */
export function toLine(text: string): string {
  // A text that turns the direction of writing around would do so to all that stands beside it.
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .replaceAll(TURNS, '')
    .trim()
}

function shorten(text: string): string {
  const line = toLine(text)
  const characters = [...new Intl.Segmenter().segment(line)].map(({ segment }) => segment)
  if (characters.length <= MAX_CHARACTERS && line.length <= MAX_LENGTH) return line
  let title = ''
  for (const character of characters.slice(0, MAX_CHARACTERS - 1)) {
    if (title.length + character.length >= MAX_LENGTH) break
    title += character
  }
  return `${title.trimEnd()}…`
}

const TURNS = /[\u202A-\u202E\u2066-\u2069]/gu
