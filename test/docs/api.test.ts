import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'

import { expect, test } from 'vitest'

import { ROOT } from './support/pages.ts'
import { findSource, isDescribed, readPublicNames } from './support/public-names.ts'

const names = readPublicNames()

test('[DO6] every public name has a sentence', () => {
  expect(names.length).toBeGreaterThan(80)
  const missing = names.filter((found) => !found.isDescribed)
  expect(missing.map(({ module, name }) => `${module}: ${name}`)).toEqual([])
})

test('[DO6] a name without a sentence is found', () => {
  expect(isDescribed('/** Adds. */\nexport function add() {}', 'add')).toBe(true)
  expect(isDescribed('/** Adds. */\n\nexport function add() {}', 'add')).toBe(false)
  expect(isDescribed('/** Adds. */\nexport function addAll() {}', 'add')).toBe(false)
  // What is passed on is described where it is declared.
  const passing = "/** Sums. */\nexport { add, sum } from './sum.ts'"
  expect([isDescribed(passing, 'add'), findSource(passing, 'add')]).toEqual([false, './sum.ts'])
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

function readHeadings(module: string): Set<string> {
  const page = path.join(ROOT, `docs/api/${module}.md`)
  const text = existsSync(page) ? readFileSync(page, 'utf8').replaceAll('\\_', '_') : ''
  return new Set([...text.matchAll(/^### (?:abstract )?(\w+)/gim)].map((match) => match[1] ?? ''))
}

test('[DO150] every option of `createBridge` is explained where users look for it', () => {
  const server = path.join(ROOT, 'packages/adk-stream-protocol/src/server')
  const options = [
    ...readFields(path.join(server, 'options.ts'), 'BridgeOptions'),
    ...readFields(path.join(server, 'options.ts'), 'SeveralAgentsOptions'),
    ...readFields(path.join(server, 'chats/agent-host.ts'), 'AgentServices'),
  ]
  expect(options).toEqual(
    expect.arrayContaining(['agent', 'agents', 'approvals', 'exposeState', 'plugins']),
  )
  const page = readFileSync(path.join(ROOT, 'docs/start/own-agent.md'), 'utf8')
  const list = /^## Options\n([\s\S]*?)^## /m.exec(page)?.[1] ?? ''
  expect(options.filter((name) => !list.includes(`\`${name}\``))).toEqual([])
})

/** The names of an interface's fields. */
function readFields(file: string, name: string): string[] {
  const [, body = ''] =
    new RegExp(`^export interface ${name}\\b[^{]*\\{\\n([\\s\\S]*?)^\\}`, 'm').exec(
      readFileSync(file, 'utf8'),
    ) ?? []
  return [...body.matchAll(/^ {2}readonly (\w+)\??:/gm)].map((match) => match[1] ?? '')
}
