import type { Content, FunctionDeclaration, Part } from './content.ts'

/** Tokens by modality, as `usageMetadata` details them. */
export interface TokenCount {
  readonly total: number
  readonly details: readonly { readonly modality: string; readonly tokenCount: number }[]
}

/** About as many tokens as Gemini counts: four letters of English, or one character of Japanese. */
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

const WIDE = /[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]/g

// What Gemini counts for one image tile.
const MEDIA_TOKENS = 258
