import path from 'node:path'
import { gzipSync } from 'node:zlib'

import { build } from 'esbuild'
import { expect, test } from 'vitest'

const SRC = path.join(import.meta.dirname, '../../packages/adk-stream-protocol/src')

/** The size that imports add to the bundle of a page, without `ai` and `react`, in KB: minified, and then compressed. */
const LIMITS = [
  ['{ adkApi }', 'client/index.ts', 22, 9],
  ['{ sseTransport }', 'client/index.ts', 33, 13],
  ['{ webSocketTransport }', 'client/index.ts', 30, 11],
  ['{ useAdkChat }', 'react/index.ts', 56, 20],
  ['{ AdkProvider, ApprovalCard }', 'react/index.ts', 63, 24],
  ['{ AdkProvider, ApprovalInbox, useInbox }', 'react/index.ts', 75, 28],
  ['{ AdkProvider, Composer, MessageList, useAdkChat }', 'react/index.ts', 155, 54],
  ['*', 'client/index.ts', 99, 34],
  ['*', 'react/index.ts', 216, 76],
  ['*', 'protocol/index.ts', 1, 1],
] as const

// esbuild removes less unused code than rolldown, so its figures are larger.
async function bundle(names: string, file: string) {
  const { metafile, outputFiles } = await build({
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
  const inputs = Object.values(metafile.outputs).flatMap((output) =>
    Object.entries(output.inputs).filter(([, { bytesInOutput }]) => bytesInOutput > 0),
  )
  const [code] = outputFiles
  return { inputs: inputs.map(([input]) => input), code: code?.contents ?? new Uint8Array() }
}

test.each(LIMITS)(
  '[CL150] %s of %s is smaller than %i KB in a page, and %i KB compressed',
  async (names, file, limit, limitCompressed) => {
    const { inputs, code } = await bundle(names, file)
    // The only dependency of the client. `ai` depends on it, too, so a page with `ai` already has it.
    const fromPackages = inputs.filter((each) =>
      /node_modules\/(?!eventsource-parser\/)/.test(each),
    )
    expect(fromPackages).toEqual([])
    expect(code.length / 1_000).toBeLessThan(limit)
    expect(gzipSync(code).length / 1_000).toBeLessThan(limitCompressed)
  },
)

test.each([
  ['ApprovalCard', /inbox|history|message-list|question-card|sign-in|step|voice|chat|labels\/ja/],
  ['ApprovalInbox', /history|message-list|step|voice|chat|labels\/ja/],
  ['MessageList', /inbox|history|approval-list|voice-stage|labels\/ja/],
])('[CL150] a page with %s loads nothing of other components', async (name, others) => {
  const { inputs } = await bundle(`{ AdkProvider, ${name} }`, 'react/index.ts')
  expect(inputs.filter((input) => others.test(input))).toEqual([])
})
