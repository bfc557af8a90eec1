/** Returns a sentence that suggests the most similar known name, or an empty string if none is similar. */
export function suggestName(name: string, known: Iterable<string>): string {
  let closest: { readonly name: string; readonly distance: number } | undefined
  for (const candidate of known) {
    const distance = editDistance(name.toLowerCase(), candidate.toLowerCase())
    if (distance < (closest?.distance ?? Infinity)) closest = { name: candidate, distance }
  }
  if (!closest || closest.distance > Math.max(2, name.length / 3)) return ''
  return ` Did you mean \`${closest.name}\`?`
}

/** The Levenshtein distance of two strings. */
function editDistance(from: string, to: string): number {
  let previous = Array.from({ length: to.length + 1 }, (_, index) => index)
  for (const [row, character] of Array.from(from).entries()) {
    const current = [row + 1]
    for (const [column, other] of Array.from(to).entries()) {
      const replaced = (previous[column] ?? 0) + (character === other ? 0 : 1)
      const inserted = (current[column] ?? 0) + 1
      const removed = (previous[column + 1] ?? 0) + 1
      current.push(Math.min(replaced, inserted, removed))
    }
    previous = current
  }
  return previous.at(-1) ?? 0
}
