import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

import { expect, test } from 'vitest'

import retired from './retired-words.json' with { type: 'json' }

const ROOT = path.join(import.meta.dirname, '..')
const FOLDERS = ['packages', 'apps', 'docs', 'e2e', 'test', 'bench', 'scripts']
const TEXT = /\.(?:tsx?|js|md|css)$/
/** Installed, built or generated files, and records of the past. */
const EXEMPT = /(?:^|\/)(?:node_modules|dist|docs\/api|docs\/\.examples|CHANGELOG\.md)$/

function* findFiles(folder: string): Generator<string> {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name)
    if (EXEMPT.test(file)) continue
    if (entry.isDirectory()) yield* findFiles(file)
    else if (TEXT.test(entry.name)) yield file
  }
}

/** Names that contain a retired word, and are not ours to change: of MCP, and of the public API. */
const EXEMPT_NAMES = new Set(['openWorldHint', 'giveUpAfterMs'])

/** Separates the words of identifiers by `_`: `findUntold` becomes `find_untold`. */
function splitIdentifiers(text: string): string {
  return text
    .replaceAll(/([a-z\d])([A-Z])/g, '$1_$2')
    .replaceAll(/([A-Z])([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()
}

const RETIRED = new RegExp(
  String.raw`(?<![a-z])(?:${retired.map((word) => splitIdentifiers(word).replaceAll('_', '[-_]')).join('|')})(?![a-z])`,
)

/** Returns the identifiers and words of a text that are or contain a retired word. */
function findRetired(text: string): string[] {
  // Most files contain none. An entry with a space is found only in the whole text.
  if (!RETIRED.test(splitIdentifiers(text))) return []
  const names = text.match(/[\w-]+(?: 0\d\d\b)?/g) ?? []
  return names.filter((name) => !EXEMPT_NAMES.has(name) && RETIRED.test(splitIdentifiers(name)))
}

test.each([
  ['untold', true],
  ['findUntold', true],
  ['untoldSince', true],
  ['UNTOLD_SINCE', true],
  ['untold_since', true],
  ['left-untold.ts', true],
  ['Untolds', false],
  ['indeed', false],
  ['openWorldHint', false],
])('[AR6] %s contains a retired word: %s', (text, contains) => {
  expect(findRetired(text).length > 0).toBe(contains)
})

test('[AR6] no file and no name of a file uses a retired word, also inside an identifier', () => {
  const found = FOLDERS.flatMap((folder) => [...findFiles(path.join(ROOT, folder))]).flatMap(
    (file) => {
      const name = path.relative(ROOT, file)
      const isListed = name === 'test/words.test.ts'
      const text = isListed ? '' : readFileSync(file, 'utf8')
      return findRetired(`${name} ${text}`).map((word) => `${name}: ${word}`)
    },
  )
  expect(found).toEqual([])
})

test('[AR6] the glossary has at most 30 words', () => {
  const glossary = readFileSync(path.join(ROOT, 'docs/glossary.md'), 'utf8')
  const words = [...glossary.matchAll(/^- \*\*/gm)]
  expect(words.length).toBeGreaterThan(0)
  expect(words.length).toBeLessThanOrEqual(30)
})
