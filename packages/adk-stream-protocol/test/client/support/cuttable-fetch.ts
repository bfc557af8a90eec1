import { defer } from '../../support/agents.ts'

/** A `fetch` whose connections a test can end. */
export class CuttableFetch {
  readonly #open = new Set<(error: Error) => void>()
  #failing = 0
  #held: ReturnType<typeof defer<void>> | undefined
  #lastFrame: string | undefined
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

  /** The next response with this text gets no further than its frame, until it is ended. */
  stallAfter(text: string): void {
    this.#lastFrame = text
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
        if (done) return controller.close()
        const lastFrame = this.#lastFrame
        const [before, rest] = lastFrame === undefined ? [value] : splitAfter(value, lastFrame)
        controller.enqueue(before)
        if (!rest) return
        this.#lastFrame = undefined
        await new Promise(() => undefined)
      },
      cancel: async () => {
        this.#open.delete(breakOff)
        await reader.cancel()
      },
    })
  }
}

/** Splits frames after the one with a text. The second part is undefined if none has it. */
function splitAfter(frames: Uint8Array, text: string): [Uint8Array, Uint8Array?] {
  const bytes = Buffer.from(frames)
  const at = bytes.indexOf(text)
  const end = at < 0 ? at : bytes.indexOf('\n\n', at)
  return end < 0 ? [frames] : [bytes.subarray(0, end + 2), bytes.subarray(end + 2)]
}

function ignore(_error: Error): void {
  // Nothing is open yet.
}

function cancel(reader: ReadableStreamDefaultReader<Uint8Array>): void {
  // The ended response may reject.
  reader.cancel().catch(() => undefined)
}
