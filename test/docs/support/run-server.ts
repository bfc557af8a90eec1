import { fork } from 'node:child_process'
import { once } from 'node:events'
import path from 'node:path'

export interface RunningServer extends AsyncDisposable {
  readonly url: string
  /** All that the server has printed, to both of its outputs. */
  readonly printed: () => string
}

/** Runs the server of a quick start in its own process and folder, as its reader does. */
export async function runServer(folder: string, modelUrl: string): Promise<RunningServer> {
  const child = fork(path.join(folder, 'server.ts'), {
    cwd: folder,
    execArgv: [
      '--conditions=@adk-stream-protocol/source',
      `--import=${import.meta.resolve('tsx')}`,
      `--import=${import.meta.resolve('./any-port.ts')}`,
    ],
    env: { ...process.env, GOOGLE_GEMINI_BASE_URL: modelUrl, GOOGLE_API_KEY: 'any' },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let printed = ''
  for (const output of [child.stdout, child.stderr])
    output?.on('data', (data: Buffer) => (printed += data.toString()))
  const exited = once(child, 'exit')
  const first = await Promise.race([once(child, 'message'), exited.then(() => undefined)])
  if (!first) throw new Error(`The server did not start:\n${printed}`)
  // The only thing that any-port.mjs tells.
  const [{ port }] = first as [{ port: number }]
  return {
    url: `http://127.0.0.1:${port}`,
    printed: () => printed,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await exited
    },
  }
}
