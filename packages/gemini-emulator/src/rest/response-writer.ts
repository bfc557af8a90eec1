import type { ServerResponse } from 'node:http'

import type { RequestEntry } from '../request-log.ts'
import type { GoogleError } from '../wire/google-error.ts'

/** The format of a response: one JSON body, server-sent events, or a streamed JSON array. */
export type Form = 'json' | 'sse' | 'array'

/** Writes the response of one request and updates its entry in the request log. */
export class ResponseWriter {
  readonly form: Form
  readonly #response: ServerResponse
  readonly #entry: RequestEntry
  /** Messages of the stream that are not written yet. */
  #buffer = ''

  constructor(response: ServerResponse, entry: RequestEntry, form: Form) {
    this.#response = response
    this.#entry = entry
    this.form = form
  }

  get isStarted(): boolean {
    return this.#response.headersSent
  }

  /** Sends a complete body. */
  body(json: string): void {
    this.#head(200, 'application/json; charset=UTF-8')
    this.#entry.chunksSent = 1
    this.#response.end(json)
  }

  /**
   * Sends one message of the stream. Returns a promise if the client is slow; it resolves when the client has caught up.
   * Messages without a pause between them share a write, which is several times cheaper. Call `flush` before a pause.
   */
  chunk(json: string): Promise<void> | undefined {
    this.#buffer += this.#frame(json)
    if (!this.isStarted) this.#head(200, CONTENT_TYPES[this.form])
    this.#entry.chunksSent += 1
    return this.#buffer.length < WRITE_SIZE ? undefined : this.flush()
  }

  /** Writes the buffered messages. */
  flush(): Promise<void> | undefined {
    if (!this.#buffer) return undefined
    const text = this.#buffer
    this.#buffer = ''
    return this.#response.write(text) ? undefined : this.#drained()
  }

  endStream(): void {
    if (this.form !== 'array') this.#response.end(this.#buffer)
    else if (this.isStarted) this.#response.end(`${this.#buffer}]\n`)
    else this.body('[]\n')
  }

  /** Sends an error: as status and body, or as the last message of a stream that has started. */
  error(error: GoogleError): void {
    if (this.isStarted) {
      // The last message need not wait for a slow client.
      void this.chunk(JSON.stringify(error))
      this.endStream()
      return
    }
    const json = `${JSON.stringify(error, null, 2)}\n`
    // Gemini labels the error of an event stream as a stream, although the body is plain JSON. @google/genai then uses the
    // complete body as the message of its ApiError.
    this.#head(error.httpStatus, CONTENT_TYPES[this.form])
    this.#response.end(this.form === 'array' ? `[${json}]\n` : json)
  }

  /** Closes the connection after everything sent so far was written. */
  async drop(): Promise<void> {
    if (this.isStarted) {
      await new Promise<void>((resolve) => {
        this.#response.write(this.#buffer, () => resolve())
      })
    }
    this.#entry.dropped = true
    this.#response.destroy()
  }

  #head(status: number, contentType: string): void {
    this.#entry.status = status
    this.#response.writeHead(status, { 'content-type': contentType })
  }

  #frame(json: string): string {
    if (this.form === 'sse') return `data: ${json}\r\n\r\n`
    return this.isStarted ? `,\r\n${json}` : `[${json}`
  }

  #drained(): Promise<void> {
    const response = this.#response
    return new Promise((resolve) => {
      const settle = () => {
        response.off('drain', settle)
        response.off('close', settle)
        resolve()
      }
      response.on('drain', settle)
      response.on('close', settle)
    })
  }
}

const WRITE_SIZE = 16 * 1024

const CONTENT_TYPES: Readonly<Record<Form, string>> = {
  json: 'application/json; charset=UTF-8',
  array: 'application/json; charset=UTF-8',
  sse: 'text/event-stream',
}
