import { ProtocolError } from '../protocol/errors.ts'

/** How long the database may take to answer before the server counts as not ready. */
const TIMEOUT_MS = 5_000

/** Whether the server can answer: its database can be opened and read, and it is not closing. */
export class Readiness {
  readonly #read: () => Promise<unknown>
  /** The check that runs now: any number of requests cost one read at a time. */
  #checking: Promise<void> | undefined
  #closed = false

  constructor(read: () => Promise<unknown>) {
    this.#read = read
  }

  /** Rejects if the server is not ready. */
  async check(): Promise<void> {
    if (this.#closed) throw new ProtocolError('unavailable')
    this.#checking ??= this.#tryRead().finally(() => (this.#checking = undefined))
    await this.#checking
  }

  close(): void {
    this.#closed = true
  }

  async #tryRead(): Promise<void> {
    let timer: NodeJS.Timeout | undefined
    const timeout = new Promise<never>((_, reject) => {
      const cause = new Error(`The database did not answer within ${TIMEOUT_MS} ms.`)
      timer = setTimeout(() => reject(cause), TIMEOUT_MS)
    })
    try {
      await Promise.race([this.#read(), timeout])
    } catch (cause) {
      throw new ProtocolError('unavailable', { cause, retryAfterSeconds: 5 })
    } finally {
      clearTimeout(timer)
    }
  }
}
