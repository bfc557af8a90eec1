import type { Child, Children } from './children.ts'
import type { Folder } from './folder.ts'

/** A server process that serves. */
export interface PooledServer {
  readonly child: Child
  readonly url: string
}

/** Server processes on one database that tests use one after the other. A process takes longer to start than most tests run. */
export class ServerPool implements AsyncDisposable {
  readonly #start: (name: string) => Child
  #free: PooledServer[] = []
  #started = 0

  constructor(children: Children, folder: Folder, env: Readonly<Record<string, string>>) {
    this.#start = (name) => children.start(folder, name, env)
  }

  /** Starts one server. */
  async start(): Promise<PooledServer> {
    this.#started += 1
    const child = this.#start(`pooled-${this.#started}`)
    return { child, url: await child.serve() }
  }

  /** Returns two servers. They are killed at the end, except for those that have been given back. */
  async borrowTwo(): Promise<BorrowedServers> {
    const missing = Math.max(0, 2 - this.#free.length)
    const started = await Promise.all(Array.from({ length: missing }, () => this.start()))
    const [one, two] = [...this.#free.splice(0, 2), ...started]
    if (one === undefined || two === undefined) throw new Error('Two servers were started.')
    const kept = new Set<PooledServer>()
    return {
      one,
      two,
      giveBack: (...servers) => {
        for (const server of servers) kept.add(server)
        this.#free.push(...servers)
      },
      async [Symbol.asyncDispose]() {
        for (const server of [one, two]) if (!kept.has(server)) await server.child.kill()
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#free.map(({ child }) => child.kill()))
    this.#free = []
  }
}

export interface BorrowedServers extends AsyncDisposable {
  readonly one: PooledServer
  readonly two: PooledServer
  /** Leaves servers that run and do nothing more to the next test. */
  readonly giveBack: (...servers: readonly PooledServer[]) => void
}
