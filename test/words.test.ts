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

test('[AR6] no file uses a retired word', () => {
  const pattern = new RegExp(String.raw`\b(?:${retired.join('|')})\b`, 'g')
  const found = FOLDERS.flatMap((folder) => [...findFiles(path.join(ROOT, folder))]).flatMap(
    (file) =>
      [...readFileSync(file, 'utf8').matchAll(pattern)].map(
        ([word]) => `${path.relative(ROOT, file)}: ${word}`,
      ),
  )
  expect(found).toEqual([])
})

test('[AR6] the glossary has at most 30 words', () => {
  const glossary = readFileSync(path.join(ROOT, 'docs/glossary.md'), 'utf8')
  const words = [...glossary.matchAll(/^- \*\*/gm)]
  expect(words.length).toBeGreaterThan(0)
  expect(words.length).toBeLessThanOrEqual(30)
})
