import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { build } from 'vite'

const DEMO = fileURLToPath(new URL('../..', import.meta.url))

/** Builds the page unless the last build is newer than everything it was made of. */
export async function buildPage(): Promise<void> {
  const built = await modifiedAt(join(DEMO, 'dist/index.html'))
  const sources = await readdir(join(DEMO, 'src/page'), { recursive: true })
  const files = [...sources.map((file) => join('src/page', file)), 'index.html', 'vite.config.ts']
  const times = await Promise.all(files.map((file) => modifiedAt(join(DEMO, file))))
  if (built > Math.max(...times)) return
  await build({ configFile: join(DEMO, 'vite.config.ts'), logLevel: 'warn' })
}

async function modifiedAt(path: string): Promise<number> {
  const found = await stat(path).catch(() => undefined)
  return found?.mtimeMs ?? 0
}
