import { fileURLToPath } from 'node:url'

import { defineConfig } from 'vite'

import { createPageConfig } from '../../packages/studio/page-config.ts'

export default defineConfig(
  createPageConfig({
    outDir: fileURLToPath(new URL('dist', import.meta.url)),
    plugin: fileURLToPath(new URL('src/page/plugin.tsx', import.meta.url)),
    gzip: true,
    paths: ['/direct', '/calendar'],
  }),
)
