import { rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'

import { expect, test } from 'vitest'

import { readTemplate } from '../../packages/create-adk-stream-protocol/src/templates.ts'
import { emulateProject } from './support/emulate-project.ts'
import { writeFiles } from './support/examples.ts'
import { readPages } from './support/pages.ts'
import { callsOf, payOnce } from './support/pay-once.ts'
import { runServer } from './support/run-server.ts'
import { bundlePrograms } from '../support/bundle-program.ts'
import { isLong } from '../support/long-run.ts'
import { posixTest } from '../support/posix-test.ts'

/** Calls the route by method, as Next.js does, which is not installed. Prints the same output. */
const NEXT = `
import { createServer } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import * as route from './app/api/agent/[...path]/route.ts'
createServer(getRequestListener((request) => route[request.method](request))).listen(3000, () => console.log('Listening on http://localhost:3000'))
`

/**
 * In `npm test`, the hosts are tested by `contract/hosts.test.ts`, and the route of Next.js by `server/next.test.ts`. The files of all
 * pages are compiled by `docs.test.ts`.
 */
const STARTS = [
  ['node', '/adk'],
  ...(isLong
    ? ([
        ['next', '/api/agent'],
        ['hono', '/adk'],
        ['express', '/adk'],
      ] as const)
    : []),
] as const
const folders = new Map(
  STARTS.map(([name]) => [name, writeFiles(`start-${name}`, readTemplate(name, name))]),
)
const next = folders.get('next')
if (next !== undefined) writeFileSync(path.join(next, 'server.ts'), NEXT)
const servers = [...folders.values()].map((folder) => path.join(folder, 'server.ts'))
const programs = bundlePrograms(servers)

posixTest.concurrent.each(STARTS)(
  '[DO4] the quick start with %s replies, requests approval, pays once when approved, and says so when denied',
  async (name, mountedAt) => {
    const folder = folders.get(name) ?? ''
    const program = (await programs)[servers.indexOf(path.join(folder, 'server.ts'))]
    {
      await using emulator = await emulateProject(readTemplate(name, name))
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

test.each([
  ['start/node', 'node'],
  ['start/hono', 'hono'],
  ['start/express', 'express'],
  ['start/next', 'next'],
  ['recipes/testing-your-agent', 'node'],
])('[DO4] every file that docs/%s.md shows is a file of the template %s', (page, template) => {
  const files = new Map(readTemplate(template, template).map(({ file, text }) => [file, text]))
  const found = readPages().find(({ path: file }) => file === `docs/${page}.md`)
  const shown = found?.blocks.flatMap(({ file, text }) =>
    file === undefined ? [] : [{ file, text }],
  )
  expect(shown?.length).toBeGreaterThan(2)
  for (const { file, text } of shown ?? [])
    // The first line of a block is the comment with the path.
    expect({ file, text: text.slice(text.indexOf('\n') + 1) }).toEqual({
      file,
      text: files.get(file),
    })
})
