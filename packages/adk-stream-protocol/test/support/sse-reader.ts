import { PositionClient } from './position-client.ts'

/** Reads an SSE stream until it is cancelled. Only complete events count. */
export class SseReader {
  readonly client: PositionClient
  body = ''
  readonly done: Promise<void>
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  #wake: () => void = () => undefined
  #limit = Number.POSITIVE_INFINITY

  constructor(response: Response, client = new PositionClient()) {
    if (!response.body || response.status !== 200) throw new Error(`Status ${response.status}.`)
    this.client = client
    this.#reader = response.body.getReader()
    this.done = this.#read()
  }

  async cancel(): Promise<void> {
    await this.#reader.cancel()
    await this.done
  }

  /** Resolves when the client has received so many chunks, or its text ends with `end`. It takes no further chunks. */
  async untilCount(length: number, end: string): Promise<void> {
    this.#limit = length
    await this.#until(() => this.client.chunks.length >= length || this.client.text.endsWith(end))
  }

  /** Resolves when the text so far ends with this. */
  until(end: string): Promise<void> {
    return this.#until(() => this.client.text.endsWith(end))
  }

  async #until(isReached: () => boolean): Promise<void> {
    while (!isReached()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder()
    let pending = ''
    for (;;) {
      const { done, value } = await this.#reader.read()
      if (done) return
      const text = decoder.decode(value, { stream: true })
      this.body += text
      const events = `${pending}${text}`.split('\n\n')
      pending = events.pop() ?? ''
      for (const event of events)
        if (this.client.chunks.length < this.#limit) this.client.takeEvent(event)
      this.#wake()
    }
  }
}
