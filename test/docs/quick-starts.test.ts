import { execFile } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'

import { expect, test } from 'vitest'

import { emulatePage } from './support/emulate-page.ts'
import { writeFiles } from './support/examples.ts'
import type { Block } from './support/pages.ts'
import { readPages } from './support/pages.ts'
import { callsOf, payOnce } from './support/pay-once.ts'
import { runServer } from './support/run-server.ts'
import { bundlePrograms } from '../support/bundle-program.ts'
import { isLong } from '../support/long-run.ts'
import { posixTest } from '../support/posix-test.ts'

const pages = readPages()

function blocksOf(page: string): readonly Block[] {
  return pages.find(({ path: file }) => file === `docs/${page}.md`)?.blocks ?? []
}

/** Calls the route by method, as Next.js does, which is not installed. Prints the same output. */
const NEXT = `
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import * as route from './app/api/agent/[...path]/route.ts'
createServer(getRequestListener((request) => route[request.method](request))).listen(3000, () => console.log('Listening on http://localhost:3000'))
`

/** In `npm test`, the hosts are tested by `contract/hosts.test.ts`, and the files of all pages are compiled by `docs.test.ts`. */
const STARTS = [
  ['node', '/adk'],
  ['next', '/api/agent'],
  ...(isLong
    ? ([
        ['hono', '/adk'],
        ['express', '/adk'],
      ] as const)
    : []),
] as const
const folders = new Map(
  STARTS.map(([name]) => [name, writeFiles(`start-${name}`, blocksOf(`start/${name}`))]),
)
writeFileSync(path.join(folders.get('next') ?? '', 'server.ts'), NEXT)
const servers = [...folders.values()].map((folder) => path.join(folder, 'server.ts'))
const recipe = writeFiles('testing', blocksOf('recipes/testing-your-agent'))
const programs = bundlePrograms([...servers, path.join(recipe, 'agent.test.ts')])

posixTest.concurrent.each(STARTS)(
  '[DO4] the quick start with %s replies, requests approval, pays once when approved, and says so when denied',
  async (name, mountedAt) => {
    const folder = folders.get(name) ?? ''
    const program = (await programs)[servers.indexOf(path.join(folder, 'server.ts'))]
    {
      await using emulator = await emulatePage(blocksOf(`start/${name}`))
      await using server = await runServer(folder, emulator.baseUrl, program)
      const [asked, answered] = await payOnce(`${server.url}${mountedAt}`)
      expect(callsOf(asked)).toEqual([['tool-process_payment', 'approval-requested']])
      expect(callsOf(answered)).toEqual([
        [
          'tool-process_payment',
          'output-available',
          { success: true, amount: 30, recipient: 'Alice' },
        ],
      ])
      const text = answered.parts.findLast(({ type }) => type === 'text')
      expect(text).toMatchObject({ text: 'I sent $30 to Alice.', state: 'done' })
      const [, denied] = await payOnce(`${server.url}${mountedAt}`, false)
      expect(callsOf(denied)).toEqual([['tool-process_payment', 'output-denied']])
      expect(denied.parts.findLast(({ type }) => type === 'text')).toMatchObject({
        text: 'I could not send $30 to Alice.',
      })
      expect(server.printed()).toContain('Listening on http://localhost:')
      expect(server.printed()).not.toMatch(/WARN|ERROR|experimental/)
      // Next.js has its own handlers.
      const code = name === 'next' ? 0 : await server.signal(name === 'node' ? 'SIGTERM' : 'SIGINT')
      expect(code).toBe(0)
    }
    rmSync(folder, { recursive: true })
  },
)

test('[DO4] the test that a recipe shows passes', async () => {
  const program = (await programs).at(-1) ?? ''
  const { stdout } = await promisify(execFile)(process.execPath, ['--test', program], {
    cwd: recipe,
    // As a child of a test runner, it would report in a binary format.
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
  })
  expect(stdout).toMatch(/pass 1\b[\s\S]*fail 0\b/)
  rmSync(recipe, { recursive: true })
})

test('[DO4] the agent and the scenario are the same in every quick start', () => {
  const agents = ['node', 'hono', 'express', 'next'].map(
    (name) => blocksOf(`start/${name}`).find(({ file }) => file === 'agent.ts')?.text,
  )
  expect(agents[0]).toContain('requireConfirmation: true')
  expect(new Set(agents).size).toBe(1)
  const scenarios = ['node', 'hono', 'express', 'next'].map(
    (name) => blocksOf(`start/${name}`).find(({ text }) => text.startsWith('# model.yaml'))?.text,
  )
  expect(scenarios[0]).toContain('toolError: process_payment')
  expect(new Set(scenarios).size).toBe(1)
})
