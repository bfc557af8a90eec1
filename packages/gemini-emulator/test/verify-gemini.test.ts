import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

import { describe, expect, test } from 'vitest'

import { startEmulator } from '../src/index.ts'
import { ASSUMPTIONS } from './verify/checks.ts'
import { Gemini } from './verify/gemini.ts'

const read = (path: string) => readFile(new URL(path, import.meta.url), 'utf8')

describe.each(['gemini-2.5-flash-native-audio-preview-12-2025', 'gemini-3.1-flash-live-preview'])(
  '%s',
  (liveModel) => {
    const checked = ASSUMPTIONS.flatMap(({ id, check }) => (check ? [{ id, check }] : []))

    test.each(checked)('[EM1080] the emulator behaves as assumed: $id', async ({ check }) => {
      await using emulator = await startEmulator({ apiKey: 'the-key' })
      const { baseUrl } = emulator
      const model = 'gemini-3-flash-preview'
      const target = { apiKey: 'the-key', baseUrl, model, liveModel, isEmulated: true }
      const { holds, seen } = await check(new Gemini(target))
      expect({ holds, seen }).toEqual({ holds: true, seen })
    })
  },
)

test('[EM1081] the page lists every assumption with its claim and its rules, which exist', async () => {
  const page = await read('../../../docs/gemini-assumptions.md')
  const rules = await read('../RULES.md')
  const listed = [
    ...page.matchAll(/^\| `([\w.-]+)`\s*\| ([^|]+?)\s*\| ([^|]+?)\s*\| ([^|]+?)\s*\|$/gm),
  ]
  expect(listed.map(([, id, claim, named, how]) => ({ id, claim, named, how }))).toEqual(
    ASSUMPTIONS.map(({ id, claim, rules: ids, check }) => ({
      id,
      claim,
      named: ids.join(', '),
      how: check ? 'script' : 'by hand',
    })),
  )
  for (const id of ASSUMPTIONS.flatMap((each) => each.rules)) expect(rules).toContain(`**${id}**`)
})

test('[EM1081] without a key, the command says how to use it', async () => {
  const main = fileURLToPath(new URL('verify/main.ts', import.meta.url))
  const env = { PATH: process.env['PATH'] ?? '' }
  const output = await new Promise<string>((resolve) => {
    execFile(process.execPath, ['--import', 'tsx', main], { env }, (_error, stdout) =>
      resolve(stdout),
    )
  })
  expect(output).toContain('GOOGLE_API_KEY=… npm run verify:gemini')
})
