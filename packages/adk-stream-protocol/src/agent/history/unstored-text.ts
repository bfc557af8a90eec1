import type { Chunk, TextKind } from '../../protocol/chunk.ts'
import { isDelta } from '../../protocol/chunk.ts'
import type { PartialReply } from './repair-session.ts'

/**
 * Returns the streamed text of a message that its stored events do not contain. The stored text of each kind is the beginning of the
 * streamed one, or the other way round. If neither is the case, returns nothing of that kind: text must never be stored twice.
 */
export function findUnstored(
  streamed: readonly Chunk[],
  stored: readonly Chunk[],
): PartialReply['parts'] {
  const lengthOfStored = (kind: TextKind): number => {
    const known = textOf(stored, kind)
    return textOf(streamed, kind).startsWith(known) ? known.length : Infinity
  }
  /** How many characters of each kind are stored and still to be skipped. */
  const skip = { text: lengthOfStored('text'), reasoning: lengthOfStored('reasoning') }
  const parts: { id: string; kind: TextKind; text: string }[] = []
  for (const chunk of streamed) {
    if (!isDelta(chunk)) continue
    const kind = kindOf(chunk)
    const text = chunk.delta.slice(skip[kind])
    skip[kind] = Math.max(0, skip[kind] - chunk.delta.length)
    if (text === '') continue
    const last = parts.at(-1)
    if (last?.id === chunk.id && last.kind === kind) last.text += text
    else parts.push({ id: chunk.id, kind, text })
  }
  return parts.map(({ kind, text }) => ({ text, thought: kind === 'reasoning' }))
}

function kindOf({ type }: { readonly type: `${TextKind}-delta` }): TextKind {
  return type === 'text-delta' ? 'text' : 'reasoning'
}

function textOf(chunks: readonly Chunk[], kind: TextKind): string {
  return chunks
    .map((chunk) => (isDelta(chunk) && kindOf(chunk) === kind ? chunk.delta : ''))
    .join('')
}
