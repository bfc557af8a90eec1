import { ProtocolError } from '../../protocol/errors.ts'
import type { AuthenticateRequest, Principal } from './authenticate.ts'

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
