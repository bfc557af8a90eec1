import { mkdtempSync, symlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

import { build, type Plugin } from 'esbuild'

const bundles = new Map<string, Promise<string>>()

/**
 * Makes JavaScript of a TypeScript program, once for all tests of a worker; gives its path. Node starts it in a fraction of the time that
 * tsx takes to load ADK file by file. It is below the temporary folder of the run, and removed with that.
 */
export function bundleProgram(source: URL): Promise<string> {
  const file = fileURLToPath(source)
  const known = bundles.get(file) ?? bundlePrograms([file]).then(([program = '']) => program)
  bundles.set(file, known)
  return known
}

/** Makes JavaScript of several programs at once, which costs as much as one: what they share is compiled once. Gives their paths. */
export async function bundlePrograms(sources: readonly string[]): Promise<string[]> {
  const outdir = mkdtempSync(path.join(tmpdir(), 'program-'))
  // Native code cannot be bundled.
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
    logLevel: 'error',
    plugins: [ownPlaces],
    banner: { js: COMMON_JS },
  })
  return sources.map((_, index) => path.join(outdir, `program-${index}.mjs`))
}

/** What CommonJS packages look for. */
const COMMON_JS = `
import { createRequire as createRequireOfBundle } from 'node:module'
import { fileURLToPath as toPathOfBundle } from 'node:url'
const require = createRequireOfBundle(import.meta.url)
const __filename = toPathOfBundle(import.meta.url)
const __dirname = toPathOfBundle(new URL('.', import.meta.url))
`

/** Modules of the workspace find the files beside them where they are, and not beside the bundle. */
const ownPlaces: Plugin = {
  name: 'own-places',
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
