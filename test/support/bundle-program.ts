import { createHash } from 'node:crypto'
import { mkdtempSync, symlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

import { build, type Plugin } from 'esbuild'

import { oncePerRun } from './once-per-run.ts'

/** The programs that contain ADK. They are bundled together: ADK takes most of the time, and is compiled once for all of them. */
const WITH_ADK = [
  'apps/demo/src/server/main.ts',
  'packages/adk-stream-protocol/src/use/cli.ts',
  'packages/adk-stream-protocol/test/faults/support/child.ts',
  'packages/adk-stream-protocol/test/store/support/child.ts',
].map((file) => fileURLToPath(new URL(`../../${file}`, import.meta.url)))

/**
 * Bundles a TypeScript program, once for all workers of a test run. Returns the path of the bundle. Node starts it in a fraction of the time that tsx
 * takes to load ADK file by file. The bundle is deleted with the temporary folder of the test run.
 */
export async function bundleProgram(source: URL): Promise<string> {
  const file = fileURLToPath(source)
  const group = WITH_ADK.includes(file) ? WITH_ADK : [file]
  const hash = createHash('sha256').update(group.join()).digest('hex').slice(0, 16)
  const programs = await oncePerRun(`bundle-${hash}`, async () =>
    (await bundlePrograms(group)).join('\n'),
  )
  return programs.split('\n')[group.indexOf(file)] ?? ''
}

/** Bundles several programs with their shared code compiled once. Returns the paths of the bundles. */
export async function bundlePrograms(sources: readonly string[]): Promise<string[]> {
  const outdir = mkdtempSync(path.join(tmpdir(), 'program-'))
  // esbuild cannot bundle native code.
  const libsql = createRequire(import.meta.url).resolve('libsql')
  symlinkSync(path.dirname(path.dirname(libsql)), path.join(outdir, 'node_modules'), 'junction')
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
      if (/[\\/]node_modules[\\/]/.test(file)) return undefined
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
      const isAdk = /[\\/]node_modules[\\/]@google[\\/]adk[\\/]/.test(place.importer)
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
