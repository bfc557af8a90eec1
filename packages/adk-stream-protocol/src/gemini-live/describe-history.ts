import type { Content, Part } from '@google/genai'

/** How much of a conversation a new connection is told, in characters; about 16 000 tokens of English. */
const MAX_HISTORY_LENGTH = 64_000

const LEFT_OUT = '[Earlier parts of this conversation are left out.]'

/**
 * A conversation as a live model can take it before it begins: text as it is, calls and their results as short lines, media by
 * name. Live models accept no function parts in a history. What does not fit is left out from the oldest on, and the model is told.
 */
export function describeHistory(
  contents: readonly Content[],
  maxLength = MAX_HISTORY_LENGTH,
): Content[] {
  const told = contents.flatMap(describeContent)
  const kept: Content[] = []
  let room = maxLength
  for (const content of told.toReversed()) {
    const text = textOf(content)
    if (text === LEFT_OUT) break
    if (text.length > room) {
      // A single text beyond all bounds is cut rather than lost.
      if (kept.length === 0) kept.push(say(content.role, text.slice(-maxLength)))
      break
    }
    kept.push(content)
    room -= text.length
  }
  const isWhole =
    kept.length === told.length && textOf(kept[0]).length === textOf(told.at(-1)).length
  if (!isWhole) kept.push(say('user', LEFT_OUT))
  return kept.toReversed()
}

function describeContent({ role, parts = [] }: Content): Content[] {
  const text = parts.map(describePart).filter(Boolean).join('\n')
  return text === '' ? [] : [say(role, text)]
}

function describePart(part: Part): string {
  const { functionCall, functionResponse, inlineData, fileData } = part
  if (part.thought) return ''
  if (part.text !== undefined) return part.text
  if (functionCall)
    return `[called ${functionCall.name}(${JSON.stringify(functionCall.args ?? {})})]`
  if (functionResponse) return describeResult(functionResponse)
  const media = inlineData?.mimeType ?? fileData?.mimeType
  return media === undefined ? '' : `[sent ${media}]`
}

/** The result of a call as a line of text. */
export function describeResult({
  name,
  response,
}: {
  readonly name?: string
  readonly response?: unknown
}): string {
  return `[${name} returned ${JSON.stringify(response ?? {})}]`
}

function say(role: string | undefined, text: string): Content {
  return { role: role === 'model' ? 'model' : 'user', parts: [{ text }] }
}

function textOf(content: Content | undefined): string {
  return content?.parts?.[0]?.text ?? ''
}
