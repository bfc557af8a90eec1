import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

import { bundleProgram } from '../../../../../test/support/bundle-program.ts'
import { temporaryDirectory } from '../../../../../test/support/temporary-directory.ts'

/** The child program, ready to be started, and a folder for its files. */
export interface Children extends AsyncDisposable {
  readonly file: (name: string) => string
  start(args: readonly string[], env?: Record<string, string>): Child
}

export async function bundleChildren(): Promise<Children> {
  const program = await bundleProgram(new URL('child.ts', import.meta.url))
  const folder = await temporaryDirectory()
  return {
    file: folder.file,
    start: (args, env = {}) =>
      new Child(
        spawn(process.execPath, [program, ...args], {
          stdio: ['pipe', 'pipe', 'inherit'],
          env: { ...process.env, ...env },
        }),
      ),
    [Symbol.asyncDispose]: () => folder[Symbol.asyncDispose](),
  }
}

class Child implements AsyncDisposable {
  readonly lines: string[] = []
  readonly ended: Promise<NodeJS.Signals | number | null>
  readonly #process: ChildProcess
  readonly #firstLine: Promise<unknown>

  constructor(child: ChildProcess) {
    this.#process = child
    if (child.stdout === null) throw new Error('the child has no output')
    const output = createInterface({ input: child.stdout })
    output.on('line', (line) => this.lines.push(line))
    this.#firstLine = once(output, 'line')
    const read = once(output, 'close')
    this.ended = once(child, 'exit').then(async () => {
      await read
      return child.signalCode ?? child.exitCode
    })
  }

  async ready(): Promise<void> {
    await Promise.race([this.#firstLine, this.ended])
  }

  go(): void {
    this.#process.stdin?.write('go\n')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill('SIGKILL')
    await this.ended
  }
}
