import { defineConfig } from 'vitest/config'

const conditions = ['@adk-stream-protocol/source', 'node']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ['e2e/**/*.test.ts'],
    globalSetup: ['e2e/support/prepare.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Each file has a server, a model and a browser of its own.
    maxWorkers: 2,
    isolate: false,
  },
})
