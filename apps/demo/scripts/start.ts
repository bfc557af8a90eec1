import { buildDemoPage } from './build-page.ts'

/**
 * Starts the demo, or with `cluster` several instances of it. Builds the page first if its sources have changed. `npm start` loads ADK
 * before tsx, whose hooks would double the time to load it.
 */
const program = process.argv[2] === 'cluster' ? 'cluster/main.ts' : 'server/main.ts'

await Promise.all([
  buildDemoPage({ onStart: () => console.log('Building the page. This takes a few seconds…') }),
  // The page is built in another process, while this one loads the sources.
  import('../src/server/start-demo.ts'),
])
await import(`../src/${program}`)
