import { type ChildProcess, fork } from 'node:child_process'
import type { Socket } from 'node:net'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

import { defer } from '../../shared/async.ts'
import type { ChildMessage, DevRequest, LoadedAgents, ParentMessage } from './dev-messages.ts'
import type { Problem } from '../load/problem.ts'

/** The result of loading the agents. */
export type LoadResult =
  | { readonly type: 'ready'; readonly loaded: LoadedAgents }
  | { readonly type: 'failed'; readonly problem: Problem; readonly files: readonly string[] }

export interface AgentProcessOptions {
  /** The file of the first agent. */
  readonly entry: string
  /** Returns the URL of the emulator. */
  readonly startEmulator: () => Promise<string>
  /** Options of Node for the process, such as `--inspect`. */
  readonly execArgv: readonly string[]
}

/** A process that loads the agents once and serves them. It starts with what takes longest, ADK, before it is asked to load them. */
export class AgentProcess {
  readonly #child: ChildProcess
  readonly #loaded = defer<LoadResult>()
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>

  constructor({ entry, startEmulator, execArgv }: AgentProcessOptions) {
    const extension = path.extname(fileURLToPath(import.meta.url))
    const program = fileURLToPath(new URL(`./dev-child${extension}`, import.meta.url))
    this.#child = fork(program, [entry], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      execArgv: [
        ...process.execArgv,
        '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON',
        // Importing ADK creates much garbage. With room for it, the process starts a tenth faster.
        '--min-semi-space-size=32',
        ...execArgv,
      ],
    })
    const shown = path.relative(process.cwd(), entry) || entry
    const fail = (message: string): void =>
      this.#loaded.resolve({ type: 'failed', problem: { message }, files: [] })
    // The program sends nothing else.
    this.#child.on('message', (message: ChildMessage) => {
      if (message.type === 'emulator-needed')
        startEmulator().then(
          (baseUrl) => this.#send({ type: 'emulator', baseUrl }),
          (error: unknown) => fail(error instanceof Error ? error.message : String(error)),
        )
      else if (message.type !== 'warm') this.#loaded.resolve(message)
    })
    this.#child.on('error', ({ message }) => fail(message))
    const { promise, resolve } = defer()
    this.ended = promise
    this.#child.once('exit', (code, signal) => {
      const end = (): void => {
        fail(`${shown}: ended the process while it was loaded (${signal ?? `code ${code}`}).`)
        resolve()
      }
      // A message that was sent before may arrive later.
      if (this.#child.connected) this.#child.once('disconnect', end)
      else end()
    })
  }

  load(request: DevRequest): Promise<LoadResult> {
    this.#send({ type: 'load', request })
    return this.#loaded.promise
  }

  /** Passes on a connection that was accepted without reading from it. */
  serve(socket: Socket): void {
    if (!this.#child.connected) return void socket.destroy()
    const message: ParentMessage = { type: 'connection' }
    this.#child.send(message, socket, {}, (error) => {
      if (error) socket.destroy()
    })
  }

  show(problem: Problem | undefined): void {
    this.#send({ type: 'problem', problem })
  }

  /** Lets running work finish, at most for `drainMs`, and ends the process. */
  async close(drainMs: number): Promise<void> {
    this.#send({ type: 'close', drainMs })
    await this.ended
  }

  kill(): void {
    this.#child.kill('SIGKILL')
  }

  #send(message: ParentMessage): void {
    // The process may have ended.
    if (this.#child.connected) this.#child.send(message, () => undefined)
  }
}
