import { fileURLToPath } from 'node:url'

import { defineConfig } from 'vitest/config'

import { isLong } from './test/support/long-run.ts'

const conditions = ['@adk-stream-protocol/source', 'node']
const COMPONENTS = 'packages/*/test/react/**/*.test.tsx'

/**
 * Components and hooks run with a version of the AI SDK in the place of the one that they import. `npm test` runs them with version 7,
 * and in a browser with version 6, which the demo uses. `npm run test:long` also runs them here with version 6.
 */
const components = (version: '6' | '7', alias: Record<string, string>) => ({
  extends: true as const,
  resolve: { alias },
  test: {
    name: `react ai ${version}`,
    env: { AI_SDK: version },
    include: [COMPONENTS],
    // Not an environment of vitest, which puts a browser's `fetch` in the way of the server that runs beside the page.
    setupFiles: ['packages/adk-stream-protocol/test/react/support/dom.ts'],
  },
})

const isNode20 = process.versions.node.startsWith('20.')

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    environment: 'node',
    globalSetup: ['test-run-folder.ts', 'postgres-server.ts'].map((file) =>
      fileURLToPath(new URL(`test/support/${file}`, import.meta.url)),
    ),
    setupFiles: [fileURLToPath(new URL('test/support/no-leftovers.ts', import.meta.url))],
    // What is waited for comes soon, or on a busy machine late. No test has a shorter time limit of its own. A page that does not
    // change has one, which says what the test waited for.
    testTimeout: 360_000,
    hookTimeout: 360_000,
    expect: { poll: { timeout: 120_000, interval: 20 } },
    // On CI a failed test runs up to twice more. The report marks it as repeated, and its cause is still to be fixed.
    retry: process.env['CI'] === undefined ? 0 : 2,
    // One more than the cores of the smallest supported machine: a test often waits for a timer or a child process.
    maxWorkers: 3,
    // A file takes seconds to load ADK anew. A file that changes what it shares with the next one fails.
    isolate: false,
    // A worker takes a fifth less CPU time if V8 optimises a function later than by default, which only Node 20 can be told, compiles
    // without optimisation what it would interpret, keeps the compiled code of functions that later files call again, and collects
    // garbage less often and on one thread.
    execArgv: [
      ...(isNode20 ? ['--interrupt-budget=660000'] : []),
      '--always-sparkplug',
      '--no-flush-bytecode',
      '--min-semi-space-size=16',
      '--single-threaded-gc',
    ],
    coverage: { provider: 'v8', include: ['packages/*/src/**'] },
    projects: [
      {
        extends: true,
        test: {
          name: 'node',
          include: [
            'e2e/**/*.test.ts',
            'test/**/*.test.ts',
            'packages/*/{src,test}/**/*.test.ts',
            'apps/*/test/**/*.test.ts',
          ],
        },
      },
      ...(isLong ? [components('6', {})] : []),
      components('7', { '@ai-sdk/react': '@ai-sdk/react-7', ai: 'ai-7' }),
    ],
  },
})
