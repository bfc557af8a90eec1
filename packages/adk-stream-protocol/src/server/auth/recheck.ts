import type { Principal } from './authenticate.ts'
import { readError } from '../http/http-router.ts'
import { MAX_TIMER_MS } from '../max-timer.ts'

/** An open connection whose credentials are checked again. */
export interface Rechecked {
  /** The principal as it is now; rejects with `unauthenticated` when the credentials have ended. */
  checkPrincipal(): Promise<Principal>
  /** They were found valid again, maybe with other roles. */
  onChecked?(principal: Principal): void
  /** The credentials have ended. Called at most once. */
  onCredentialsEnd(): void
}

/**
 * Checks the credentials of an open connection at an interval and when they expire. A check that fails for another reason is
 * tried again, unless the credentials have expired meanwhile.
 */
export class Recheck {
  readonly #connection: Rechecked
  readonly #everyMs: number
  #expiresAt: number | undefined
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(connection: Rechecked, { expiresAt }: Principal, everyMs: number) {
    this.#connection = connection
    this.#everyMs = everyMs
    this.#expiresAt = expiresAt
    this.#schedule()
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
  }

  #schedule(): void {
    const expiresAt = this.#expiresAt ?? Number.POSITIVE_INFINITY
    const delay = Math.min(this.#everyMs, Math.max(expiresAt - Date.now(), 0), MAX_TIMER_MS)
    this.#timer = setTimeout(() => void this.#run(), delay)
  }

  async #run(): Promise<void> {
    const isValid = await this.#connection.checkPrincipal().then(
      (principal) => {
        this.#expiresAt = principal.expiresAt
        if (!this.#isStopped) this.#connection.onChecked?.(principal)
        return true
      },
      (error: unknown) => readError(error).code !== 'unauthenticated',
    )
    if (this.#isStopped) return
    const hasExpired = this.#expiresAt !== undefined && this.#expiresAt <= Date.now()
    if (isValid && !hasExpired) this.#schedule()
    else this.#connection.onCredentialsEnd()
  }
}
