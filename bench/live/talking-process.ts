import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

import type { LiveReading, Order } from './child.ts'

/** A process of the benchmark, started from a file beside this one. */
export class TalkingProcess implements AsyncDisposable {
  readonly #child: ChildProcess
  /** The first thing it said: where it listens. */
  readonly address: unknown

  private constructor(child: ChildProcess, address: unknown) {
    this.#child = child
    this.address = address
  }

  static async start(file: string, env: Record<string, string> = {}): Promise<TalkingProcess> {
    const path = fileURLToPath(new URL(file, import.meta.url))
    const child = spawn(process.execPath, ['--expose-gc', '--import', 'tsx', path], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      env: { ...process.env, ...env, NODE_OPTIONS: '--conditions=@adk-stream-protocol/source' },
    })
    return new TalkingProcess(child, await nextMessage(child))
  }

  async order(order: Order): Promise<unknown> {
    this.#child.send(order)
    return nextMessage(this.#child)
  }

  async read(): Promise<LiveReading> {
    // The answer to this order, see child.ts.
    return (await this.order({ do: 'read' })) as LiveReading
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#child, 'exit')
    this.#child.disconnect()
    await exited
  }
}

async function nextMessage(child: ChildProcess): Promise<unknown> {
  const died = once(child, 'exit').then(() => {
    throw new Error('A process of the benchmark has died; its last words are above.')
  })
  const [message] = (await Promise.race([once(child, 'message'), died])) as [unknown]
  died.catch(() => undefined)
  return message
}
