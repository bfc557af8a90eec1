import type { ErrorCode } from '../../protocol/errors.ts'
import { ERROR_CODES } from '../../protocol/errors.ts'
import type { Guard } from '../../protocol/guards.ts'
import { AdkError } from '../adk-error.ts'
import { parseJson, readErrorBody } from '../error-body.ts'

type HeaderRecord = Readonly<Record<string, string>>

/** Where the bridge is, and how it is asked. */
export interface HttpOptions {
  /** Where the bridge is mounted, such as `/adk`. */
  readonly url: string
  /** Sent with every request; a function is asked for each one, for tokens that change. */
  readonly headers?: HeaderRecord | (() => HeaderRecord | Promise<HeaderRecord>)
  /** Default `same-origin`. */
  readonly credentials?: RequestCredentials
  /** Default: the global one. */
  readonly fetch?: typeof globalThis.fetch
}

export interface HttpRequest {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly body?: object
  readonly signal?: AbortSignal | undefined
  readonly headers?: HeadersInit | undefined
}

/** Requests to the bridge. What it refuses, and what does not look like the bridge, is an `AdkError`. */
export class Http {
  readonly #options: HttpOptions

  constructor(options: HttpOptions) {
    this.#options = options
  }

  async send(path: string, request: HttpRequest = {}): Promise<Response> {
    const { url, headers = {}, credentials = 'same-origin', fetch } = this.#options
    const { method = 'GET', body, signal, headers: more } = request
    const own = typeof headers === 'function' ? await headers() : headers
    const json = body && { 'content-type': 'application/json' }
    const response = await (fetch ?? globalThis.fetch)(`${url}${path}`, {
      method,
      credentials,
      headers: { ...json, ...own, ...Object.fromEntries(new Headers(more)) },
      ...(body && { body: JSON.stringify(body) }),
      ...(signal && { signal }),
    })
    if (!response.ok) throw await toError(response)
    return response
  }

  async read<Value>(path: string, isValid: Guard<Value>, request?: HttpRequest): Promise<Value> {
    const response = await this.send(path, request)
    const answer = parseJson(await response.text())
    if (isValid(answer)) return answer
    throw new AdkError('unavailable', 'The server answered with something that is no answer.')
  }
}

async function toError(response: Response): Promise<AdkError> {
  const { code, message, retryAfterSeconds } = readErrorBody(await response.text()) ?? {}
  const known = ERROR_CODES.find((each): each is ErrorCode => each === code)
  if (known && message !== undefined) return new AdkError(known, message, retryAfterSeconds)
  // Not the bridge answered, but something before it.
  return new AdkError('unavailable', `The server answered with ${response.status}.`)
}
