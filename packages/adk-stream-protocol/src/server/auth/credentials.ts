import { ProtocolError } from '../../protocol/errors.ts'
import { readError } from '../http/exchange.ts'
import type { AuthenticateRequest, Principal } from './authenticate.ts'

/**
 * Returns a function that authenticates a request again. It throws `unauthenticated` if the credentials no longer identify the same
 * principal: a session may expire or a key may be revoked while a socket or a feed is open for hours (WS16, EV140).
 */
export function credentialCheck(
  request: AuthenticateRequest,
  { id, responseHeaders }: Principal,
  identify: (request: AuthenticateRequest) => Promise<Principal>,
): () => Promise<Principal> {
  /** The cookie that the handshake set, as the client sends it back. */
  const cookie = responseHeaders && readSetCookie(responseHeaders)
  return async () => {
    const principal = await identify(cookie === undefined ? request : withCookie(request, cookie))
    if (principal.id !== id) throw new ProtocolError('unauthenticated')
    return principal
  }
}

/** Returns the request with the cookie of the handshake, as the client sends its next one. */
function withCookie(
  { method, url, headers }: AuthenticateRequest,
  cookie: string,
): AuthenticateRequest {
  const next = new Headers(headers)
  const [name] = cookie.split('=', 1)
  const kept = (headers.get('cookie') ?? '')
    .split(';')
    .filter((pair) => pair.trim() !== '' && pair.trim().split('=', 1)[0] !== name)
  next.set('cookie', [...kept, cookie].join('; '))
  return { method, url, headers: next }
}

function readSetCookie(responseHeaders: Readonly<Record<string, string>>): string | undefined {
  return new Headers(responseHeaders).get('set-cookie')?.split(';', 1)[0]
}

/** An open connection whose credentials are checked repeatedly. */
export interface Rechecked {
  /** Authenticates again. Rejects with `unauthenticated` if the credentials have ended. */
  checkPrincipal(): Promise<Principal>
  /** Called when the credentials are still valid. The roles may have changed. */
  onChecked?(principal: Principal): void
  /** Called at most once, when the credentials have ended. */
  onCredentialsEnd(): void
}

/**
 * Checks the credentials of an open connection at an interval and when they expire. A check that fails for another reason is
 * repeated, unless the credentials have expired.
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

/** The longest delay of a Node.js timer, in ms. A timer with a longer delay fires at once. */
export const MAX_TIMER_MS = 2_147_483_647
