import type { Endurance } from './endurance.ts'
import type { Pass, Sample } from './passes.ts'
import type { RowName } from './server-process.ts'
import type { Sizes } from './sizes.ts'
import type { Spread } from './statistics.ts'
import { median, spread } from './statistics.ts'

/** The rows in their order, with their names. */
export const ROWS: readonly (readonly [RowName, string])[] = [
  ['R', 'R: node:http, frames ready'],
  ['F', 'F: ADK Runner, thinnest writer'],
  ['S', 'S: F, and each event in a SQLite file'],
  ['us', '**us: the whole bridge, SQLite file**'],
  ['G', 'G: us, read as AG-UI'],
  ['A', 'A: AI SDK 6 streamText'],
  ['A7', 'A7: AI SDK 7 streamText'],
]

/** Returns a table with the figures of each row: medians over the passes. */
export function reportRows(passes: readonly Pass[], { crowd }: Sizes): string {
  const columns: readonly (readonly [keyof Sample, string, number])[] = [
    ['cpuAlone', 'CPU ms/1k chunks, 1 stream', 1],
    ['cpuCrowd', `CPU ms/1k chunks, ${crowd} streams`, 1],
    ['rateAlone', 'chunks/s, 1 stream', 0],
    ['rateCrowd', `chunks/s, ${crowd} streams`, 0],
    ['firstChunk', 'first chunk p50 ms', 2],
    ['firstOfCrowd', `last first chunk of ${crowd} at once, ms`, 1],
    ['heap', 'heap KB/open stream', 1],
  ]
  return table(
    ['row', ...columns.map(([, title]) => title)],
    ROWS.map(([row, title]) => [
      title,
      ...columns.map(([key, , digits]) =>
        format(median(passes.map((pass) => pass[row][key])), digits),
      ),
    ]),
  )
}

/** Returns a table of the goals, with the measured figures and whether each goal is met. */
export function reportGoals(
  passes: readonly Pass[],
  endurance: Endurance,
  { crowd, longTurn: long, shortTurn: short, history }: Sizes,
): string {
  const byFloor = (key: keyof Sample): Spread => spread(passes.map(({ us, F }) => us[key] / F[key]))
  const byPeer = (key: keyof Sample): Spread => spread(passes.map(({ us, A }) => A[key] / us[key]))
  const { longTurn, longHistory, stalledReader, disconnectedClient } = endurance
  const { heapMb, produced, of } = stalledReader
  return table(
    ['goal', 'limit', 'measured (range)', 'verdict'],
    [
      atMost(`CPU, ${crowd} streams, us / F`, 1.15, byFloor('cpuCrowd')),
      atMost('CPU, 1 stream, us / F', 1.15, byFloor('cpuAlone')),
      atMost('first chunk, us / F', 1.5, byFloor('firstChunk')),
      atMost(
        'first chunk, us / S',
        1.5,
        spread(passes.map(({ us, S }) => us.firstChunk / S.firstChunk)),
      ),
      atLeast(
        'first chunk, A7 / us',
        1,
        spread(passes.map(({ us, A7 }) => A7.firstChunk / us.firstChunk)),
      ),
      atMost(`last first chunk of ${crowd} at once, us / F`, 2, byFloor('firstOfCrowd')),
      atLeast(
        `last first chunk of ${crowd} at once, A7 / us`,
        1,
        spread(passes.map(({ us, A7 }) => A7.firstOfCrowd / us.firstOfCrowd)),
      ),
      atMost('heap per open stream, us / F', 1.5, byFloor('heap')),
      atMost(
        `CPU, ${crowd} streams, G / us`,
        1.1,
        spread(passes.map(({ us, G }) => G.cpuCrowd / us.cpuCrowd)),
      ),
      atMost(
        'CPU, 1 stream, G / us',
        1.1,
        spread(passes.map(({ us, G }) => G.cpuAlone / us.cpuAlone)),
      ),
      atLeast(`CPU, ${crowd} streams, A / us`, 3, byPeer('cpuCrowd')),
      atMost(
        `CPU per chunk, turn of ${format(long, 0)} tokens / of ${format(short, 0)}`,
        1.1,
        longTurn,
      ),
      atMost(`first chunk, ${format(history, 0)} events of history / none`, 2, longHistory),
      [
        'stalled reader: heap, and the model pauses',
        '≤ 5 MB',
        `${format(heapMb, 1)} MB after ${format(produced, 0)} of ${format(of, 0)} tokens`,
        verdict(heapMb <= 5 && produced < of),
      ],
      [
        'disconnected client: the model ends',
        '≤ 250 ms, all',
        `${format(disconnectedClient.median, 1)} ms (max ${format(disconnectedClient.max, 1)})`,
        verdict(disconnectedClient.max <= 250),
      ],
    ],
  )
}

function atMost(goal: string, limit: number, measured: Spread): string[] {
  return [goal, `≤ ${limit}`, describe(measured), verdict(measured.median <= limit)]
}

function atLeast(goal: string, limit: number, measured: Spread): string[] {
  return [goal, `≥ ${limit}`, describe(measured), verdict(measured.median >= limit)]
}

function describe({ median: middle, min, max }: Spread): string {
  return `${format(middle, 2)} (${format(min, 2)}–${format(max, 2)})`
}

function verdict(met: boolean): string {
  return met ? 'ok' : '**miss**'
}

function format(value: number, digits: number): string {
  return value.toLocaleString('en', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  })
}

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const lines = [head, head.map(() => '---'), ...rows]
  const widths = head.map((_, column) =>
    Math.max(...lines.map((line) => line[column]?.length ?? 0)),
  )
  return lines
    .map(
      (line) => `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`,
    )
    .join('\n')
}
