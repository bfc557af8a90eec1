import path from 'node:path'

import { build } from 'esbuild'
import { expect, test } from 'vitest'

import manifest from '../../packages/adk-stream-protocol/package.json' with { type: 'json' }

const SRC = path.join(import.meta.dirname, '../../packages/adk-stream-protocol/src')
const OPTIONAL = Object.keys(manifest.peerDependenciesMeta)

test('[CL560] a server can be bundled without the optional packages', async () => {
  const bundle = await build({
    entryPoints: [path.join(SRC, 'server/index.ts')],
    bundle: true,
    write: false,
    format: 'esm',
    platform: 'node',
    external: ['@google/*', 'libsql', 'ws', 'zod', '@opentelemetry/*'],
    // Without such a file, an import fails unless it is inside `try`.
    alias: Object.fromEntries(OPTIONAL.map((name) => [name, './not-installed'])),
    logLevel: 'silent',
  })
  expect(bundle.errors).toEqual([])
})
