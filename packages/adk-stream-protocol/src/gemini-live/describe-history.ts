import type { Content, Part } from '@google/genai'

import { readCallName } from '../agent/history/input-calls.ts'

/** The length of the history that a new connection receives, in characters. About 16 000 tokens of English. */
const MAX_HISTORY_LENGTH = 64_000

const LEFT_OUT = '[Earlier parts of this conversation are left out.]'

/**
 * Converts a conversation into a history that a live model accepts: text unchanged, calls and results as short lines, media by its type.
 * Live models accept no function parts in a history. If it is too long, the oldest parts are replaced by a note.
 */
export function describeHistory(
  contents: readonly Content[],
  maxLength = MAX_HISTORY_LENGTH,
): Content[] {
  const described = contents.flatMap(describeContent)
  const kept: Content[] = []
  let room = maxLength
  for (const content of described.toReversed()) {
    const text = textOf(content)
    if (text === LEFT_OUT) break
    if (text.length > room) {
      // A single text that is too long is truncated.
      if (kept.length === 0) kept.push(toContent(content.role, text.slice(-maxLength)))
      break
    }
    kept.push(content)
    room -= text.length
  }
  const isComplete =
    kept.length === described.length && textOf(kept[0]).length === textOf(described.at(-1)).length
  if (!isComplete) kept.push(toContent('user', LEFT_OUT))
  return kept.toReversed()
}

function describeContent({ role, parts = [] }: Content): Content[] {
  const text = parts.map(describePart).filter(Boolean).join('\n')
  return text === '' ? [] : [toContent(role, text)]
}

function describePart(part: Part): string {
  const { functionCall, functionResponse, inlineData, fileData } = part
  if (part.thought) return ''
  if (part.text !== undefined) return part.text
  if (functionCall)
    return `[called ${readCallName(functionCall.name ?? '')}(${JSON.stringify(functionCall.args ?? {})})]`
  if (functionResponse) return describeResult(functionResponse)
  const media = inlineData?.mimeType ?? fileData?.mimeType
  return media === undefined ? '' : `[sent ${media}]`
}

/** Returns the result of a call as one line of text. */
export function describeResult({
  name,
  response,
}: {
  readonly name?: string
  readonly response?: unknown
}): string {
  return `[${name} returned ${JSON.stringify(response ?? {})}]`
}

function toContent(role: string | undefined, text: string): Content {
  return { role: role === 'model' ? 'model' : 'user', parts: [{ text }] }
}

function textOf(content: Content | undefined): string {
  return content?.parts?.[0]?.text ?? ''
}
