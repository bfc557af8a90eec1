import { execFile } from 'node:child_process'
import { readdir, stat } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const DEMO = fileURLToPath(new URL('../..', import.meta.url))
const LIBRARY = '../../packages/adk-stream-protocol/src'

/** What the page is made of; of the library, that which runs in a browser. */
const SOURCES = ['src/page', ...['protocol', 'client', 'react'].map((part) => join(LIBRARY, part))]

/** Builds the page unless the last build is newer than everything it was made of. */
export async function buildPage(): Promise<void> {
  const built = await modifiedAt('dist/index.html')
  const sources = await Promise.all(SOURCES.map(listFiles))
  const files = [...sources.flat(), 'src/demo-info.ts', 'index.html', 'vite.config.ts']
  const times = await Promise.all(files.map(modifiedAt))
  if (built > Math.max(...times)) return

  // In a process of its own: under a test's NODE_ENV, React would be built for development.
  const vite = createRequire(import.meta.url).resolve('vite/package.json')
  await promisify(execFile)(process.execPath, [join(vite, '../bin/vite.js'), 'build'], {
    cwd: DEMO,
    env: { ...process.env, NODE_ENV: 'production' },
  })
}

async function listFiles(folder: string): Promise<string[]> {
  const files = await readdir(join(DEMO, folder), { recursive: true })
  return files.map((file) => join(folder, file))
}

async function modifiedAt(file: string): Promise<number> {
  const found = await stat(join(DEMO, file)).catch(() => undefined)
  return found?.mtimeMs ?? 0
}
