import type { ErrorCode } from '../../protocol/error-codes.ts'
import { ERROR_CODES } from '../../protocol/error-codes.ts'
import type { Guard } from '../../protocol/guards.ts'
import { AdkError, parseJson, readErrorBody } from '../adk-error.ts'

type HeaderRecord = Readonly<Record<string, string>>

/**
 * Where the bridge is, and how requests are sent to it.
 *
 * @inline
 */
export interface HttpOptions {
  /** The URL or path of the bridge, such as `/adk`. */
  readonly url: string
  /** Sent with every request. A function is called for each request, for tokens that change. */
  readonly headers?: HeaderRecord | (() => HeaderRecord | Promise<HeaderRecord>)
  /** Default `same-origin`. */
  readonly credentials?: RequestCredentials
  /** Default: the global `fetch`. */
  readonly fetch?: typeof globalThis.fetch
}

export interface HttpRequest {
  readonly method?: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  readonly body?: object
  readonly signal?: AbortSignal | undefined
  readonly headers?: HeadersInit | undefined
}

/** Sends requests to the bridge. Throws an `AdkError` if the request is rejected, or if something else than the bridge responds. */
export interface Http {
  send(path: string, request?: HttpRequest): Promise<Response>
  read<Value>(path: string, isValid: Guard<Value>, request?: HttpRequest): Promise<Value>
}

export function createHttp(options: HttpOptions): Http {
  const { url, headers = {}, credentials = 'same-origin', fetch } = options
  const send: Http['send'] = async (path, request = {}) => {
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
  return {
    send,
    read: async (path, isValid, request) => {
      const response = await send(path, request)
      const value = parseJson(await response.text())
      if (isValid(value)) return value
      throw new AdkError(
        'unavailable',
        'The response is not from the bridge. Check the `url` option.',
      )
    },
  }
}

async function toError(response: Response): Promise<AdkError> {
  const { code, message, retryAfterSeconds, preview } = readErrorBody(await response.text()) ?? {}
  const known = ERROR_CODES.find((each): each is ErrorCode => each === code)
  if (known && message !== undefined)
    return new AdkError(known, message, retryAfterSeconds, preview)
  // A proxy responded, not the bridge.
  return new AdkError('unavailable', `The server responded with status ${response.status}.`)
}
