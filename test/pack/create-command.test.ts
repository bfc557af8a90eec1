import { spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { readTemplate, TEMPLATES } from '../../packages/create-adk-stream-protocol/src/templates.ts'
import { longTest } from '../support/long-test.ts'
import { posixTest } from '../support/posix-test.ts'
import type { Manifest } from './support/project.ts'
import { installProject, linkDependencies, packAll, readManifest } from './support/project.ts'

// Outside of the workspace, so that only installed packages are found.
const folder = mkdtempSync(path.join(tmpdir(), 'create-'))
const installed = path.join(folder, 'installed')
const bin = path.join(
  installed,
  'node_modules/create-adk-stream-protocol/bin/create-adk-stream-protocol.js',
)
let manifests: Manifest[] = []

beforeAll(async () => {
  manifests = await installProject(installed, await packAll(folder))
})

afterAll(() => rmSync(folder, { recursive: true }))

interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

function run(cwd: string, args: readonly string[], variables: Record<string, string> = {}) {
  // The conditions and the variables of the test run are not those of a terminal.
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], ...variables }
  const child = spawn(process.execPath, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
  const text = { stdout: '', stderr: '' }
  child.stdout.on('data', (data: Buffer) => (text.stdout += data.toString()))
  child.stderr.on('data', (data: Buffer) => (text.stderr += data.toString()))
  return new Promise<Ran>((resolve, reject) => {
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, ...text }))
  })
}

const list = (place: string): string[] =>
  readdirSync(place, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(place, path.join(entry.parentPath, entry.name)))
    .map((file) => file.split(path.sep).join('/'))
    .toSorted()

/** The files that every template has. */
const FILES = [
  '.env.example',
  '.github/workflows/test.yml',
  '.gitignore',
  'README.md',
  'agent.test.ts',
  'agent.ts',
  'approvals.ts',
  'package.json',
  'tsconfig.json',
]

test.each(Object.keys(TEMPLATES))(
  '[DV1500] creates a project from the template %s, without questions, and prints the next commands',
  async (template) => {
    const cwd = mkdtempSync(path.join(folder, 'new-'))
    const ran = await run(cwd, [bin, 'My Chat', '--template', template], {
      npm_config_user_agent: 'pnpm/10.0.0 npm/? node/v24.0.0',
    })
    const files = readTemplate(template, 'my-chat')
    expect(ran).toEqual({
      code: 0,
      stderr: '',
      stdout: `Created My Chat with the template ${template}: ${files.length} files.\n\n  cd "My Chat"\n  pnpm install\n  pnpm run dev\n  pnpm run test\n`,
    })
    const place = path.join(cwd, 'My Chat')
    expect(list(place)).toEqual(files.map(({ file }) => file).toSorted())
    expect(list(place)).toEqual(expect.arrayContaining(FILES))
    for (const { file, text } of files)
      expect(readFileSync(path.join(place, file), 'utf8')).toBe(text)
  },
)

test('[DV1500] without a terminal and arguments, the defaults are used; npm accepts the name of the project', async () => {
  const cwd = mkdtempSync(path.join(folder, 'new-'))
  expect((await run(cwd, [bin])).stdout).toMatch(/^Created adk-chat with the template node/)
  mkdirSync(path.join(cwd, 'express/.git'), { recursive: true })
  expect(
    (await run(path.join(cwd, 'express'), [bin, '.', '--template', 'express'])).stdout,
  ).toMatch(/^Created \. with the template express: \d+ files\.\n\n {2}npm install\n/)
  // npm does not install a package into a project of the same name.
  expect(readManifest(path.join(cwd, 'express')).name).toBe('express-chat')
  expect((await run(cwd, [bin, '日本'])).code).toBe(0)
  expect(readManifest(path.join(cwd, '日本')).name).toBe('adk-chat')
})

