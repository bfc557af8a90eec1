import { mkdirSync, writeFileSync } from 'node:fs'
import path from 'node:path'

import { expect, test } from 'vitest'

import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { findAgentFiles } from '../../src/dev/load/find-agents.ts'

test.each<[files: string[], place: string, found: string[]]>([
  [['own.mjs', 'agent.ts'], 'own.mjs', ['own.mjs']],
  [['agent.ts', 'app.js', 'src/app.ts'], '.', ['app.js']],
  [['agent.js', 'agent.ts'], '.', ['agent.ts']],
  [['index.ts', 'src/agent.mts', 'sub/agent.ts'], '.', ['src/agent.mts']],
  [
    ['b/agent.ts', 'a/app.cjs', 'c/other.ts', 'node_modules/agent.js', '.adk/agent.js'],
    '.',
    ['a/app.cjs', 'b/agent.ts'],
  ],
])('[DV1250] of the files %j, %s names %j', async (files, place, found) => {
  await using folder = await temporaryDirectory()
  for (const file of files) {
    mkdirSync(path.dirname(folder.file(file)), { recursive: true })
    writeFileSync(folder.file(file), '')
  }
  const paths = findAgentFiles(place, folder.path)
  expect(paths).toEqual(found.map((file) => folder.file(path.normalize(file))))
})

test.each<[place: string, sentence: RegExp]>([
  ['nope.ts', /^nope\.ts does not exist\.$/],
  ['data.json', /^data\.json is not a JavaScript or TypeScript file \(\.ts, /],
  ['.', /^There is no agent in \.: no agent\.ts, agent\.js, app\.ts or app\.js in it,/],
])('[DV1252] the path %s without an agent is one sentence', async (place, sentence) => {
  await using folder = await temporaryDirectory()
  writeFileSync(folder.file('data.json'), '{}')
  expect(() => findAgentFiles(place, folder.path)).toThrow(sentence)
})
