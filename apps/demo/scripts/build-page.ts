import { execFile } from 'node:child_process'
import { readdir, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const DEMO = fileURLToPath(new URL('..', import.meta.url))
const LIBRARY = '../../packages/adk-stream-protocol/src'

/** The sources of the page: its own, and those of the library that run in a browser. */
const FOLDERS = [
  'src/page',
  'public',
  ...['protocol', 'client', 'react', 'shared'].map((part) => join(LIBRARY, part)),
]
const FILES = ['src/demo-info.ts', 'index.html', 'vite.config.ts', '../../package-lock.json']

/** Builds the page unless the last build is newer than its sources. `onStart` is called before a build, which takes seconds. */
export async function buildPage({ onStart }: { onStart?: () => void } = {}): Promise<void> {
  const built = await modifiedAt('dist/index.html')
  const sources = await Promise.all(FOLDERS.map(listFiles))
  const times = await Promise.all([...sources.flat(), ...FILES].map(modifiedAt))
  if (built > Math.max(...times)) return

  onStart?.()
  // In a process of its own: under a test's NODE_ENV, React would be built for development.
  const vite = createRequire(import.meta.url).resolve('vite/package.json')
  await promisify(execFile)(process.execPath, [join(vite, '../bin/vite.js'), 'build'], {
    cwd: DEMO,
    env: { ...process.env, NODE_ENV: 'production' },
  })
}

async function listFiles(folder: string): Promise<string[]> {
  const files = await readdir(join(DEMO, folder), { recursive: true })
  // The folders too: their time changes when a file is removed.
  return [folder, ...files.map((file) => join(folder, file))]
}

async function modifiedAt(file: string): Promise<number> {
  const found = await stat(join(DEMO, file)).catch(() => undefined)
  return found?.mtimeMs ?? 0
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  await buildPage({ onStart: () => console.log('Building the page. This takes a few seconds…') })
  console.log('Starting the server…')
}
