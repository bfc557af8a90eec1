import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

import { expect, test } from 'vitest'

import { ERROR_CODES } from '../packages/adk-stream-protocol/src/protocol/error-codes.ts'

const ROOT = path.join(import.meta.dirname, '..')

/** The documents with rules, and the folders of their tests. */
const RULE_FILES = [
  'PROTOCOL.md',
  'CONTRIBUTING.md',
  ...readdirSync(path.join(ROOT, 'docs/spec')).map((file) => `docs/spec/${file}`),
  'packages/gemini-emulator/RULES.md',
  'packages/studio/RULES.md',
  'apps/demo/RULES.md',
]
/** Also the tests of projects that are created from templates. */
const NOT_OURS = new Set(['node_modules', 'dist', 'templates'])
const TEST_FOLDERS = ['test', 'packages', 'apps', 'e2e'] as const

/** Reads the ids at the beginning of each rule. A rule may have several. */
function readRules(): string[] {
  return RULE_FILES.flatMap((file) => {
    const text = readFileSync(path.join(ROOT, file), 'utf8')
    const headings = text.match(/^- (?:\*\*[A-Z]{2}\d+\*\* )+/gm) ?? []
    return headings.flatMap((ids) => ids.match(/[A-Z]{2}\d+/g) ?? [])
  })
}

/** Matches the names of tests. The name of a `test.each` follows its table. */
function readTestNames(): string[] {
  const files = TEST_FOLDERS.flatMap((folder) => findTests(path.join(ROOT, folder)))
  return files.flatMap((file) => {
    const source = readFileSync(file, 'utf8')
    const plain = source.matchAll(
      /\b(?:it|test|longTest|posixTest)(?:\.skipIf\([^)]*\))?\(\s*(['"`])([\s\S]*?)\1/g,
    )
    const tables = source.matchAll(/\)\(\s*(['"`])(\[[A-Z]{2}\d[\s\S]*?)\1/g)
    return [...plain, ...tables].map((match) => match[2] ?? '')
  })
}

function findTests(folder: string): string[] {
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const file = path.join(folder, entry.name)
    if (entry.isDirectory()) return NOT_OURS.has(entry.name) ? [] : findTests(file)
    return /\.(?:test|contract)\.tsx?$/.test(entry.name) ? [file] : []
  })
}

const rules = readRules()
const names = readTestNames()
const cited = new Set(
  names.flatMap((name) => /^(?:\[[A-Z]{2}\d+\]\s*)+/.exec(name)?.[0].match(/[A-Z]{2}\d+/g) ?? []),
)

test('[AR5] every rule is defined once', () => {
  const twice = rules.filter((rule, index) => rules.indexOf(rule) !== index)
  expect(twice).toEqual([])
})

test('[AR5] every rule has a test', () => {
  expect(rules.filter((rule) => !cited.has(rule))).toEqual([])
})

test('[AR5] every rule that a test names exists', () => {
  expect([...cited].filter((rule) => !rules.includes(rule))).toEqual([])
})

test('[AR5] every test names the rule it proves', () => {
  expect(names.length).toBeGreaterThan(100)
  expect(names.filter((name) => !/^\[[A-Z]{2}\d+\]/.test(name))).toEqual([])
})

test('[AR5] every error code is expected by a test', () => {
  const sources = TEST_FOLDERS.flatMap((folder) => findTests(path.join(ROOT, folder))).map((file) =>
    readFileSync(file, 'utf8'),
  )
  const isExpected = (code: string) => sources.some((source) => source.includes(`'${code}'`))
  expect(ERROR_CODES.filter((code) => !isExpected(code))).toEqual([])
})
