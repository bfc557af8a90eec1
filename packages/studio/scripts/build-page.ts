import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const STUDIO = fileURLToPath(new URL('..', import.meta.url))
const LIBRARY = '../adk-stream-protocol/src'

/** The sources of the page: its own, and those of the library that run in a browser. */
export const PAGE_SOURCES = [
  'src/page',
  'src/studio-info.ts',
  'public',
  'index.html',
  'page-config.ts',
  ...['protocol', 'client', 'react', 'shared'].map((part) => join(LIBRARY, part)),
  // The versions of all packages.
  '../../package-lock.json',
].map((source) => join(STUDIO, source))

/** A page to build: the one of the studio, or the same with a plug-in. */
export interface PageBuild {
  /** The folder with `vite.config.ts`. */
  readonly folder: string
  /** The output folder of that configuration. */
  readonly outDir: string
  /** The sources of the plug-in. Default: none. */
  readonly sources?: readonly string[]
  /** Called before a build, which takes seconds. */
  readonly onStart?: (() => void) | undefined
}

/** The page without a plug-in. */
export const STUDIO_PAGE: PageBuild = { folder: STUDIO, outDir: join(STUDIO, 'dist/page') }

/** Builds a page unless it was built from the same sources. */
export async function buildPage({
  folder,
  outDir,
  sources = [],
  onStart,
}: PageBuild): Promise<void> {
  // The hash of the sources that the page was built from. A build that fails or is stopped leaves none.
  const builtFrom = join(outDir, '.sources')
  const hash = await hashFiles([...PAGE_SOURCES, join(folder, 'vite.config.ts'), ...sources])
  if ((await readFile(builtFrom, 'utf8').catch(() => '')) === hash) return

  onStart?.()
  // In a process of its own: under a test's NODE_ENV, React would be built for development.
  const vite = createRequire(import.meta.url).resolve('vite/package.json')
  await promisify(execFile)(
    process.execPath,
    [join(vite, '../bin/vite.js'), 'build', '--logLevel', 'warn', '--config', 'vite.config.ts'],
    { cwd: folder, env: { ...process.env, NODE_ENV: 'production' } },
  )
  await writeFile(builtFrom, hash)
}

/** Returns a hash of the files and folders: of their names and of what they contain. */
export async function hashFiles(paths: readonly string[]): Promise<string> {
  const files = (await Promise.all(paths.map(listFiles))).flat()
  const contents = await Promise.all(files.map((file) => readFile(file)))
  const hash = createHash('sha256')
  for (const [index, file] of files.entries())
    hash.update(JSON.stringify([file, contents[index]?.length])).update(contents[index] ?? '')
  return hash.digest('hex')
}

async function listFiles(path: string): Promise<string[]> {
  const entries = await readdir(path, { recursive: true, withFileTypes: true }).catch(
    (cause: NodeJS.ErrnoException) => {
      if (cause.code === 'ENOTDIR') return undefined
      throw cause
    },
  )
  if (entries === undefined) return [path]
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted()
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildPage(STUDIO_PAGE)
