import { type ChildProcess, spawn } from 'node:child_process'

import { vi } from 'vitest'

/** The program of the studio, in `node_modules`. */
export const STUDIO_PROGRAM = 'adk-stream-protocol-studio/bin/adk-studio.js'

/** A running command. */
export class Command {
  static readonly #running: ChildProcess[] = []

  readonly #child: ChildProcess
  readonly exited: Promise<number | null>
  output = ''

  constructor(cwd: string, args: readonly string[], [program, ...rest]: readonly string[]) {
    this.#child = spawn(program ?? '', [...rest, ...args], {
      cwd,
      // The conditions and the variables of the test run are not those of a terminal.
      env: {
        PATH: process.env['PATH'],
        HOME: process.env['HOME'],
        npm_lifecycle_event: 'start',
      },
    })
    Command.#running.push(this.#child)
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (data: Buffer) => (this.output += data.toString()))
    this.exited = new Promise((resolve) => this.#child.on('close', resolve))
  }

  get pid(): number {
    return this.#child.pid ?? 0
  }

  /** Resolves when the output has this text, after what was there at the last call. */
  async until(pattern: RegExp): Promise<RegExpExecArray> {
    return vi.waitUntil(
      () => {
        const match = pattern.exec(this.output)
        if (match) this.output = this.output.slice(match.index + match[0].length)
        return match
      },
      { timeout: 60_000, interval: 20 },
    )
  }

  /** Ends all commands of this test file that still run. */
  static killAll(): void {
    for (const child of Command.#running.splice(0)) child.kill('SIGKILL')
  }

  stop(signal: NodeJS.Signals = 'SIGTERM'): void {
    this.#child.kill(signal)
  }
}
