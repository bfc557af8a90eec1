import { ProtocolError } from '../../protocol/errors.ts'
import type { AuthenticateRequest, Principal } from './authenticate.ts'
import { readError } from '../http/read-error.ts'

/**
 * The credentials that a socket or a feed was opened with, to be checked again while it is open: a session may end, a key may be
 * withdrawn, and a connection lives for hours (WS16, EV140).
 */
export class Credentials {
  readonly #request: AuthenticateRequest
  /** The cookie that the handshake gave, as a client sends it back. */
  readonly #given: string | undefined
  readonly #identify: (request: AuthenticateRequest) => Promise<Principal>
  readonly #id: string

  constructor(
    request: AuthenticateRequest,
    principal: Principal,
    identify: (request: AuthenticateRequest) => Promise<Principal>,
  ) {
    // As it is: a socket's request makes its url and headers when they are asked for.
    this.#request = request
    this.#given = readGivenCookie(principal)
    this.#identify = identify
    this.#id = principal.id
  }

  /** The principal as it is now; refused when the credentials do not stand for it any more. */
  async check(): Promise<Principal> {
    const { method, url, headers } = this.#request
    const principal = await this.#identify({
      method,
      url,
      headers: withGivenCookie(headers, this.#given),
    })
    if (principal.id !== this.#id) throw new ProtocolError('unauthenticated')
    return principal
  }
}

/** The headers of the client's next request: it keeps the cookie that the handshake gave it. */
function withGivenCookie(headers: Headers, given: string | undefined): Headers {
  if (given === undefined) return headers
  const next = new Headers(headers)
  const [name] = given.split('=', 1)
  const kept = (headers.get('cookie') ?? '')
    .split(';')
    .filter((pair) => pair.trim() !== '' && pair.trim().split('=', 1)[0] !== name)
  next.set('cookie', [...kept, given].join('; '))
  return next
}

function readGivenCookie({ responseHeaders = {} }: Principal): string | undefined {
  return new Headers(responseHeaders).get('set-cookie')?.split(';', 1)[0]
}

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

/** The longest delay of a Node.js timer, in ms. A timer with a longer delay fires at once. */
export const MAX_TIMER_MS = 2_147_483_647
