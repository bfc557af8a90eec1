import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { build } from 'vite'

/** The child program as one file that node runs as it is: many are started, and compiling each would take most of the time. */
export interface Children extends AsyncDisposable {
  readonly path: (name: string) => string
  start(args: readonly string[], env?: Record<string, string>): Child
}

export async function bundleChildren(): Promise<Children> {
  const folder = await mkdtemp(join(tmpdir(), 'ledger-children-'))
  const source = fileURLToPath(new URL('child.ts', import.meta.url))
  await build({
    configFile: false,
    logLevel: 'error',
    root: dirname(source),
    ssr: { noExternal: true, external: ['libsql'] },
    build: {
      ssr: source,
      outDir: folder,
      emptyOutDir: false,
      rolldownOptions: { output: { entryFileNames: 'child.mjs' } },
    },
  })
  const libsql = createRequire(import.meta.url).resolve('libsql')
  await symlink(dirname(dirname(libsql)), join(folder, 'node_modules'))
  return {
    path: (name) => join(folder, name),
    start: (args, env = {}) =>
      new Child(
        spawn(process.execPath, [join(folder, 'child.mjs'), ...args], {
          stdio: ['pipe', 'pipe', 'inherit'],
          env: { ...process.env, ...env },
        }),
      ),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
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
