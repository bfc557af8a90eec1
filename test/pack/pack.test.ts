import { mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { oneOf } from '../support/long-run.ts'
import type { Manifest } from './support/project.ts'
import {
  compile,
  installProject,
  listFiles,
  packAll,
  readManifest,
  runNode,
} from './support/project.ts'

const AI_7 = { ai: 'ai-7', '@ai-sdk/react': '@ai-sdk/react-7' }
const PROJECTS = [
  { name: '6', aliases: {} },
  { name: '7', aliases: AI_7 },
] as const
const PAIRS = [
  { name: 'ai 6, TypeScript 6', version: '6', typescript: 6 },
  { name: 'ai 7, TypeScript 7', version: '7', typescript: 7 },
  { name: 'ai 6, TypeScript 7', version: '6', typescript: 7 },
  { name: 'ai 7, TypeScript 6', version: '7', typescript: 6 },
] as const

// Outside of the workspace, so that only installed packages are found.
const folder = mkdtempSync(path.join(tmpdir(), 'pack-'))
let tarballs: string[] = []
let manifests: Manifest[] = []

beforeAll(async () => {
  tarballs = await packAll(folder)
  for (const { name, aliases } of oneOf(PROJECTS, '7'))
    manifests = await installProject(path.join(folder, name), tarballs, aliases)
})

afterAll(() => rmSync(folder, { recursive: true }))

test('[DO5] the tarballs contain what is needed: no tests, no sources, no maps', async () => {
  for (const tarball of tarballs) {
    const files = await listFiles(tarball)
    const needed = ['README.md', 'LICENSE', 'CHANGELOG.md', 'package.json']
    expect(files).toEqual(expect.arrayContaining(needed))
    // The compiled files are readable. Maps and sources would double the size.
    const needless = /^(?!templates\/).*\.test\.|^test\/|tsbuildinfo|\.map$|^src\/.*\.tsx?$/
    expect(files.filter((file) => needless.test(file))).toEqual([])
  }
})

test('[SD1309] the studio has the built page with compressed files, in at most 1.5 MB', async () => {
  const tarball = tarballs.find((file) => file.includes('studio')) ?? ''
  const files = await listFiles(tarball)
  expect(files).toEqual(expect.arrayContaining(['dist/page/index.html', 'dist/page/index.html.br']))
  const scripts = files.filter((file) => /^dist\/page\/assets\/.*\.js$/.test(file))
  expect(scripts.length).toBeGreaterThan(5)
  expect(files).toEqual(expect.arrayContaining(scripts.map((file) => `${file}.br`)))
  expect(statSync(tarball).size).toBeLessThan(1_500_000)
})

test('[DO5] the manifests name the repository and its issues, and allow patch versions of dependencies', () => {
  for (const { name, dependencies, ...manifest } of manifests) {
    const address = 'https://github.com/adk-stream-protocol/adk-stream-protocol'
    expect(manifest).toMatchObject({
      homepage: expect.stringContaining(address) as string,
      bugs: { url: `${address}/issues` },
      repository: { url: `git+${address}.git`, directory: `packages/${folderOf(name)}` },
      author: expect.any(String) as string,
      license: 'MIT',
    })
    for (const range of Object.values(dependencies ?? {})) expect(range).toMatch(/^\^/)
  }
})

/** The plug-in of a page is compiled with the page, from its sources. */
function isPublished(target: unknown): boolean {
  return typeof target === 'object' && target !== null && 'default' in target
}

function folderOf(name: string): string {
  return name.replace(/^adk-stream-protocol-/, '')
}

// The workspace itself is compiled with ai 6 and TypeScript 7. `npm run test:long` runs all pairs.
test.each(oneOf(PAIRS, 'ai 7, TypeScript 7'))(
  '[DO5] a project with $name compiles, serves, chats and approves, and can import every subpath',
  async ({ version, typescript }) => {
    const project = path.join(folder, version)
    expect(readManifest(path.join(project, 'node_modules/ai')).version).toMatch(`${version}.`)
    expect(await compile(project, typescript)).toBe('')
    const names = manifests.flatMap(({ name, exports }) =>
      Object.entries(exports)
        .filter(([subpath, target]) => !/\.\w+$/.test(subpath) && isPublished(target))
        .map(([subpath]) => `${name}${subpath.slice(1)}`),
    )
    expect(names.length).toBeGreaterThan(8)
    const printed = await runNode(project, 'out/main.js', `chats-${typescript}.db`, ...names)
    expect(JSON.parse(printed.split('\n').at(-1) ?? '')).toEqual({
      asked: 'approval-requested',
      runsBefore: 0,
      decided: expect.stringMatching(/approved|executing|succeeded/) as string,
      runs: 1,
      said: 'text-end',
      hosts: ['function', 'function', 'function'],
      exporting: names,
    })
  },
)

test('[DO5] an import that is not declared is found', async () => {
  const script = "await import('hono')"
  await expect(
    runNode(path.join(folder, '7'), '--input-type=module', '-e', script),
  ).rejects.toThrow('ERR_MODULE_NOT_FOUND')
})

test('[DO5] the command of the emulator runs', async () => {
  const bin = 'node_modules/gemini-emulator/bin/gemini-emulator.js'
  const { version } = readManifest(path.join(folder, '7/node_modules/gemini-emulator'))
  expect(await runNode(path.join(folder, '7'), bin, '--version')).toBe(`${version}\n`)
})
