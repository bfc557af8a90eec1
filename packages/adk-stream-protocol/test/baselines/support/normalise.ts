import type { Line } from './conversation.ts'

const ID = /(?:[a-z]+-)*[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g

/** Values that differ between runs, or that the emulator estimates. */
const VARYING: Readonly<Record<string, string>> = {
  at: '<time>',
  deadline: '<time>',
  usage: '<usage>',
}

/** A conversation as text, with a line for each item that was sent. Ids are numbered in order of appearance, times are left out, and deltas are joined. */
export function normalise(lines: readonly Line[]): string {
  const names = new Map<string, string>()
  const nameOf = (id: string): string => {
    const known = names.get(id) ?? `<id-${names.size + 1}>`
    names.set(id, known)
    return known
  }
  return joinDeltas(lines)
    .map(({ from, sent }) => {
      const text = JSON.stringify(sent, (key, value: unknown) => VARYING[key] ?? value)
      return `${from === 'client' ? '>' : '<'} ${text.replaceAll(ID, nameOf)}\n`
    })
    .join('')
}

/** The protocol does not define how a text is split into deltas (TU1). */
function joinDeltas(lines: readonly Line[]): Line[] {
  const joined: Line[] = []
  for (const line of lines) {
    const last = joined.at(-1)
    const delta = deltaIn(line)
    const before = last && deltaIn(last)
    if (delta && before && delta['id'] === before['id'])
      before['delta'] = `${String(before['delta'])}${String(delta['delta'])}`
    else joined.push(structuredClone(line))
  }
  return joined
}

/** The delta that was sent, in a frame or as it is. */
function deltaIn({ sent }: Line): Record<string, unknown> | undefined {
  if (typeof sent !== 'object' || sent === null) return undefined
  const chunk = ('chunk' in sent ? sent.chunk : sent) as Record<string, unknown>
  return chunk['type'] === 'text-delta' ? chunk : undefined
}
