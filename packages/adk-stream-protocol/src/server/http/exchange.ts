import { ProtocolError } from '../../protocol/errors.ts'
import type { Dialect } from './dialects.ts'
import type { Feed } from './feed-stream.ts'
import type { ReadFrom } from '../../turns/turn-log.ts'
import type { Turn } from '../../turns/turn.ts'

/** One HTTP request, whichever host it came through. */
export interface Exchange {
  readonly method: string
  readonly url: URL
  readonly headers: Headers
  /** Where the request came from, as far as the host tells it. */
  readonly address?: string
  /** The body, which is refused when it is larger than allowed. */
  readonly readBody: (maxBytes: number) => Promise<Uint8Array>
}

export interface JsonReply {
  readonly type: 'json'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Nothing for a status without a body. */
  readonly body: unknown
}

/** A file. Its bytes are as somebody made them: the headers say how little a browser may do with them. */
export interface FileReply {
  readonly type: 'file'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: Uint8Array
}

/** The answer to an exchange; the host writes it. */
export type Reply =
  | JsonReply
  | FileReply
  | {
      readonly type: 'turn'
      readonly turn: Turn
      /** Where the client reads from: it may have seen all before the last pause. */
      readonly from: ReadFrom
      readonly dialect: Dialect
      readonly headers: Readonly<Record<string, string>>
    }
  | {
      readonly type: 'feed'
      readonly feed: Feed
      readonly headers: Readonly<Record<string, string>>
    }

/** A reply without content, or with JSON. */
export function reply(status: number, body?: unknown): JsonReply {
  return { type: 'json', status, headers: {}, body }
}

/** What every JSON reply carries: its type is not to be guessed, and nobody keeps a copy. */
export const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
} as const

/** The same reply with more headers. */
export function withHeaders<R extends Reply>(
  answer: R,
  headers: Readonly<Record<string, string>>,
): R {
  return { ...answer, headers: { ...answer.headers, ...headers } }
}

/** A request without its body, kept in little space for as long as a socket is open: url and headers are made when they are asked for. */
export class CompactExchange implements Exchange {
  readonly method: string
  readonly address?: string
  readonly #href: string
  readonly #headers: string

  constructor({ method, url, headers, address }: Omit<Exchange, 'readBody'>) {
    this.method = method
    if (address !== undefined) this.address = address
    this.#href = url.href
    // One text is a tenth of the size of the object.
    this.#headers = JSON.stringify([...headers])
  }

  get url(): URL {
    return new URL(this.#href)
  }

  get headers(): Headers {
    // Written by the constructor.
    return new Headers(JSON.parse(this.#headers) as [string, string][])
  }

  async readBody(): Promise<Uint8Array> {
    return new Uint8Array()
  }
}

/** How many times the limit is read and thrown away, so that a client that is still sending hears the refusal. */
const DISCARD_FACTOR = 8

/** Reads a body up to a limit. More than that is never held. */
export async function readBody(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.byteLength
    if (size <= maxBytes) parts.push(chunk)
    else if (size > maxBytes * DISCARD_FACTOR) break
    else parts.length = 0
  }
  if (size > maxBytes) {
    throw new ProtocolError('too-large', {
      message: `The body is larger than ${maxBytes} bytes. Send less.`,
    })
  }
  return Buffer.concat(parts, size)
}
