import type { Content, Part } from '@google/genai'

import type { MessagePart } from '../protocol/message.ts'
import type { UserMessage, UserPart } from '../protocol/stream-request.ts'

/** Converts a user message to ADK content. */
export function toUserContent(message: UserMessage): Content {
  return { role: 'user', parts: message.parts.map(toPart) }
}

function toPart(part: UserPart): Part {
  if (part.type === 'text') return { text: part.text }
  const { mediaType: mimeType, data, filename: displayName } = part
  return { inlineData: { mimeType, data, ...(displayName !== undefined && { displayName }) } }
}

/** Returns the parts of a stored user event as clients show them. */
export function readUserContent(content: Content | undefined): MessagePart[] {
  return (content?.parts ?? []).flatMap((part): MessagePart[] => {
    if (part.text !== undefined) return [{ type: 'text', text: part.text }]
    if (!part.inlineData?.data) return []
    const { mimeType: mediaType = 'application/octet-stream', data, displayName } = part.inlineData
    const url = `data:${mediaType};base64,${data}`
    return [
      { type: 'file', mediaType, url, ...(displayName !== undefined && { filename: displayName }) },
    ]
  })
}

/** The text of a spoken message without a transcript. */
export const UNTRANSCRIBED = '(spoken)'

/** The maximum number of graphemes. */
const MAX_CHARACTERS = 60
/** The maximum length in UTF-16 code units. A grapheme may contain any number of combining characters. */
const MAX_LENGTH = 240

/**
 * Returns the title of a chat: the beginning of the text of its first message, or else the name or type of its file.
 * Returns an empty string if there is neither.
 */
export function createTitle({ parts = [] }: Content): string {
  const text = parts.map((part) => part.text ?? '').join(' ')
  const line = shorten(text.slice(0, MAX_LENGTH * 2))
  if (line !== '') return line
  const { displayName = '', mimeType = '' } =
    parts.find((part) => part.inlineData)?.inlineData ?? {}
  return shorten(displayName.slice(0, MAX_LENGTH)) || mimeType
}

/** Whether a message has readable text or a file. An untranscribed spoken message does not. */
export function hasReadableText(content: Content | undefined): boolean {
  return content !== undefined && !['', UNTRANSCRIBED].includes(createTitle(content))
}

/** Returns a text as a single line without control characters and direction marks. */
export function toLine(text: string): string {
  // Direction marks would also affect the text around the title.
  return text
    .toWellFormed()
    .replaceAll(/[\p{Cc}\s]+/gu, ' ')
    .replaceAll(DIRECTION_MARKS, '')
    .trim()
}

/** Returns a text as a single line of at most `maxCharacters` graphemes and `maxLength` UTF-16 code units. */
export function shorten(
  text: string,
  maxCharacters: number = MAX_CHARACTERS,
  maxLength: number = MAX_LENGTH,
): string {
  const line = toLine(text)
  const characters = [...new Intl.Segmenter().segment(line)].map(({ segment }) => segment)
  if (characters.length <= maxCharacters && line.length <= maxLength) return line
  let title = ''
  for (const character of characters.slice(0, maxCharacters - 1)) {
    if (title.length + character.length >= maxLength) break
    title += character
  }
  return `${title.trimEnd()}…`
}

const DIRECTION_MARKS = /[\u202A-\u202E\u2066-\u2069]/gu
