import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

import { expect, test } from 'vitest'

import ceilings from '../scripts/weave/ceilings.json' with { type: 'json' }
import { FEATURES, type Feature } from '../scripts/weave/features.ts'
import { compareWeave, isWithin, measureWeave } from '../scripts/weave/measure.ts'
import { readSourceFiles, removeComments, type SourceFile } from '../scripts/weave/source-files.ts'

const ROOT = path.join(import.meta.dirname, '..')
const SRC = path.join(ROOT, 'packages/adk-stream-protocol/src')

/**
 * The reading order of the library. A file may import from its own layer and from those before it. The folders inside `server` are the
 * core. The files beside them create a bridge from the core and the modules.
 */
const LAYERS = [
  'shared',
  'protocol',
  'client',
  'react',
  'locks',
  'approvals',
  'agent',
  'calls',
  'turns',
  'relay',
  'store',
  'server/*',
  'modules',
  'server',
  'dev',
  'conform',
  'use',
] as const

/** Layers that run in a browser, and so may not import Node or ADK, with the packages that they may import. */
const ANYWHERE: Readonly<Record<string, readonly string[]>> = {
  shared: [],
  protocol: ['zod'],
  // Types of the AI SDK, whose code the application provides. The parser is the one that the AI SDK depends on.
  client: ['ai', 'eventsource-parser'],
  // Optional peers: an application that imports this has them.
  react: ['react', '@ai-sdk/react', 'ai'],
}

const STYLES = [
  'packages/adk-stream-protocol/src/react/styles.css',
  'apps/demo/src/page/demo.css',
  ...readdirSync(path.join(ROOT, 'packages/studio/src/page/styles')).map(
    (file) => `packages/studio/src/page/styles/${file}`,
  ),
]

/** A property or value that names the left or right side, such as `margin-left`, `left` or `text-align: right`. */
const PHYSICAL =
  /^\s*(?:[a-z-]+-)?(?:left|right)(?:-[a-z]+)?\s*:|^\s*(?:text-align|float|clear)\s*:\s*(?:left|right)/

test.each(STYLES)('[RE1170] %s names no physical side', (file) => {
  const lines = readFileSync(path.join(ROOT, file), 'utf8').split('\n')
  expect(lines.filter((line) => PHYSICAL.test(line))).toEqual([])
})

function sources(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) =>
    /\.tsx?$/.test(file),
  )
}

function imports(file: string): string[] {
  const source = readFileSync(file, 'utf8')
  return [...source.matchAll(/(?:from|import) '([^']+)'/g)].map((match) => match[1] ?? '')
}

/** The names that a file imports at run time. */
function runtimeImports(file: string): string[] {
  const source = readFileSync(file, 'utf8')
  const statements = source.matchAll(/^(?:import|export) (?!type )[^;]*?from '([^']+)'/gm)
  return [...statements].map((match) => match[1] ?? '')
}

function layerOf(file: string): string {
  const [folder = '', ...rest] = path.relative(SRC, file).split(path.sep)
  return folder === 'server' && rest.length > 1 ? 'server/*' : folder
}

test('[AR1] every folder of the library is a layer', () => {
  const folders = LAYERS.filter((layer) => !layer.endsWith('/*'))
  expect(readdirSync(SRC).toSorted()).toEqual(folders.toSorted())
})

test.each(sources(SRC))('[AR1] %s imports downwards only', (file) => {
  const own = layerOf(path.join(SRC, file))
  const below = LAYERS.slice(0, LAYERS.findIndex((layer) => layer === own) + 1)
  const used = imports(path.join(SRC, file))
    .filter((target) => target.startsWith('.'))
    .map((target) => layerOf(path.resolve(SRC, path.dirname(file), target)))
  expect(below).toEqual(expect.arrayContaining(used))
})

