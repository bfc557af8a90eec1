import { defineConfig } from 'vitest/config'

const conditions = ['@adk-stream-protocol/source', 'node']

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    include: ['e2e/**/*.test.ts'],
    globalSetup: ['test/support/temporary-folder.ts', 'e2e/support/prepare.ts'],
    // A test that does not move ends by the time limit of its page, which says what it waited for.
    testTimeout: 360_000,
    hookTimeout: 360_000,
    expect: { poll: { timeout: 120_000, interval: 25 } },
    // On CI a failed test runs up to twice more. The report marks it as repeated, and its cause is still to be fixed.
    retry: process.env['CI'] === undefined ? 0 : 2,
    // A browser test waits for a third of its time: three processes keep two cores busy. Each has one browser for all of its files.
    maxWorkers: 3,
    isolate: false,
  },
})
