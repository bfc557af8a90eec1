import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

import { bundleProgram } from '../../../../../test/support/bundle-program.ts'
import type { Folder } from './folder.ts'

/** The server program, ready to be started. */
export interface Children {
  start(folder: Folder, name: string, env?: Readonly<Record<string, string>>): Child
}

/** A process lives for seconds. Without optimised code it takes a twelfth less CPU time. */
const V8_FLAGS = ['--no-opt']

export async function bundleChildren(): Promise<Children> {
  const program = await bundleProgram(new URL('child.ts', import.meta.url))
  return {
    start: ({ database, effects }, name, env = {}) =>
      new Child(
        spawn(process.execPath, [...V8_FLAGS, program, database, effects, name], {
          stdio: ['pipe', 'pipe', 'inherit'],
          env: { ...process.env, ...env },
        }),
      ),
  }
}

/** One server process. */
export class Child implements AsyncDisposable {
  readonly #lines: string[] = []
  /** How the process has ended: its exit code, or the signal. */
  readonly ended: Promise<NodeJS.Signals | number | null>
  readonly #process: ChildProcess
  #wake: () => void = () => undefined
  /** Called for each line that the process prints. */
  onLine: (line: string) => void = () => undefined

  constructor(child: ChildProcess) {
    this.#process = child
    if (child.stdout === null) throw new Error('the child has no output')
    const output = createInterface({ input: child.stdout })
    output.on('line', (line) => {
      this.#lines.push(line)
      this.onLine(line)
      this.#wake()
    })
    this.ended = once(child, 'exit').then(() => {
      this.#wake()
      return child.signalCode ?? child.exitCode
    })
  }

  /** Starts to serve. Returns the URL. */
  async serve(): Promise<string> {
    this.#process.stdin?.write('serve\n')
    return this.waitForLine((line) => line.startsWith('http://'))
  }

  /** Waits until the process has printed a matching line. */
  async waitForLine(matches: (line: string) => boolean): Promise<string> {
    for (;;) {
      const line = this.#lines.find(matches)
      if (line !== undefined) return line
      const { exitCode, signalCode } = this.#process
      if (exitCode !== null || signalCode !== null) throw new Error('the child has ended')
      await new Promise<void>((resolve) => {
        const wake = this.#wake
        this.#wake = () => {
          wake()
          resolve()
        }
      })
    }
  }

  /** Asks the process to end, and waits for it. */
  async terminate(): Promise<NodeJS.Signals | number | null> {
    this.#process.kill('SIGTERM')
    return this.ended
  }

  /** Writes a line to the input of the process. */
  writeLine(line: string): void {
    this.#process.stdin?.write(`${line}\n`)
  }

  /** Suspends the process with all of its threads, until `resume`. */
  pause(): void {
    this.#process.kill('SIGSTOP')
  }

  resume(): void {
    this.#process.kill('SIGCONT')
  }

  /** Kills the process. */
  async kill(): Promise<NodeJS.Signals | number | null> {
    this.#process.kill('SIGKILL')
    return this.ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
  }
}
