import type { Principal } from './authenticate.ts'
import { readError } from './front-door.ts'

export interface RecheckOptions {
  readonly principal: Principal
  readonly everyMs: number
  /** The principal as it is now; rejects with `unauthenticated` when the credentials have ended. */
  readonly check: () => Promise<Principal>
  /** The credentials have ended. Called at most once. */
  readonly onEnd: () => void
  /** They were found valid again, maybe with other roles. */
  readonly onChecked?: (principal: Principal) => void
}

/** What a timer of Node can wait for. */
const MAX_DELAY_MS = 2_147_483_647

/**
 * Checks the credentials of an open connection at an interval and when they expire. A check that fails for another reason is
 * tried again, unless the credentials have expired meanwhile. Returns the way to stop.
 */
export function recheck(options: RecheckOptions): () => void {
  const { everyMs, check, onEnd, onChecked } = options
  let { expiresAt = Number.POSITIVE_INFINITY } = options.principal
  let isStopped = false
  let timer: NodeJS.Timeout | undefined
  const schedule = (): void => {
    const delay = Math.min(everyMs, Math.max(expiresAt - Date.now(), 0), MAX_DELAY_MS)
    timer = setTimeout(() => void run(), delay)
  }
  const run = async (): Promise<void> => {
    const isValid = await check().then(
      (principal) => {
        expiresAt = principal.expiresAt ?? Number.POSITIVE_INFINITY
        if (!isStopped) onChecked?.(principal)
        return true
      },
      (error: unknown) => readError(error).code !== 'unauthenticated',
    )
    if (isStopped) return
    if (isValid && Date.now() < expiresAt) schedule()
    else onEnd()
  }
  schedule()
  return () => {
    isStopped = true
    clearTimeout(timer)
  }
}
