import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { stripVTControlCharacters } from 'node:util'

import { expect, test } from 'vitest'

const VITEST = path.join(
  createRequire(import.meta.url).resolve('vitest/package.json'),
  '../vitest.mjs',
)

test('[AR7] [DO855] a test run with a failed test ends with exit code 1, also if it has started PostgreSQL, and names what a file leaves', async () => {
  // The run starts a PostgreSQL of its own, as `npm test` does.
  const { TEST_POSTGRES_BROKER: _parent, ...env } = process.env
  const config = path.join(import.meta.dirname, 'failing-run/vitest.config.ts')
  const run = spawn(process.execPath, [VITEST, 'run', '--config', config], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const outputs = await Promise.all([text(run.stdout), text(run.stderr), once(run, 'exit')])
  const output = stripVTControlCharacters(outputs.join('\n'))
  expect(output).toContain('1 failed | 1 passed')
  expect(output).toContain('leaves.ts [ leaves.ts ]')
  expect(output).toContain(
    'This file leaves to the next file of its worker: setTimeout, process.env.LEFT_BY_A_TEST',
  )
  expect(run.exitCode).toBe(1)
})
