import { existsSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

import { expect, test } from 'vitest'

import { readPages, ROOT } from './support/pages.ts'
import { findSource, isDescribed, readPublicNames } from './support/public-names.ts'

const names = readPublicNames()

test('[DO6] every public name has a JSDoc sentence', () => {
  expect(names.length).toBeGreaterThan(80)
  const missing = names.filter((found) => !found.isDescribed)
  expect(missing.map(({ module, name }) => `${module}: ${name}`)).toEqual([])
})

test('[DO6] a name without a JSDoc sentence is found', () => {
  expect(isDescribed('/** Adds. */\nexport function add() {}', 'add')).toBe(true)
  expect(isDescribed('/** Adds. */\n\nexport function add() {}', 'add')).toBe(false)
  expect(isDescribed('/** Adds. */\nexport function addAll() {}', 'add')).toBe(false)
  // A re-exported name is described where it is declared.
  const reexport = "/** Sums. */\nexport { add, sum } from './sum.ts'"
  expect([isDescribed(reexport, 'add'), findSource(reexport, 'add')]).toEqual([false, './sum.ts'])
})

test('[DO6] every public name is in the reference; `npm run docs:api` writes it', () => {
  const missing = names.filter(({ module, name }) => !readHeadings(module).has(name))
  expect(missing.map(({ module, name }) => `${module}: ${name}`)).toEqual([])
})

test('[DO6] the reference has no names that are not public', () => {
  const modules = new Set(names.map(({ module }) => module))
  const gone = [...modules].flatMap((module) =>
    [...readHeadings(module)]
      .filter((heading) => !names.some(({ name, module: of }) => of === module && name === heading))
      .map((heading) => `${module}: ${heading}`),
  )
  expect(gone).toEqual([])
})

/** Returns the names that the page of a module describes as exports. */
function readHeadings(module: string): Set<string> {
  const file = path.join(ROOT, `docs/api/${module}.md`)
  const page = existsSync(file) ? readFileSync(file, 'utf8') : ''
  return findHeadings(page.split('\n## Types that are not exported\n', 1)[0] ?? '')
}

function findHeadings(text: string): Set<string> {
  const headings = text.replaceAll('\\_', '_').matchAll(/^### (?:abstract )?(\w+)/gim)
  return new Set([...headings].map((match) => match[1] ?? ''))
}

test('[DO851] the reference explains every type that a signature mentions', () => {
  const pages = readTexts(path.join(ROOT, 'docs/api'), /\.md$/)
  const explained = findHeadings(pages.join('\n'))
  const unexplained = findUnlinkedTypes(pages.join('\n'), readTypeNames()).filter(
    (name) => !explained.has(name),
  )
  expect(unexplained).toEqual([])
})

test('[DO851] a type without a link is found, a type parameter is not', () => {
  const types = new Set(['Limits', 'Tool'])
  const row = '| <a id="type-parameter-tool"></a> `Tool` |'
  expect(findUnlinkedTypes('| `limits` | `Limits` |', types)).toEqual(['Limits'])
  expect(findUnlinkedTypes('| `limits` | [`Limits`](#limits) |', types)).toEqual([])
  expect(findUnlinkedTypes(`${row}\n> **run**(\`tool\`): \`Tool\``, types)).toEqual([])
})

/** Returns the names of types in code spans that are not links, without those of type parameters. */
function findUnlinkedTypes(text: string, types: ReadonlySet<string>): string[] {
  const rows = text.matchAll(/<a id="type-parameter-[^"]*"><\/a> `(\w+)`/g)
  const parameters = new Set([...rows].map((match) => match[1]))
  const spans = text.matchAll(/(?<!\[)`([A-Z]\w+)`(?!\])/g)
  const mentioned = new Set([...spans].map((match) => match[1] ?? ''))
  return [...mentioned].filter((name) => types.has(name) && !parameters.has(name))
}

/** Returns the types that files of the packages export, without those that the reference replaces by their fields (`@inline`). */
function readTypeNames(): Set<string> {
  const declaration = /^(\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n)?export (?:interface|type) (\w+)/gm
  const found = ['adk-stream-protocol', 'gemini-emulator']
    .flatMap((name) => readTexts(path.join(ROOT, `packages/${name}/src`), /\.tsx?$/))
    .flatMap((text) => [...text.matchAll(declaration)])
  return new Set(
    found.filter(([, comment = '']) => !comment.includes('@inline')).map(([, , name = '']) => name),
  )
}

/** The entry point for implementations of `Store`. Applications do not import it. */
const FOR_STORES = 'adk-stream-protocol/store/contract'

const counted = names.filter(
  ({ module }) => module.startsWith('adk-stream-protocol/') && module !== FOR_STORES,
)

test('[DO220] the public API has at most 117 names', () => {
  expect(counted.length).toBeGreaterThan(80)
  expect(counted.slice(117).map(({ module, name }) => `${module}: ${name}`)).toEqual([])
})

test('[DO221] every public name is used in the demo or in the docs', () => {
  const texts = [
    ...readPages().map(({ text }) => text),
    ...readTexts(path.join(ROOT, 'apps/demo/src'), /\.tsx?$/),
    ...readTexts(path.join(ROOT, 'packages/studio/src'), /\.tsx?$/),
  ]
  const unused = counted.filter(
    ({ module, name }) => !texts.some((text) => uses(text, module, name)),
  )
  expect(unused.map(({ module, name }) => `${module}: ${name}`)).toEqual([])
})

test('[DO221] an import and a code span are uses, a word in a sentence is not', () => {
  const example = "import { type Inbox, useInbox } from 'adk-stream-protocol/react'"
  expect(uses(example, 'adk-stream-protocol/react', 'Inbox')).toBe(true)
  expect(uses(example, 'adk-stream-protocol/react', 'use')).toBe(false)
  expect(uses(example, 'adk-stream-protocol/client', 'Inbox')).toBe(false)
  expect(uses('`<Inbox list={list} />`', 'adk-stream-protocol/react', 'Inbox')).toBe(true)
  expect(uses('An Inbox lists approvals.', 'adk-stream-protocol/react', 'Inbox')).toBe(false)
})

/** Returns whether a text imports a name, or has it in a code span. */
function uses(text: string, module: string, name: string): boolean {
  const imported = new RegExp(`import (?:type )?\\{[^}]*\\b${name}\\b[^}]*\\} from '${module}'`)
  const span = new RegExp(`[^\`]\`<?${name}\\b[^\`\\n]*\`|^\`<?${name}\\b`, 'm')
  return imported.test(text) || span.test(text)
}

function readTexts(folder: string, name: RegExp): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => name.test(file))
    .map((file) => readFileSync(path.join(folder, file), 'utf8'))
}

