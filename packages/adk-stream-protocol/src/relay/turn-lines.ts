import type { Chunk } from '../protocol/chunk.ts'
import type { TurnLog } from '../turns/turn-log.ts'

/**
 * A line of a turn is the JSON of a chunk, or of a mark: the position that a client has read up to when it responds to the pause, to
 * an approval or to a call.
 */
export type TurnLine = Chunk | { readonly mark: string | null }

export function markLine(id: string | undefined): string {
  return JSON.stringify({ mark: id ?? null })
}

/** Parses a line. Only this library writes lines, so their shape is not checked. */
export function readLine(line: string): TurnLine {
  return JSON.parse(line) as TurnLine
}

/** Appends lines to the log of a turn. */
export function appendLines(log: TurnLog, lines: readonly string[]): void {
  for (const line of lines) {
    const read = readLine(line)
    if ('mark' in read) log.markPause(read.mark ?? undefined)
    else log.append(read)
  }
}
