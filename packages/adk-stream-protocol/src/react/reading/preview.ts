import type { Preview, PreviewAmount } from '../../protocol/preview.ts'

/** A line of a text that a call replaces. */
export interface DiffLine {
  readonly type: 'same' | 'removed' | 'added'
  readonly text: string
}

/** Above this number of lines, the whole text is shown as replaced: the comparison takes the product of both lengths. */
const MAX_LINES = 500

/** Compares two texts line by line. */
export function diffLines(before: string, after: string): DiffLine[] {
  const old = before.split('\n')
  const fresh = after.split('\n')
  if (old.length > MAX_LINES || fresh.length > MAX_LINES)
    return [...old.map(toLine('removed')), ...fresh.map(toLine('added'))]
  const lengths = commonLengths(old, fresh)
  const lines: DiffLine[] = []
  let [row, column] = [0, 0]
  while (row < old.length || column < fresh.length) {
    const removed = old[row]
    const added = fresh[column]
    if (removed !== undefined && removed === added) {
      lines.push({ type: 'same', text: removed })
      row += 1
      column += 1
    } else if (
      removed !== undefined &&
      (added === undefined ||
        lengthAt(lengths, row + 1, column) >= lengthAt(lengths, row, column + 1))
    ) {
      lines.push({ type: 'removed', text: removed })
      row += 1
    } else {
      lines.push({ type: 'added', text: added ?? '' })
      column += 1
    }
  }
  return lines
}

function toLine(type: DiffLine['type']): (text: string) => DiffLine {
  return (text) => ({ type, text })
}

/** Returns the length of the longest common subsequence of what follows each pair of lines. */
function commonLengths(old: readonly string[], fresh: readonly string[]): number[][] {
  const lengths = Array.from({ length: old.length + 1 }, () =>
    Array.from({ length: fresh.length + 1 }, () => 0),
  )
  for (let row = old.length - 1; row >= 0; row -= 1)
    for (let column = fresh.length - 1; column >= 0; column -= 1) {
      const line = lengths[row]
      if (!line) continue
      line[column] =
        old[row] === fresh[column]
          ? lengthAt(lengths, row + 1, column + 1) + 1
          : Math.max(lengthAt(lengths, row + 1, column), lengthAt(lengths, row, column + 1))
    }
  return lengths
}

function lengthAt(lengths: readonly (readonly number[])[], row: number, column: number): number {
  return lengths[row]?.[column] ?? 0
}

/** The sum of all pending calls of a chat with an amount in the same currency. */
export interface PendingSum {
  readonly count: number
  readonly total: number
  readonly currency: string
  readonly available: number | undefined
}

/** Returns the sum of the pending amounts for each approval id. A single amount has no sum. */
export function sumPending(
  pending: readonly { readonly approvalId: string; readonly preview: Preview | undefined }[],
): ReadonlyMap<string, PendingSum> {
  const groups = new Map<string, { ids: string[]; amounts: PreviewAmount[] }>()
  for (const { approvalId, preview } of pending) {
    const { amount } = preview ?? {}
    if (!amount) continue
    const group = groups.get(amount.currency) ?? { ids: [], amounts: [] }
    group.ids.push(approvalId)
    group.amounts.push(amount)
    groups.set(amount.currency, group)
  }
  const sums = new Map<string, PendingSum>()
  for (const [currency, { ids, amounts }] of groups) {
    if (ids.length < 2) continue
    const limits = amounts.flatMap(({ available }) => available ?? [])
    const sum = {
      count: ids.length,
      // Sums of decimal amounts: 0.1 + 0.2 is not exactly 0.3.
      total: Math.round(amounts.reduce((all, { value }) => all + value, 0) * 1e6) / 1e6,
      currency,
      available: limits.length > 0 ? Math.min(...limits) : undefined,
    }
    for (const id of ids) sums.set(id, sum)
  }
  return sums
}