test('[DO150] every option of `createBridge` is explained where users look for it', () => {
  const server = path.join(ROOT, 'packages/adk-stream-protocol/src/server')
  const options = [
    ...readFields(path.join(server, 'options.ts'), 'BridgeOptions'),
    ...readFields(path.join(server, 'options.ts'), 'SeveralAgentsOptions'),
    ...readFields(path.join(server, '../agent/agent-services.ts'), 'AgentServices'),
    ...readTexts(path.join(server, '../modules'), /\.ts$/).flatMap((text) =>
      readFieldsOf(text, '\\w+BridgeOptions'),
    ),
  ]
  expect(options).toEqual(
    expect.arrayContaining(['agent', 'agents', 'approvals', 'exposeState', 'plugins', 'signIn']),
  )
  const page = readFileSync(path.join(ROOT, 'docs/start/own-agent.md'), 'utf8')
  const list = /^## Options\n([\s\S]*?)^## /m.exec(page)?.[1] ?? ''
  expect(options.filter((name) => !list.includes(`\`${name}\``))).toEqual([])
})

/** Returns the names of an interface's fields. */
function readFields(file: string, name: string): string[] {
  return readFieldsOf(readFileSync(file, 'utf8'), name)
}

function readFieldsOf(text: string, name: string): string[] {
  const [, body = ''] =
    new RegExp(`^export interface ${name}\\b[^{]*\\{\\n([\\s\\S]*?)^\\}`, 'm').exec(text) ?? []
  return [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map((match) => match[1] ?? '')
}
