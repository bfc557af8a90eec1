import { createHash } from 'node:crypto'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath, pathToFileURL } from 'node:url'

import { build, type Plugin } from 'esbuild'

const bundles = new Map<string, Promise<string>>()

/**
 * Bundles a TypeScript program, once for all workers of a test run. Returns the path of the bundle. Node starts it in a fraction of the time that tsx
 * takes to load ADK file by file. The bundle is deleted with the temporary folder of the test run.
 */
export function bundleProgram(source: URL): Promise<string> {
  const file = fileURLToPath(source)
  const known = bundles.get(file) ?? (isOneRun ? bundleOnce(file) : bundleAnew(file))
  bundles.set(file, known)
  return known
}

/** Whether this process belongs to one run of the tests, with a temporary folder of its own, in which no source is edited. */
const isOneRun = process.env['VITEST_MODE'] === 'RUN' && process.env['TEST_FOLDER_OF'] !== undefined

async function bundleAnew(file: string): Promise<string> {
  const [program = ''] = await bundlePrograms([file])
  return program
}

/** The programs that contain ADK. They are bundled together: ADK takes most of the time, and is compiled once for all of them. */
const WITH_ADK = [
  'apps/demo/src/server/main.ts',
  'packages/adk-stream-protocol/src/use/cli.ts',
  'packages/adk-stream-protocol/test/faults/support/child.ts',
].map((file) => fileURLToPath(new URL(`../../${file}`, import.meta.url)))

/** Bundles a program, or waits until another worker of the test run has bundled it. */
async function bundleOnce(file: string): Promise<string> {
  const group = WITH_ADK.includes(file) ? WITH_ADK : [file]
  const hash = createHash('sha256').update(group.join()).digest('hex').slice(0, 16)
  const shared = path.join(tmpdir(), `bundle-${hash}`)
  const result = path.join(shared, 'paths')
  for (;;) {
    if (createFolder(shared)) break
    if (existsSync(result))
      return readFileSync(result, 'utf8').split('\n')[group.indexOf(file)] ?? ''
    await delay(20)
  }
  try {
    const programs = await bundlePrograms(group)
    writeFileSync(`${result}.new`, programs.join('\n'))
    renameSync(`${result}.new`, result)
    return programs[group.indexOf(file)] ?? ''
  } catch (error) {
    // Another worker tries, and reports its error.
    rmSync(shared, { recursive: true })
    throw error
  }
}

/** Returns whether the folder did not exist. */
function createFolder(folder: string): boolean {
  try {
    mkdirSync(folder)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Bundles several programs with their shared code compiled once. Returns the paths of the bundles. */
export async function bundlePrograms(sources: readonly string[]): Promise<string[]> {
  const outdir = mkdtempSync(path.join(tmpdir(), 'program-'))
  // esbuild cannot bundle native code.
  const libsql = createRequire(import.meta.url).resolve('libsql')
  symlinkSync(path.dirname(path.dirname(libsql)), path.join(outdir, 'node_modules'))
  await build({
    entryPoints: sources.map((source, index) => ({ in: source, out: `program-${index}` })),
    outdir,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    splitting: sources.length > 1,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    conditions: ['@adk-stream-protocol/source'],
    external: ['libsql'],
    // Node reads a third less.
    minifyWhitespace: true,
    legalComments: 'none',
    logLevel: 'error',
    plugins: [keepSourceUrls, leaveOutUnused],
    banner: { js: COMMON_JS },
  })
  return sources.map((_, index) => path.join(outdir, `program-${index}.mjs`))
}

/** Variables that CommonJS packages expect. */
const COMMON_JS = `
import { createRequire as createRequireOfBundle } from 'node:module'
import { fileURLToPath as toPathOfBundle } from 'node:url'
const require = createRequireOfBundle(import.meta.url)
const __filename = toPathOfBundle(import.meta.url)
const __dirname = toPathOfBundle(new URL('.', import.meta.url))
`

/** Keeps `import.meta.url` of workspace modules at the source file, so that they find files next to it. */
const keepSourceUrls: Plugin = {
  name: 'keep-source-urls',
  setup: (bundler) => {
    bundler.onLoad({ filter: /\.ts$/ }, async ({ path: file }) => {
      if (file.includes('/node_modules/')) return undefined
      const text = await readFile(file, 'utf8')
      if (!text.includes('import.meta.url')) return undefined
      const url = JSON.stringify(pathToFileURL(file).href)
      return { contents: text.replaceAll('import.meta.url', url), loader: 'ts' }
    })
  },
}

/**
 * Leaves out the modules of ADK, and the packages of its imports, from which a program uses nothing: half of the bundle, and a third
 * of the time that a process takes to start. ADK does not declare that its modules have no side effects.
 */
const leaveOutUnused: Plugin = {
  name: 'leave-out-unused',
  setup: (bundler) => {
    bundler.onResolve({ filter: /./ }, async ({ path: name, pluginData, ...place }) => {
      const isAdk = place.importer.includes('/node_modules/@google/adk/')
      if (pluginData === leaveOutUnused || !(isAdk || name.startsWith('@google/adk')))
        return undefined
      const { importer, resolveDir, kind } = place
      const found = await bundler.resolve(name, {
        importer,
        resolveDir,
        kind,
        pluginData: leaveOutUnused,
      })
      return { ...found, sideEffects: false }
    })
  },
}
