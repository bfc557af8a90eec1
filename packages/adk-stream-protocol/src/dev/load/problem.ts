import { readFileSync } from 'node:fs'
import path from 'node:path'

import type { LoadError, Place } from './load-error.ts'

/** Why an agent could not be loaded, for the terminal and for the page. */
export interface Problem {
  readonly message: string
  /** Relative to the current folder. */
  readonly file?: string
  readonly line?: number
  readonly column?: number
  /** The lines of the file around the error. */
  readonly codeFrame?: string
}

/** Describes an error with the lines of the file around it. */
export function toProblem({ message, place }: LoadError, cwd: string): Problem {
  if (!place) return { message }
  const { file, line, column } = place
  const codeFrame = createCodeFrame(place)
  return {
    message,
    file: path.relative(cwd, file) || file,
    ...(line !== undefined && { line }),
    ...(column !== undefined && { column }),
    ...(codeFrame !== undefined && { codeFrame }),
  }
}

/** How many lines are shown before and after the line of the error. */
const CONTEXT = 2

/** Returns the lines around a place with their numbers, and marks the column. Returns undefined if the file has no such line. */
function createCodeFrame({ file, line, column }: Place): string | undefined {
  if (line === undefined) return undefined
  const lines = readLines(file)
  if (line > lines.length) return undefined
  const first = Math.max(1, line - CONTEXT)
  const last = Math.min(lines.length, line + CONTEXT)
  const width = String(last).length
  return lines
    .slice(first - 1, last)
    .flatMap((text, index) => {
      const number = first + index
      const shown = `${number === line ? '>' : ' '} ${String(number).padStart(width)} | ${text}`
      const indent = ' '.repeat(width + 2)
      return number === line && column !== undefined
        ? [shown, `${indent} | ${' '.repeat(column - 1)}^`]
        : [shown]
    })
    .join('\n')
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, 'utf8')
      .replace(/\r?\n$/, '')
      .split(/\r?\n/)
  } catch {
    // The file was removed meanwhile.
    return []
  }
}
