import type { FunctionDeclaration } from 'gemini-emulator'
import { isRecord } from '../schema.ts'

/** A declared function that the text names. `args` is absent if the text has none. */
export interface NamedCall {
  readonly declaration: FunctionDeclaration
  readonly args?: Readonly<Record<string, unknown>>
}

/** Reads functions called by name: `lookup_order {"id": 5}`, `lookup order id=5`, `get_time()`. */
export function readNamedCalls(
  text: string,
  functions: readonly FunctionDeclaration[],
): NamedCall[] {
  const calls: NamedCall[] = []
  const mentions = findMentions(text, functions)
  let readUpTo = 0
  for (const [index, { declaration, start, end }] of mentions.entries()) {
    // A name inside the arguments of the previous call is a value.
    if (start < readUpTo) continue
    const next = mentions[index + 1]?.start ?? text.length
    const json = readJson(text, end, next)
    const args = json?.value ?? readPairs(text.slice(end, next))
    readUpTo = json?.end ?? end
    calls.push(args === undefined ? { declaration } : { declaration, args })
  }
  return calls
}

interface Mention {
  readonly declaration: FunctionDeclaration
  readonly start: number
  readonly end: number
}

const MAX_MENTIONS = 20

function findMentions(text: string, functions: readonly FunctionDeclaration[]): Mention[] {
  const lower = text.toLowerCase()
  const all = functions
    .flatMap((declaration) =>
      spellings(declaration.name).flatMap((name) =>
        occurrences(lower, name).map((start) => ({ declaration, start, end: start + name.length })),
      ),
    )
    // The longer of two names at the same position is used.
    .toSorted((one, other) => one.start - other.start || other.end - one.end)
  const kept: Mention[] = []
  for (const mention of all) {
    if (mention.start >= (kept.at(-1)?.end ?? 0)) kept.push(mention)
  }
  return kept.slice(0, MAX_MENTIONS)
}

/** `lookupOrder` and `lookup_order` may be written as they are or as `lookup order`. */
function spellings(name: string): string[] {
  if (name === '') return []
  const spaced = name
    .replaceAll(/(?<=[a-z0-9])(?=[A-Z])/g, ' ')
    .replaceAll(/[_.-]+/g, ' ')
    .trim()
  return [...new Set([name.toLowerCase(), spaced.toLowerCase()])].filter(
    (spelling) => spelling !== '',
  )
}

const NAME_LETTER = /[\w-]/

function occurrences(text: string, name: string): number[] {
  const found: number[] = []
  for (let at = text.indexOf(name); at !== -1; at = text.indexOf(name, at + name.length)) {
    const isWhole =
      !NAME_LETTER.test(text.charAt(at - 1)) && !NAME_LETTER.test(text.charAt(at + name.length))
    if (isWhole) found.push(at)
    if (found.length === MAX_MENTIONS) break
  }
  return found
}

// `key=value`, where the value may be quoted. Keys start at a word boundary and quotes are bounded, which keeps this linear.
const PAIR =
  /(?<![\p{L}\p{N}_])([\p{L}_][\p{L}\p{N}_]{0,63})\s?=\s?(?:"([^"]{0,1000})"|'([^']{0,1000})'|「([^」]{0,1000})」|([^\s,、)]+))/gu

function readPairs(text: string): Readonly<Record<string, unknown>> | undefined {
  const pairs = [...text.matchAll(PAIR)].map(([, key = '', ...values]): [string, unknown] => [
    key,
    values.find((value) => value !== undefined),
  ])
  if (pairs.length > 0) return Object.fromEntries(pairs)
  return /^\s?\(\s?\)/.test(text) ? {} : undefined
}

interface JsonArguments {
  readonly value: Readonly<Record<string, unknown>>
  readonly end: number
}

/** Finds a JSON object that starts between the two positions. */
function readJson(text: string, from: number, before: number): JsonArguments | undefined {
  const start = text.indexOf('{', from)
  const end = start === -1 || start >= before ? -1 : objectEnd(text, start)
  if (end === -1) return undefined
  try {
    const value: unknown = JSON.parse(text.slice(start, end))
    return isRecord(value) ? { value, end } : undefined
  } catch {
    // Braces without JSON are plain text. `key=value` may still follow.
    return undefined
  }
}

/** Returns the position after the brace that closes the one at `start`. Ignores braces inside strings. */
function objectEnd(text: string, start: number): number {
  let depth = 0
  let inString = false
  for (let index = start; index < text.length; index += 1) {
    const character = text.charAt(index)
    if (character === '\\') index += 1
    else if (character === '"') inString = !inString
    else if (!inString && character === '{') depth += 1
    else if (!inString && character === '}') depth -= 1
    if (depth === 0) return index + 1
  }
  return -1
}
