import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'

import { PAGE_DIR } from '../../apps/demo/src/server/page-dir.ts'

/** Returns the built files of the demo's page, largest first. Files that the document names are marked. */
export async function readBundle(): Promise<string[][]> {
  const html = await readFile(join(PAGE_DIR, 'index.html'), 'utf8')
  const built = await readdir(join(PAGE_DIR, 'assets'))
  const names = built.filter((name) => !/\.(?:br|gz)$/.test(name))
  const files = await Promise.all(
    names.map(async (name) => {
      const content = await readFile(join(PAGE_DIR, 'assets', name))
      const mark = html.includes(name) ? ' (named by the document)' : ''
      return { name: withoutHash(name) + mark, raw: content.length, gzip: gzipSync(content).length }
    }),
  )
  return files
    .toSorted((first, second) => second.gzip - first.gzip)
    .map(({ name, raw, gzip }) => [name, toKb(raw), toKb(gzip)])
}

function withoutHash(name: string): string {
  return name.replace(/-[\w-]{8}\./, '.')
}

function toKb(bytes: number): string {
  return (bytes / 1024).toFixed(1)
}
