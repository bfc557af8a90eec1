import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

import { loadScenario } from 'gemini-emulator'
import { beforeAll, expect, test } from 'vitest'

import { checkCommands, splitCommands } from './support/commands.ts'
import { compileBlocks } from './support/examples.ts'
import { findBrokenLinks, readAnchors, readLinks } from './support/links.ts'
import { readBlocks, readEveryPage, readPages } from './support/pages.ts'

const pages = readPages()
const blocks = pages.flatMap((page) => page.blocks)

/** A page with three mistakes. It is compiled with the others, so that the compiler reads the library once. */
const WRONG = 'docs/page.md'
const wrong = readBlocks(
  WRONG,
  [
    '# Page',
    '```ts',
    '// agent.ts',
    "export const name: string = 'a'",
    '```',
    '<!-- given: const given = 1 -->',
    '',
    '```ts',
    "import { createBridge } from 'adk-stream-protocol/server'",
    "import { name } from './agent.ts'",
    'createBridge({ name, given })',
    'missing()',
    '```',
    '```tsx',
    "import { nothing } from 'adk-stream-protocol/nowhere'",
    'export const view = <p>{nothing}</p>',
    '```',
  ].join('\n'),
)
let faults: readonly string[] = []

beforeAll(async () => {
  faults = await compileBlocks('compile', [...blocks, ...wrong])
})

test('[DO1] every TypeScript example compiles', () => {
  expect(blocks.filter(({ language }) => /^tsx?$/.test(language)).length).toBeGreaterThan(10)
  expect(faults.filter((fault) => !fault.startsWith(WRONG))).toEqual([])
})

test('[DO1] an example that does not compile is found, with its page and line', () => {
  const found = faults.filter((fault) => fault.startsWith(WRONG))
  expect(found.map((fault) => fault.replace(/: error (TS\d+).*/, ' $1')).toSorted()).toEqual([
    'docs/page.md:11 TS2353',
    'docs/page.md:12 TS2304',
    'docs/page.md:15 TS2307',
  ])
})

test('[DO2] every JSON example is valid JSON, and the emulator accepts every scenario', async () => {
  const json = blocks.filter(({ language }) => language === 'json')
  for (const { text } of json) expect(() => JSON.parse(text) as unknown).not.toThrow()
  const folder = mkdtempSync(path.join(tmpdir(), 'docs-'))
  for (const { line, text } of blocks.filter(({ language }) => language === 'yaml')) {
    const file = path.join(folder, `${line}.yaml`)
    writeFileSync(file, text)
    await expect(loadScenario(file)).resolves.toBeDefined()
  }
  rmSync(folder, { recursive: true })
})

test('[DO2] commands name scripts, packages, files, options and URLs that exist', () => {
  expect(pages.flatMap(checkCommands)).toEqual([])
})

test.each([
  ['npm run nothing', 'no such script: nothing'],
  ['npm install zod nobody-wrote-this', 'no such package: nobody-wrote-this'],
  ['npm create adk-stream-protocol@latest a -- --template b', 'no such template: b'],
  ['npx gemini-emulator --port 1 --prot 2', 'gemini-emulator does not know --prot'],
  ['KEY=1 npx tsx server.ts', 'the page does not show server.ts'],
  [
    'curl -d \'{"a": 1}\' http://localhost:8000/approvls',
    'no such address: http://localhost:8000/approvls',
  ],
  ['rm -rf /', 'nobody checks rm'],
])('[DO2] a wrong command is found: %s', (command, fault) => {
  const text = ['```bash', command, '```'].join('\n')
  const page = { path: 'page.md', text, blocks: readBlocks('page.md', text) }
  expect(checkCommands(page)).toEqual([`page.md:2: ${fault}`])
})

test('[DO2] commands are split correctly', () => {
  const text = 'A=1 npm ci && npm test # all\ncurl -d \'{"a": 1}\' \\\n  http://x/approvals\n'
  expect(splitCommands({ text })).toEqual([
    ['npm', 'ci'],
    ['npm', 'test'],
    ['curl', '-d', '\'{"a": 1}\'', 'http://x/approvals'],
  ])
})

test('[DO3] every relative link leads to a file, and to a heading where it names one', () => {
  expect(readEveryPage().flatMap(findBrokenLinks)).toEqual([])
})

test('[DO3] links and headings are read as GitHub reads them', () => {
  const text = [
    '# Two `words`, *here*!',
    '## Again',
    '## Again',
    '[a](b.md#c) ![d](e.png) `[no](no.md)` <img src="f.png"> [g]: not',
    '[h]: i.md',
    '```',
    '# no heading',
    '[no](no.md)',
    '```',
  ].join('\n')
  expect([...readAnchors(text)]).toEqual(['two-words-here', 'again', 'again-1'])
  expect(readLinks(text)).toEqual(['b.md#c', 'e.png', 'i.md', 'f.png'])
  const page = {
    path: 'README.md',
    text: '[x](nowhere.md) [y](PROTOCOL.md#nothing) [z](PROTOCOL.md#errors)',
  }
  expect(findBrokenLinks({ ...page, blocks: [] })).toEqual([
    'README.md: nowhere.md',
    'README.md: PROTOCOL.md#nothing',
  ])
})