test('[AR1360] a module imports no other module, and one file of the library names all of them', () => {
  const moduleOf = (file: string): string | undefined =>
    /^modules\/([^/]+)\//.exec(path.relative(SRC, file).replaceAll(path.sep, '/'))?.[1]
  const uses = sources(SRC).flatMap((file) =>
    runtimeImports(path.join(SRC, file))
      .filter((target) => target.startsWith('.'))
      .map((target) => moduleOf(path.resolve(SRC, path.dirname(file), target)))
      .filter((used) => used !== undefined && used !== moduleOf(path.join(SRC, file)))
      .map(() => file.replaceAll(path.sep, '/')),
  )
  expect(new Set(uses)).toEqual(new Set(['server/bridge-modules.ts']))
})

test('[AR1960] one file of the stores imports what features store', () => {
  const ofFeatures = /^store\/(?:sqlite|postgres)\/tables\//
  const users = sources(SRC).filter((file) =>
    runtimeImports(path.join(SRC, file)).some((target) => {
      const resolved = path.relative(SRC, path.resolve(SRC, path.dirname(file), target))
      return ofFeatures.test(resolved.replaceAll(path.sep, '/'))
    }),
  )
  expect(users.map((file) => file.replaceAll(path.sep, '/'))).toEqual(['store/features.ts'])
})

test('[AR930] no file of the library imports itself through others', () => {
  const targets = new Map(
    sources(SRC).map((file) => {
      const relative = imports(path.join(SRC, file)).filter((target) => target.startsWith('.'))
      return [file, relative.map((target) => path.join(path.dirname(file), target))]
    }),
  )
  const isInCycle = (file: string): boolean => {
    const reached = new Set(targets.get(file))
    // A set also iterates over what is added meanwhile.
    for (const each of reached) for (const target of targets.get(each) ?? []) reached.add(target)
    return reached.has(file)
  }
  expect([...targets.keys()].filter(isInCycle)).toEqual([])
})

test('[AR1230] features, folders and chains of imports are at their ceilings', () => {
  const differences = compareWeave(measureWeave(readSourceFiles(), FEATURES), ceilings)
  // A file that has moved is both new and gone: `npm run check:weave -- --write`.
  expect(differences).toEqual([])
})

test('[AR1230] every feature has the files that its table names', () => {
  const paths = readSourceFiles().map((file) => file.path)
  const unknown = FEATURES.flatMap(({ own }) => own).filter(
    (start) => !paths.some((file) => file.startsWith(start)),
  )
  expect(unknown).toEqual([])
})

test('[AR1230] finds uses in code, cycles of folders and chains of imports', () => {
  const paint: Feature = { name: 'paint', own: ['paint/'], identifiers: /[pP]aint/ }
  const measured = measureWeave(
    [
      createFile('paint/brush.ts', 'export const paint = 1', ['server/a/one.ts']),
      createFile('client/page.ts', 'usePaint()'),
      createFile('server/a/one.ts', "const url = 'https://x' // paints", ['server/b/two.ts']),
      createFile('server/a/three.ts', '/* paint */ const quote = /[/*]/'),
      createFile('server/b/two.ts', "if (kind === 'paint') return", ['server/a/three.ts']),
    ],
    [paint],
  )
  const expected = {
    features: { paint: ['server/b/two.ts'] },
    knots: [['server/a', 'server/b']],
    chains: { runtime: 4, withTypes: 4 },
  }
  expect(measured).toEqual(expected)
  const lower = { ...expected, features: { paint: [] }, knots: [] }
  expect([isWithin(measured, lower), isWithin(lower, measured)]).toEqual([false, true])
  expect(compareWeave(measured, lower)).toEqual([
    'Use of paint outside its own files: server/b/two.ts is new.',
    'A new cycle of folders: server/a, server/b.',
  ])
  expect(compareWeave(lower, { ...expected, chains: { runtime: 5, withTypes: 3 } })).toEqual([
    'Use of paint outside its own files: no longer server/b/two.ts. Lower the ceiling to 0.',
    'Folders in cycles: 0 instead of 2. Lower the ceiling.',
    'The longest chain of imports (runtime) has 4 files. Lower the ceiling to it.',
    'The longest chain of imports (withTypes) has 4 files, and may have 3.',
  ])
})

function createFile(name: string, code: string, targets: readonly string[] = []): SourceFile {
  return { path: name, code: removeComments(code), imports: targets, runtimeImports: targets }
}

