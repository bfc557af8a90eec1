import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpus } from 'node:os'
import { fileURLToPath } from 'node:url'

import type { ReadRequest, Reading } from './servers/serve.ts'

/** The servers, by the letter of their row. */
const SERVERS = {
  R: new URL('servers/raw.ts', import.meta.url),
  F: new URL('servers/adk-runner.ts', import.meta.url),
  S: new URL('servers/adk-runner.ts', import.meta.url),
  us: new URL('servers/bridge.ts', import.meta.url),
  G: new URL('servers/bridge.ts', import.meta.url),
  A: new URL('servers/ai-sdk.ts', import.meta.url),
  A7: new URL('servers/ai-sdk.ts', import.meta.url),
} as const

/** Keeps a process on a core, on Linux. */
const TASKSET = 'taskset'

export type RowName = keyof typeof SERVERS

/** A server in its own process. */
export class ServerProcess {
  readonly port: number
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, port: number) {
    this.#child = child
    this.port = port
  }

  static async start(row: RowName): Promise<ServerProcess> {
    const node = [process.execPath, '--expose-gc', '--import', 'tsx', ...profiling(row)]
    const [command, ...args] = [...pinnedTo(0), ...node, fileURLToPath(SERVERS[row]), row]
    const child = spawn(command, args, {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    // The first message of a server is its port.
    return new ServerProcess(child, (await nextMessage(child)) as number)
  }

  /** Reads the figures of the server. With `collect`, garbage is collected first. */
  async read(question: ReadRequest = { collect: false }): Promise<Reading> {
    this.#child.send(question)
    // After its port, a server sends only readings.
    return (await nextMessage(this.#child)) as Reading
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, 'exit')
    this.#child.disconnect()
    await exited
  }
}

function nextMessage(child: ChildProcess): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const fail = (): void => reject(new Error('A server has died; its last words are above.'))
    child.once('exit', fail)
    child.once('message', (message) => {
      child.off('exit', fail)
      resolve(message)
    })
  })
}

/** Pins this process, which creates the load, to other cores than the servers'. Returns false if that is not possible. */
export function pinLoad(): boolean {
  if (pinnedTo(1).length === 0) return false
  execFileSync(TASKSET, ['-cp', '1', String(process.pid)], { stdio: 'ignore' })
  return true
}

/** Returns the command that pins a process to a core, or an empty list if that is not possible. */
export function pinnedTo(core: number): string[] {
  return canPin() ? [TASKSET, '-c', String(core)] : []
}

function canPin(): boolean {
  if (cpus().length < 2) return false
  try {
    execFileSync(TASKSET, ['--version'], { stdio: 'ignore' })
    return true
  } catch {
    // Not Linux, or not installed.
    return false
  }
}

/** Returns the options that write a CPU profile of a server, if `BENCH_PROFILE` is set to a folder. */
export function profiling(row: string): string[] {
  const directory = process.env['BENCH_PROFILE']
  return directory ? ['--cpu-prof', `--cpu-prof-dir=${directory}/${row}`] : []
}
