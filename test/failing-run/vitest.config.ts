import { fileURLToPath } from 'node:url'

import { defineConfig } from 'vitest/config'

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** A run with the set-up of the unit tests, in which one test fails, and one passes but changes what later files use. */
export default defineConfig({
  root: at('.'),
  test: {
    globalSetup: [at('../support/test-run-folder.ts'), at('../support/postgres-server.ts')],
    setupFiles: [at('../support/no-leftovers.ts')],
    include: ['fails.ts', 'leaves.ts'],
    hookTimeout: 60_000,
    testTimeout: 60_000,
  },
})