test.each(sources(SRC).filter((file) => layerOf(path.join(SRC, file)) in ANYWHERE))(
  '[AR2] %s runs anywhere',
  (file) => {
    const known = ANYWHERE[layerOf(path.join(SRC, file))] ?? []
    const foreign = imports(path.join(SRC, file)).filter(
      (target) => !target.startsWith('.') && !known.includes(target),
    )
    expect(foreign).toEqual([])
  },
)

test('[AR2] only `react/` imports code of the AI SDK; the rest imports types', () => {
  const users = sources(SRC).filter(
    (file) =>
      layerOf(path.join(SRC, file)) !== 'react' &&
      runtimeImports(path.join(SRC, file)).includes('ai'),
  )
  expect(users).toEqual([])
})

test('[AR2] only code for pages imports `client/` and `react/`', () => {
  const users = sources(SRC).filter(
    (file) =>
      !['client', 'react'].includes(layerOf(path.join(SRC, file))) &&
      imports(path.join(SRC, file)).some((target) => /^\..*\/(?:client|react)\//.test(target)),
  )
  expect(users).toEqual([])
})

test('[DO850] the contract of stores imports no test runner and no database driver', () => {
  const packages = new Set<string>()
  const visited = new Set<string>()
  const visit = (file: string): void => {
    if (visited.has(file)) return
    visited.add(file)
    for (const target of runtimeImports(file))
      if (target.startsWith('.')) visit(path.resolve(path.dirname(file), target))
      else packages.add(target)
  }
  visit(path.join(SRC, 'store/contract/index.ts'))
  const foreign = [...packages].filter((name) => !name.startsWith('node:'))
  expect(foreign.toSorted()).toEqual(['@google/adk', 'canonicalize', 'zod'])
})

test.each(sources(path.join(ROOT, 'packages/gemini-emulator/src')))(
  '[AR3] emulator %s does not import the library',
  (file) => {
    const used = imports(path.join(ROOT, 'packages/gemini-emulator/src', file))
    expect(
      used.filter(
        (target) => target.startsWith('adk-stream-protocol') || target.startsWith('@google/'),
      ),
    ).toEqual([])
  },
)

test.each(sources(path.join(ROOT, 'apps/demo/src')))(
  '[AR4] demo %s uses public subpaths only',
  (file) => {
    const used = imports(path.join(ROOT, 'apps/demo/src', file))
    expect(
      used.filter((target) =>
        /packages\/|(?:adk-stream-protocol|gemini-emulator)\/(?:src|dist)/.test(target),
      ),
    ).toEqual([])
  },
)

/** What browsers offer only to pages with HTTPS and on `localhost`. */
const SECURE_ONLY =
  /\b(?:crypto\.(?:randomUUID|subtle)|navigator\.(?:bluetooth|clipboard|credentials|locks|mediaDevices|serviceWorker|share|storage|usb|wakeLock)|caches\.)/

/** Files that use it, and do something else where it is missing. */
const HANDLE_ITS_ABSENCE = new Set([
  'packages/adk-stream-protocol/src/client/voice/audio-devices.ts',
  'packages/adk-stream-protocol/src/react/components/message-content.tsx',
  'packages/adk-stream-protocol/src/react/components/share-approval.tsx',
  'packages/studio/src/page/conversation/message-actions.tsx',
  'packages/studio/src/page/wire/push.ts',
])

test('[AR1143] code for browsers also runs on pages without HTTPS', () => {
  const folders = [
    ...Object.keys(ANYWHERE).map((layer) => path.join(SRC, layer)),
    path.join(ROOT, 'apps/demo/src/page'),
    path.join(ROOT, 'packages/studio/src/page'),
  ]
  const files = folders.flatMap((folder) => sources(folder).map((file) => path.join(folder, file)))
  const using = files.filter((file) =>
    readFileSync(file, 'utf8')
      .split('\n')
      .some((line) => SECURE_ONLY.test(line) && !/^\s*(?:\/\/|\/?\*)/.test(line)),
  )
  const names = using.map((file) => path.relative(ROOT, file).replaceAll(path.sep, '/'))
  expect(new Set(names)).toEqual(HANDLE_ITS_ABSENCE)
})