test('[DV1501] nothing is overwritten, and wrong arguments are one sentence and exit code 2', async () => {
  const cwd = mkdtempSync(path.join(folder, 'new-'))
  mkdirSync(path.join(cwd, 'full'))
  writeFileSync(path.join(cwd, 'full/notes.txt'), 'mine')
  for (const [args, sentence] of [
    [['full'], 'The folder full is not empty (notes.txt). Name a new folder.'],
    [['full/notes.txt'], 'full/notes.txt is a file, not a folder.'],
    [
      ['a', '--template', 'vue'],
      'There is no template vue. The templates are node, hono, express, next.',
    ],
    [
      ['a', '--template'],
      "Option '--template <value>' argument missing. --help lists the options.",
    ],
    [['a', '--force'], "Unknown option '--force'. --help lists the options."],
    [
      ['a', 'hono'],
      'Name one folder, not also hono. npm passes options on only after --: npm create adk-stream-protocol a -- --template hono',
    ],
  ] as const)
    expect(await run(cwd, [bin, ...args])).toEqual({
      code: 2,
      stdout: '',
      stderr: `create-adk-stream-protocol: ${sentence}\n`,
    })
  expect(list(cwd)).toEqual(['full/notes.txt'])
  expect(existsSync(path.join(cwd, 'a'))).toBe(false)
})

/** Creates a project with its packages installed. Returns a function that runs a script of it, such as `tsc --noEmit`. */
async function createProject(name: string) {
  expect((await run(folder, [bin, name, '--template', 'node'])).code).toBe(0)
  const project = path.join(folder, name)
  linkDependencies(project, path.join(installed, 'node_modules'))
  return async (script: string, ...more: string[]) => {
    const [program, ...args] = readManifest(project).scripts?.[script]?.split(' ') ?? []
    const tsc = path.join(project, 'node_modules/typescript/bin/tsc')
    return run(project, [...(program === 'tsc' ? [tsc] : []), ...args, ...more])
  }
}

// The scripts of the project are commands for a shell of Unix. `npm run test:quick-starts` runs all templates.
posixTest(
  '[DV1502] the test of a created project passes with the packages that it declares',
  async () => {
    const runScript = await createProject('chat')
    expect((await runScript('test')).stdout).toMatch(/pass 1\b[\s\S]*fail 0\b/)
  },
)

// `docs.test.ts` compiles the files that the pages show.
longTest('[DV1502] a created project type-checks with the packages that it declares', async () => {
  const runScript = await createProject('typed')
  expect(await runScript('typecheck', '--singleThreaded')).toEqual({
    code: 0,
    stdout: '',
    stderr: '',
  })
})

test('[DV1502] the templates accept the versions of this repository', () => {
  const workspace = path.join(import.meta.dirname, '../..')
  const own = new Map(manifests.map(({ name, version }) => [name, version]))
  const ranges = Object.keys(TEMPLATES).flatMap((template) => {
    const text = readTemplate(template, 'chat').find(({ file }) => file === 'package.json')?.text
    const { dependencies, devDependencies } = JSON.parse(text ?? '') as Manifest
    return Object.entries({ ...dependencies, ...devDependencies })
  })
  const tested = ranges.map(([name, range]) => {
    const places = ['.', 'packages/adk-stream-protocol', 'packages/studio', 'docs'].map((user) =>
      path.join(workspace, user, 'node_modules', name),
    )
    const found = places.filter((place) => existsSync(place))
    return {
      name,
      range,
      found: found.map((place) => own.get(name) ?? readManifest(place).version),
    }
  })
  // Next.js is not installed here.
  expect(tested.filter((each) => each.name !== 'next' && !isAccepted(each))).toEqual([])
})

interface Tested {
  readonly range: string
  readonly found: readonly string[]
}

/** Whether one of the versions is in a range of the form `^1.2.3 || ^2.0.0`. */
function isAccepted({ range, found }: Tested): boolean {
  return found.some((version) => {
    const parts = version.split('.').map(Number)
    return range.split(' || ').some((each) => {
      const least = each.replace('^', '').split('.').map(Number)
      const fixed = least[0] === 0 ? 2 : 1
      const differs = parts.findIndex((part, index) => part !== least[index])
      return differs < 0 || (differs >= fixed && (parts[differs] ?? 0) > (least[differs] ?? 0))
    })
  })
}
