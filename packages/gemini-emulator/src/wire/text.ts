import type { Content, FunctionDeclaration, Part } from './content.ts'

/** Splits a text into the pieces that the model streams: words, or single characters in scripts without spaces. */
export function splitPieces(text: string): readonly string[] {
  return text.match(PIECE) ?? []
}

/** Tokens in total and by modality, as in `usageMetadata`. */
export interface TokenCount {
  readonly total: number
  readonly details: readonly { readonly modality: string; readonly tokenCount: number }[]
}

/** Estimates the tokens of a text: one for four English letters or for one Japanese character. */
export function textTokens(text: string): number {
  const wide = text.match(WIDE)?.length ?? 0
  return Math.ceil((text.length - wide) / 4) + wide
}

export function partTokens(part: Part): number {
  if (part.text !== undefined) return textTokens(part.text)
  if (part.inlineData || part.fileData) return MEDIA_TOKENS
  return textTokens(JSON.stringify(part))
}

export function promptTokens(
  contents: readonly Content[],
  functions: readonly FunctionDeclaration[],
): TokenCount {
  const byModality = new Map<string, number>()
  const add = (modality: string, tokens: number) =>
    byModality.set(modality, (byModality.get(modality) ?? 0) + tokens)
  if (functions.length > 0) add('TEXT', textTokens(JSON.stringify(functions)))
  for (const part of contents.flatMap((content) => content.parts ?? [])) {
    add(modalityOf(part), partTokens(part))
  }
  const details = [...byModality].map(([modality, tokenCount]) => ({ modality, tokenCount }))
  return { total: details.reduce((sum, { tokenCount }) => sum + tokenCount, 0), details }
}

function modalityOf(part: Part): string {
  const mimeType = part.inlineData?.mimeType ?? part.fileData?.mimeType
  if (!mimeType) return 'TEXT'
  const kind = mimeType.split('/')[0]?.toUpperCase()
  return kind === 'IMAGE' || kind === 'AUDIO' || kind === 'VIDEO' ? kind : 'DOCUMENT'
}

// A character of a script without spaces and its marks, or a run of other characters, with the space that follows.
const PIECE =
  /^\s+|[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uffef]\p{M}*\s*|[^\s\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uffef]+\s*/gu

const WIDE = /[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]/g

// Gemini's count for one image tile.
const MEDIA_TOKENS = 258
