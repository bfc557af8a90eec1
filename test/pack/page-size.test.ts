import path from 'node:path'

import { build } from 'esbuild'
import { expect, test } from 'vitest'

const SRC = path.join(import.meta.dirname, '../../packages/adk-stream-protocol/src')

/** The size that each import adds to the bundle of a page, minified and without `ai` and `react`, in KB. */
const LIMITS = [
  ['adkApi', 'client/index.ts', 20],
  ['sseTransport', 'client/index.ts', 28],
  ['webSocketTransport', 'client/index.ts', 28],
  ['useAdkChat', 'react/index.ts', 50],
  ['*', 'client/index.ts', 87],
  ['*', 'react/index.ts', 194],
  ['*', 'protocol/index.ts', 10],
] as const

// esbuild removes less unused code than rolldown, so its figures are larger.
test.each(LIMITS)('[CL150] %s of %s is smaller than %i KB in a page', async (name, file, limit) => {
  const names = name === '*' ? '*' : `{ ${name} }`
  const bundle = await build({
    stdin: { contents: `export ${names} from './${file}'`, resolveDir: SRC, loader: 'ts' },
    bundle: true,
    minify: true,
    write: false,
    metafile: true,
    format: 'esm',
    platform: 'browser',
    // As rolldown does. By default, esbuild writes a Japanese character as an escape sequence of six.
    charset: 'utf8',
    // `qr` is loaded when the first QR code is shown.
    external: ['ai', 'react', '@ai-sdk/react', 'qr'],
  })
  const inputs = Object.values(bundle.metafile.outputs).flatMap((output) =>
    Object.entries(output.inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0),
  )
  const fromPackages = inputs
    .map(([input]) => input)
    // The only dependency of the client. `ai` depends on it, too, so a page with `ai` already has it.
    .filter((each) => /node_modules\/(?!eventsource-parser\/)/.test(each))
  expect(fromPackages).toEqual([])
  expect((bundle.outputFiles[0]?.contents.length ?? Infinity) / 1_000).toBeLessThan(limit)
})
