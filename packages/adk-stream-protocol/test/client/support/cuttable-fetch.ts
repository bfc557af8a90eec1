import { defer } from '../../support/agents.ts'

/** A `fetch` whose connections a test can end. */
export class CuttableFetch {
  readonly #open = new Set<(error: Error) => void>()
  #failing = 0
  #held: ReturnType<typeof defer<void>> | undefined
  /** Method and path of every request that was made. */
  readonly requests: string[] = []

  readonly fetch: typeof globalThis.fetch = async (input, init) => {
    this.requests.push(`${init?.method ?? 'GET'} ${new URL(String(input)).pathname}`)
    await this.#held?.promise
    if (this.#failing > 0) {
      this.#failing -= 1
      throw new TypeError('fetch failed')
    }
    const response = await fetch(input, init)
    const { body } = response
    if (!body || !response.headers.get('content-type')?.includes('event-stream')) return response
    return new Response(this.#cuttable(body), response)
  }

  /** Ends every response that is being read. */
  cut(): void {
    for (const breakOff of this.#open) breakOff(new TypeError('terminated'))
    this.#open.clear()
  }

  /** The next requests find no server. */
  fail(times: number): void {
    this.#failing = times
  }

  /** The next requests are delayed until `go`. */
  hold(): void {
    this.#held = defer()
  }

  go(): void {
    this.#held?.resolve()
    this.#held = undefined
  }

  #cuttable(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader()
    let breakOff = ignore
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        breakOff = (error) => {
          controller.error(error)
          cancel(reader)
        }
        this.#open.add(breakOff)
      },
      pull: async (controller) => {
        const { done, value } = await reader.read()
        // It was ended meanwhile.
        if (!this.#open.has(breakOff)) return
        if (done) controller.close()
        else controller.enqueue(value)
      },
      cancel: async () => {
        this.#open.delete(breakOff)
        await reader.cancel()
      },
    })
  }
}

function ignore(_error: Error): void {
  // Nothing is open yet.
}

function cancel(reader: ReadableStreamDefaultReader<Uint8Array>): void {
  // The ended response may reject.
  reader.cancel().catch(() => undefined)
}
