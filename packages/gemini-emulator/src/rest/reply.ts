import type { ServerResponse } from 'node:http'

import type { RequestEntry } from '../request-log.ts'
import type { GoogleError } from '../wire/google-error.ts'

/** How a method answers: one JSON body, a stream of server-sent events, or a JSON array that grows. */
export type Form = 'json' | 'sse' | 'array'

/** The response of one request, and what the request log tells about it. */
export class Reply {
  readonly form: Form
  readonly #response: ServerResponse
  readonly #entry: RequestEntry
  /** Messages of the stream that are not written yet. */
  #unwritten = ''

  constructor(response: ServerResponse, entry: RequestEntry, form: Form) {
    this.#response = response
    this.#entry = entry
    this.form = form
  }

  get started(): boolean {
    return this.#response.headersSent
  }

  /** A whole body. */
  body(json: string): void {
    this.#head(200, 'application/json; charset=UTF-8')
    this.#entry.chunksSent = 1
    this.#response.end(json)
  }

  /**
   * One message of the stream; the promise, if there is one, resolves when the client has caught up. Messages that follow
   * without a pause share a write, which Node's chunked encoding makes several times cheaper: `flush` before waiting.
   */
  chunk(json: string): Promise<void> | undefined {
    this.#unwritten += this.#frame(json)
    if (!this.started) this.#head(200, CONTENT_TYPES[this.form])
    this.#entry.chunksSent += 1
    return this.#unwritten.length < WRITE_SIZE ? undefined : this.flush()
  }

  flush(): Promise<void> | undefined {
    if (!this.#unwritten) return undefined
    const text = this.#unwritten
    this.#unwritten = ''
    return this.#response.write(text) ? undefined : this.#drained()
  }

  endStream(): void {
    if (this.form !== 'array') this.#response.end(this.#unwritten)
    else if (this.started) this.#response.end(`${this.#unwritten}]\n`)
    else this.body('[]\n')
  }

  /** The status and body of an error; in a stream that has begun, its last message. */
  error(error: GoogleError): void {
    if (this.started) {
      // Nobody waits for the client to catch up: this is the last thing it gets.
      void this.chunk(JSON.stringify(error))
      this.endStream()
      return
    }
    const json = `${JSON.stringify(error, null, 2)}\n`
    // Gemini labels the error of an event stream as a stream, though the body is plain JSON; @google/genai then wraps the
    // whole body into the message of its ApiError.
    this.#head(error.httpStatus, CONTENT_TYPES[this.form])
    this.#response.end(this.form === 'array' ? `[${json}]\n` : json)
  }

  /** Cuts the connection once everything written so far is on its way. */
  async cut(): Promise<void> {
    if (this.started) {
      await new Promise<void>((resolve) => {
        this.#response.write(this.#unwritten, () => resolve())
      })
    }
    this.#entry.cut = true
    this.#response.destroy()
  }

  #head(status: number, contentType: string): void {
    this.#entry.status = status
    this.#response.writeHead(status, { 'content-type': contentType })
  }

  #frame(json: string): string {
    if (this.form === 'sse') return `data: ${json}\r\n\r\n`
    return this.started ? `,\r\n${json}` : `[${json}`
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
