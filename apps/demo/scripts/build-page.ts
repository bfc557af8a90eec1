import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

import { buildPage, type PageBuild } from '../../../packages/studio/scripts/build-page.ts'

const DEMO = fileURLToPath(new URL('..', import.meta.url))

/** The sources of the plug-in: the demo's page, and the modules of the demo that it imports. */
export const PLUGIN_SOURCES = [
  'src/page',
  'src/demo-info.ts',
  'src/format-money.ts',
  'src/model/reading/places.ts',
].map((source) => join(DEMO, source))

/** Builds the page of the studio with the demo's plug-in, unless it was built from the same sources. */
export function buildDemoPage({ onStart }: Pick<PageBuild, 'onStart'> = {}): Promise<void> {
  return buildPage({ folder: DEMO, outDir: join(DEMO, 'dist'), sources: PLUGIN_SOURCES, onStart })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await buildDemoPage()
