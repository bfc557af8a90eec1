import { defineConfig } from 'vite'

import { createPageConfig } from './page-config.ts'

export default defineConfig(createPageConfig({ outDir: 'dist/page' }))
