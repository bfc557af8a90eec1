import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'

import { GoogleGenAI } from '@google/genai'
import { beforeAll, expect, test } from 'vitest'

import { bundleProgram } from '../../../test/support/bundle-program.ts'
import { posixTest } from '../../../test/support/posix-test.ts'
import { temporaryDirectory } from '../../../test/support/temporary-directory.ts'
import { startEmulator } from '../src/index.ts'
import { MODEL } from './support/rest-client.ts'

let cli = ''

beforeAll(async () => {
  cli = await bundleProgram(new URL('../src/cli.ts', import.meta.url))
})

/** Runs the command in its own process. */
function run(...args: readonly string[]) {
  const child = spawn(process.execPath, [cli, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  let output = ''
  let errors = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => (output += text))
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text))
  const ended = once(child, 'close').then(([code]) => ({ code: code as number, output, errors }))
  return {
    ended,
    kill: (signal: NodeJS.Signals) => child.kill(signal),
    async printed(pattern: RegExp): Promise<string> {
      for (;;) {
        const found = pattern.exec(output)?.[1]
        if (found !== undefined) return found
        await Promise.race([
          once(child.stdout, 'data'),
          ended.then(({ code, errors: printed }) => {
            throw new Error(`ended with ${code}: ${printed}`)
          }),
        ])
      }
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await ended
    },
  }
}

posixTest.each(['SIGINT', 'SIGTERM'] as const)(
  '[EM58] the command serves a scenario until %s',
  async (signal) => {
    await using folder = await temporaryDirectory()
    const file = folder.file('scenario.yaml')
    await writeFile(file, 'exchanges: [{ when: やあ, do: [こんにちは] }]')
    await using command = run('--port', '0', '--scenario', file, '--pace', '0', '--api-key', 'k1')
    const baseUrl = await command.printed(/GOOGLE_GEMINI_BASE_URL=(\S+)/)
    const ask = (contents: string, apiKey = 'k1') =>
      new GoogleGenAI({ apiKey, httpOptions: { baseUrl } }).models.generateContent({
        model: MODEL,
        contents,
      })
    expect((await ask('やあ')).text).toBe('こんにちは')
    expect((await ask('[[say scripts work too]]')).text).toBe('scripts work too')
    await expect(ask('やあ', 'k2')).rejects.toMatchObject({ status: 400 })
    expect(await command.printed(/(generateContent gemini-2\.5-flash 200)/)).toMatch(/200/)
    command.kill(signal)
    expect(await command.ended).toMatchObject({ code: 0, errors: '' })
  },
)

test('[EM58] --help and --version print and exit', async () => {
  await using help = run('--help')
  await using version = run('--version')
  expect(await help.ended).toMatchObject({
    code: 0,
    output: expect.stringContaining('--scenario <file>') as string,
  })
  expect(await version.ended).toMatchObject({
    code: 0,
    output: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) as string,
  })
})

test('[EM59] wrong usage exits with 2 and prints the reason', async () => {
  await using unknown = run('--prot', '1')
  await using badPort = run('--port', 'http')
  const [first, second] = await Promise.all([unknown.ended, badPort.ended])
  expect(first.code).toBe(2)
  expect(first.errors).toContain("Unknown option '--prot'")
  expect(second.code).toBe(2)
  expect(second.errors).toContain('--port must be a number from 0 to 65535, not "http".')
})

test('[EM59] a failed start exits with 1 and prints the reason', async () => {
  await using taken = await startEmulator()
  await using port = run('--port', String(taken.port))
  await using file = run('--port', '0', '--scenario', '/no/such/scenario.yaml')
  const [first, second] = await Promise.all([port.ended, file.ended])
  expect(first.code).toBe(1)
  expect(first.errors).toContain(`Port ${taken.port} on 127.0.0.1 is in use.`)
  expect(second.code).toBe(1)
  expect(second.errors).toContain('/no/such/scenario.yaml')
})
