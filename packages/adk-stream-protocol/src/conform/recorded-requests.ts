/** A request that a client has sent, as it can be sent again. */
export interface RecordedRequest {
  readonly url: string
  readonly method: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What the backend has answered. */
export interface RecordedResponse {
  readonly status: number
  readonly isStream: boolean
  /** Undefined if the connection was cut. */
  readonly text: Promise<string | undefined>
}

interface RecordingOptions {
  /** The headers of the person. */
  readonly headers: Readonly<Record<string, string>>
  readonly timeoutMs: number
}

/** The requests of a client. Its `fetch` is the only thing that a check changes in a stock client. */
export class RecordedRequests {
  readonly responses: RecordedResponse[] = []
  /** The newest request with a body. */
  last: RecordedRequest | undefined
  /** Changes the body of the next request. */
  changeNext: ((body: string) => string) | undefined
  /** Whether the next request is recorded and not sent, as if the network had failed. */
  holdNext = false
  /** Ends the connection of the next response after its first bytes, when the promise has resolved. */
  cutNext: ((stopped: Promise<void>) => void | Promise<void>) | undefined
  readonly #options: RecordingOptions

  constructor(options: RecordingOptions) {
    this.#options = options
  }

  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init)
    const headers = { ...Object.fromEntries(request.headers), ...this.#options.headers }
    const text = request.body ? await request.text() : ''
    const body = this.changeNext && text !== '' ? this.changeNext(text) : text
    if (text !== '') this.changeNext = undefined
    const { url, method } = request
    const recorded = { url, method, headers, body }
    if (body !== '') this.last = recorded
    if (this.holdNext) {
      this.holdNext = false
      throw new TypeError('The network has failed.')
    }
    const response = await send(recorded, request.signal, this.#options.timeoutMs)
    const isStream = response.headers.get('content-type')?.includes('event-stream') === true
    if (this.cutNext && isStream) {
      const { cutNext } = this
      this.cutNext = undefined
      return cut(response, () => cutNext(untilAborted(request.signal)))
    }
    const copy = response.clone()
    this.responses.push({
      status: response.status,
      isStream,
      text: copy.text().catch(() => undefined),
    })
    return response
  }

  /** Sends the newest request again, several times at once. Resolves when all answers have ended. */
  async repeat(times: number, change: Partial<RecordedRequest> = {}): Promise<number[]> {
    const { last } = this
    if (!last) return []
    const again = { ...last, ...change }
    const sent = Array.from({ length: times }, async () => {
      try {
        const response = await send(again, undefined, this.#options.timeoutMs)
        await response.text()
        return response.status
      } catch {
        // A backend that refuses may close the connection.
        return 0
      }
    })
    return Promise.all(sent)
  }
}

async function send(
  { url, method, headers, body }: RecordedRequest,
  signal: AbortSignal | undefined,
  timeoutMs: number,
): Promise<Response> {
  const { 'content-length': _length, ...others } = headers
  const limit = AbortSignal.timeout(timeoutMs)
  return fetch(url, {
    method,
    headers: others,
    ...(body !== '' && { body }),
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
  })
}

/** Returns a response that ends after its first bytes. The connection to the backend is closed. */
function cut(response: Response, wait: () => void | Promise<void>): Response {
  const reader = response.body?.getReader()
  let isFirst = true
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value } = (isFirst ? await reader?.read() : undefined) ?? {}
      isFirst = false
      if (value) {
        controller.enqueue(value)
        return
      }
      await wait()
      await reader?.cancel().catch(() => undefined)
      controller.close()
    },
  })
  const { status, headers } = response
  return new Response(body, { status, headers })
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })
}
