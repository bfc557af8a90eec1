import { appendFileSync, existsSync, readFileSync, renameSync, statSync } from 'node:fs'
import { inspect } from 'node:util'

import type { Store } from '../../../src/store/index.ts'

/** A file keeps this much. When it is full, the one before it is replaced. */
const MAX_BYTES = 16_000_000
/** How many lines are written between two looks at the size of the file. */
const LINES_PER_LOOK = 1_000
/** How much of an argument, result or chunk a line has. */
const MAX_TEXT = 300

/** The log of a server process. All processes of a server write to the same file. */
export class ServerLog {
  readonly #file: string
  #lines = 0

  constructor(file: string) {
    this.#file = file
  }

  /** Writes a line. It survives a kill. */
  write(line: string): void {
    this.#lines += 1
    if (this.#lines % LINES_PER_LOOK === 0 && statSync(this.#file).size > MAX_BYTES)
      renameSync(this.#file, previous(this.#file))
    // Not by `Date.now`, which is wrong on some servers.
    const at = new Date(performance.timeOrigin + performance.now()).toISOString()
    appendFileSync(this.#file, `${at} ${process.pid} ${line.replaceAll('\n', ' ')}\n`)
  }

  error(error: unknown): void {
    this.write(`error: ${inspect(error, { depth: 4, breakLength: Infinity })}`)
  }
}

/** Returns the lines of a log, oldest first. */
export function readLog(file: string): string[] {
  return [previous(file), file]
    .filter((each) => existsSync(each))
    .flatMap((each) => readFileSync(each, 'utf8').split('\n'))
    .filter((line) => line !== '')
}

function previous(file: string): string {
  return `${file}.1`
}

/** The methods whose calls are logged: those that change what other processes see. */
const CHANGES: Partial<Record<keyof Store, readonly string[]>> = {
  approvals: ['lockChat', 'unlockChat', 'insert', 'replace', 'replaceAll', 'markReported'],
  sessions: ['appendEvent', 'rewind', 'deleteSession'],
  browserCalls: ['add', 'drop', 'takeDue'],
  relay: ['write', 'end', 'send', 'take'],
  liveSessions: ['save', 'drop'],
}

/** Makes a store log its changes. */
export function logChanges(store: Store, log: ServerLog): Store {
  for (const [part, names] of Object.entries(CHANGES)) {
    const target: unknown = store[part as keyof Store]
    if (typeof target === 'object' && target !== null) logCalls(target, names, log)
  }
  return store
}

function logCalls(target: object, names: readonly string[], log: ServerLog): void {
  for (const name of names) {
    const method: unknown = Reflect.get(target, name)
    if (typeof method !== 'function') continue
    const logged = async (...given: unknown[]): Promise<unknown> => {
      const startedAt = performance.now()
      const note = (result: string): void =>
        log.write(
          `${name} ${summarise(given)} ${result}, ${Math.round(performance.now() - startedAt)} ms`,
        )
      try {
        const result: unknown = await Reflect.apply(method, target, given)
        // Locks are tried, and signals are read, at short intervals.
        if (result !== false && !(Array.isArray(result) && result.length === 0))
          note(`-> ${summarise(result)}`)
        return result
      } catch (error) {
        note(`failed: ${String(error)}`)
        throw error
      }
    }
    Reflect.set(target, name, logged)
  }
}

/** Returns the beginning of a value as JSON. Sessions are named by their ids. */
export function summarise(value: unknown): string {
  const json = JSON.stringify(value, (key, each: unknown) => {
    if (key === 'session') return (each as { id?: string }).id
    if (each instanceof Uint8Array) return `${each.length} bytes`
    return each instanceof Map ? [...each] : each
  })
  return (json ?? 'undefined').slice(0, MAX_TEXT)
}
