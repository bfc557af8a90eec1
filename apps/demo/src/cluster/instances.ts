import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

import { z } from 'zod'

/** An instance that accepts requests. */
export interface Instance {
  readonly name: string
  readonly url: string
}

export interface Instances {
  readonly accepting: () => readonly Instance[]
  /** The process ids of the instances, by name. */
  readonly pids: () => ReadonlyMap<string, number>
  /** Stops all instances, and waits until their running replies and calls have ended. */
  readonly stop: () => Promise<void>
}

export interface InstancesOptions {
  readonly names: readonly string[]
  /** The arguments of node that run an instance. Default: the sources, with tsx. */
  readonly program?: readonly string[]
  /** The environment variables of every instance. */
  readonly env: NodeJS.ProcessEnv
  readonly onChange: (sentence: string) => void
}

/** What an instance sends to its parent process when it listens. */
const Listening = z.object({ url: z.url() })

/** As in `npm start`. */
const SOURCES = [
  '--import',
  '@google/adk',
  '--import',
  'tsx',
  '--conditions=@adk-stream-protocol/source',
  fileURLToPath(new URL('../server/main.ts', import.meta.url)),
]

interface RunningInstance {
  readonly process: ChildProcess
  /** Undefined until it listens. */
  url?: string
}

/** Starts the demo once per name, each in a process of its own. An instance that ends is started again. */
export async function startInstances(options: InstancesOptions): Promise<Instances> {
  const running = new Map<string, RunningInstance>()
  let isStopping = false
  const start = (name: string): Promise<void> =>
    new Promise((resolve, reject) => {
      const process = spawnInstance(name, options)
      const instance: RunningInstance = { process }
      running.set(name, instance)
      process.on('message', (message) => {
        instance.url = Listening.parse(message).url
        options.onChange(`Instance ${name} runs as process ${process.pid}`)
        resolve()
      })
      process.on('exit', (code, signal) => {
        running.delete(name)
        if (isStopping) return
        if (instance.url === undefined) {
          reject(new Error(`Instance ${name} did not start (exit code ${code ?? signal}).`))
          return
        }
        options.onChange(`Instance ${name} ended (${signal ?? code}). Starting it again.`)
        start(name).catch((error: unknown) => options.onChange(String(error)))
      })
    })
  const stop = async (): Promise<void> => {
    isStopping = true
    await Promise.all(
      [...running.values()].map(
        ({ process }) =>
          new Promise((resolve) => {
            process.once('exit', resolve)
            process.kill('SIGTERM')
          }),
      ),
    )
  }
  try {
    await Promise.all(options.names.map(start))
  } catch (cause) {
    await stop()
    throw cause
  }
  return {
    accepting: () =>
      [...running].flatMap(([name, { url }]) => (url === undefined ? [] : { name, url })),
    pids: () => new Map([...running].map(([name, { process }]) => [name, process.pid ?? 0])),
    stop,
  }
}

function spawnInstance(name: string, { env, program = SOURCES }: InstancesOptions): ChildProcess {
  return spawn(process.execPath, program, {
    env: { ...env, DEMO_INSTANCE: name, PORT: '0' },
    // The summary of an instance would repeat the one of the cluster. Its errors are shown.
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  })
}
