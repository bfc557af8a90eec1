import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

import { expect } from 'vitest'

import { bundleProgram } from '../../../../test/support/bundle-program.ts'
import { posixTest } from '../../../../test/support/posix-test.ts'

const program = bundleProgram(new URL('support/closing-process.ts', import.meta.url))

/** Starts a process with parts that report when they are closed, and returns its lines. */
async function start() {
  const child = spawn(process.execPath, [await program], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  const output = createInterface({ input: child.stdout })
  const ended = Promise.all([once(child, 'exit'), once(output, 'close')])
  output.on('line', (line) => lines.push(line))
  await expect.poll(() => lines).toContain('ready')
  return {
    child,
    lines,
    ended,
    [Symbol.dispose]() {
      child.kill('SIGKILL')
    },
  }
}

posixTest.each(['SIGTERM', 'SIGINT'] as const)(
  '[OB1141] %s closes the parts in order, and the last response is sent',
  async (signal) => {
    using started = await start()
    const { child, lines, ended } = started
    const url = lines.find((line) => line.startsWith('http')) ?? ''
    const response = await fetch(url)
    child.kill(signal)
    child.kill(signal === 'SIGTERM' ? 'SIGINT' : 'SIGTERM')
    await expect.poll(() => lines).toContain('closing')
    child.stdin.write('go on\n')
    expect(await response.text()).toBe('first last')
    await ended
    expect(child.exitCode).toBe(0)
    expect(lines.slice(lines.indexOf('closing'))).toEqual(['closing', 'closed', 'store closed'])
  },
)

posixTest('[OB1141] a later signal ends the process at once with code 1', async () => {
  using started = await start()
  const { child, lines, ended } = started
  child.kill('SIGTERM')
  await expect.poll(() => lines).toContain('closing')
  const repeating = setInterval(() => child.kill('SIGTERM'), 200)
  await ended
  clearInterval(repeating)
  expect(child.exitCode).toBe(1)
  expect(lines).not.toContain('closed')
})
