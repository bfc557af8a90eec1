import type { Socket } from 'node:net'

import type { AgentProcess, LoadResult } from './agent-process.ts'
import type { DevRequest } from './dev-messages.ts'
import { createWaitingServer } from './waiting-page.ts'
import type { Problem } from '../load/problem.ts'

/** What happened when the agents were loaded. */
export interface Reload {
  readonly result: LoadResult
  /** The time from the change to the first connection that the new version can serve, in ms. */
  readonly ms: number
}

export interface AgentReloaderOptions {
  readonly request: DevRequest
  readonly start: () => AgentProcess
  readonly onLoaded: (reload: Reload) => void
  /** Called if the process with the agents has ended by itself. */
  readonly onEnded: () => void
  /** Whether a process for the next version is started before a file changes. */
  readonly standby: boolean
}

/** How long a version that was replaced may take for its running turns, in ms. */
const DRAIN_MS = 120_000

/** A version that ends by itself within this time is not started again before the next change, in ms. */
const STABLE_MS = 2_000

/**
 * Serves connections with the newest version of the agents that could be loaded. A new version takes over new connections when it is
 * ready. The version before it finishes its running turns. A version that cannot be loaded changes nothing.
 */
export class AgentReloader {
  readonly #options: AgentReloaderOptions
  /** The process that serves new connections. */
  #current: { readonly process: AgentProcess; readonly since: number } | undefined
  /** The process for the next version. It imports ADK before there is one. */
  #next: AgentProcess | undefined
  #problem: Problem | undefined
  #loading: Promise<void> | undefined
  #isChanged = false
  #isClosed = false
  /** All processes that have not ended. */
  readonly #processes = new Set<AgentProcess>()
  /** Serves connections while no version works. */
  readonly #waiting = createWaitingServer(() => this.#problem)

  constructor(options: AgentReloaderOptions) {
    this.#options = options
  }

  /** Serves a connection that was accepted without reading from it. */
  serve(socket: Socket): void {
    if (this.#current) this.#current.process.serve(socket)
    else this.#waiting.accept(socket)
  }

  /** Loads the newest version. Changes while it is loaded are loaded afterwards, once. */
  reload(): Promise<void> {
    this.#isChanged = true
    this.#loading ??= this.#loadChanges().finally(() => (this.#loading = undefined))
    return this.#loading
  }

  /** Ends all processes. */
  async close(drainMs: number): Promise<void> {
    this.#isClosed = true
    this.#current = undefined
    this.#waiting.release()
    // It has no work, and while it loads code, it reads no messages.
    this.#next?.kill()
    await Promise.all(Array.from(this.#processes, (each) => each.close(drainMs)))
  }

  /** Ends all processes at once. */
  kill(): void {
    for (const each of this.#processes) each.kill()
  }

  async #loadChanges(): Promise<void> {
    while (this.#isChanged && !this.#isClosed) {
      this.#isChanged = false
      const since = performance.now()
      const process = (this.#next ??= this.#start())
      const result = await process.load(this.#options.request)
      if (this.#isClosed) return
      this.#next = undefined
      if (result.type === 'ready') this.#replaceBy(process)
      else this.#keep(result.problem)
      this.#options.onLoaded({ result, ms: performance.now() - since })
      // Not before: it would slow down the version that is loaded.
      if (this.#options.standby) this.#next ??= this.#start()
    }
  }

  #start(): AgentProcess {
    const started = this.#options.start()
    this.#processes.add(started)
    void started.ended.then(() => this.#onEnd(started))
    return started
  }

  #onEnd(ended: AgentProcess): void {
    this.#processes.delete(ended)
    if (this.#next === ended) this.#next = undefined
    if (this.#current?.process !== ended) return
    const { since } = this.#current
    this.#current = undefined
    this.#problem = { message: 'The process of the agent has ended.' }
    this.#options.onEnded()
    if (performance.now() - since > STABLE_MS) void this.reload()
  }

  #replaceBy(process: AgentProcess): void {
    const before = this.#current?.process
    this.#current = { process, since: performance.now() }
    this.#problem = undefined
    this.#waiting.release()
    void before?.close(DRAIN_MS)
  }

  #keep(problem: Problem): void {
    this.#problem = problem
    this.#current?.process.show(problem)
  }
}
