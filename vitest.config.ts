import { defineConfig } from 'vitest/config'

const conditions = ['@adk-stream-protocol/source', 'node']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: [
      'test/**/*.test.ts',
      'packages/*/{src,test}/**/*.test.ts',
      'apps/*/test/**/*.test.ts',
    ],
    environment: 'node',
    testTimeout: 20_000,
    // Of two cores, vitest would leave one idle.
    maxWorkers: 2,
    // A file takes seconds to load ADK anew. None of them changes what it shares with the next one.
    isolate: false,
    coverage: { provider: 'v8', include: ['packages/*/src/**'] },
  },
})
