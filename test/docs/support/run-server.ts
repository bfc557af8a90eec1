import { fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'
import { pathToFileURL } from 'node:url'

import { bundleProgram, bundlePrograms } from '../../support/bundle-program.ts'

export interface RunningServer extends AsyncDisposable {
  readonly url: string
  /** Everything that the server has printed to stdout and stderr. */
  readonly printed: () => string
  /** Sends a signal, and resolves to the exit code. */
  readonly signal: (signal: NodeJS.Signals) => Promise<number | null>
}

/** Runs the server of a quick start in its own process and folder. `program` is the compiled file. */
export async function runServer(
  folder: string,
  modelUrl: string,
  program?: string,
): Promise<RunningServer> {
  const server = program ?? (await bundlePrograms([path.join(folder, 'server.ts')]))[0] ?? ''
  const anyPort = await bundleProgram(new URL('any-port.ts', import.meta.url))
  const child = fork(server, {
    cwd: folder,
    execArgv: [`--import=${pathToFileURL(anyPort).href}`],
    env: { ...process.env, GOOGLE_GEMINI_BASE_URL: modelUrl, GOOGLE_API_KEY: 'any' },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let printed = ''
  for (const output of [child.stdout, child.stderr])
    output?.on('data', (data: Buffer) => (printed += data.toString()))
  const exited = once(child, 'exit')
  const first = await Promise.race([once(child, 'message'), exited.then(() => undefined)])
  if (!first) throw new Error(`The server did not start:\n${printed}`)
  // any-port.mjs sends only this message.
  const [{ port }] = first as [{ port: number }]
  return {
    url: `http://127.0.0.1:${port}`,
    printed: () => printed,
    signal: async (signal) => {
      child.kill(signal)
      await exited
      return child.exitCode
    },
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
