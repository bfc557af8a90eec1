import type { z } from 'zod'

import { parseJson } from '../../protocol/client-input.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { MAX_POSITION_LENGTH } from '../../protocol/turn-position.ts'
import type { ReadFrom } from '../../turns/turn-log.ts'
import type { Turn } from '../../turns/turn.ts'
import type { TurnFormat } from './turn-format.ts'

/** An HTTP request, independent of the host. */
export interface Exchange {
  readonly method: string
  readonly url: URL
  readonly headers: Headers
  /** The address of the peer, if the host provides it. */
  readonly address?: string
  /** Reads the body. Throws if it is larger than `maxBytes`. */
  readonly readBody: (maxBytes: number) => Promise<Uint8Array>
}

export interface JsonReply {
  readonly type: 'json'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** Undefined for a status without a body. */
  readonly body: unknown
}

/** A file of untrusted content. Its headers restrict how a browser uses it. */
export interface FileReply {
  readonly type: 'file'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly bytes: Uint8Array
}

/** The client of a feed. The server sends it JSON and may end the feed. */
export interface FeedClient {
  readonly send: (json: string) => void
  readonly end: () => void
}

/** A stream of events that lasts until the client disconnects or the server ends it. Returns a function that unsubscribes. */
export type Feed = (client: FeedClient) => () => void

/** A turn that the client reads as SSE. */
export interface TurnReply {
  readonly type: 'turn'
  readonly turn: Turn
  /** The position from which the client reads. */
  readonly from: ReadFrom
  readonly format: TurnFormat
  /** Whether the client asks for positions. Default false. */
  readonly positions?: boolean | undefined
  readonly headers: Readonly<Record<string, string>>
}

/** Returns the format that a client asks for, in its URL, its headers or its body. Throws if there is no such format. */
export type FindFormat = (exchange: Exchange, inBody?: string) => TurnFormat

/** Events that the client reads as SSE. */
export interface FeedReply {
  readonly type: 'feed'
  readonly feed: Feed
  readonly headers: Readonly<Record<string, string>>
}

/** The reply to a request. The host writes it. */
export type Reply = JsonReply | FileReply | TurnReply | FeedReply

/** Creates a reply with JSON, or without a body. */
export function reply(status: number, body?: unknown): JsonReply {
  return { type: 'json', status, headers: {}, body }
}

/** Headers of every JSON reply: no MIME sniffing, no caching. */
export const SECURITY_HEADERS = {
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
} as const

/** Returns the reply with additional headers. */
export function withHeaders<R extends Reply>(
  base: R,
  headers: Readonly<Record<string, string>>,
): R {
  return { ...base, headers: { ...base.headers, ...headers } }
}

/** A request without its body, kept as strings to save memory while a socket is open. Parses its URL and headers on access. */
export class CompactExchange implements Exchange {
  readonly method: string
  readonly address?: string
  readonly #href: string
  readonly #headers: string

  constructor({ method, url, headers, address }: Omit<Exchange, 'readBody'>) {
    this.method = method
    if (address !== undefined) this.address = address
    this.#href = url.href
    // A string takes a tenth of the memory of the object.
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

/** How many times the limit is read and discarded, so that a client that is still sending receives the error. */
const DISCARD_FACTOR = 8

/** Reads a body up to a limit. Never keeps more than the limit in memory. */
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

/** Reads the body of a request as JSON. Throws if it is not JSON or is larger than `maxBodyBytes`. */
export async function readJson(
  exchange: Exchange,
  { maxBodyBytes }: { readonly maxBodyBytes: number },
): Promise<unknown> {
  requireJson(exchange.headers)
  return parseJson(await exchange.readBody(maxBodyBytes))
}

/** Returns a body or a query as its schema reads it. Throws `bad-request` if it does not match. */
export function checkInput<Output>(
  schema: z.ZodType<Output>,
  input: unknown,
  message?: string,
): Output {
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  throw new ProtocolError('bad-request', message === undefined ? {} : { message })
}

// A form on another site can post without a preflight, but not with this content type.
function requireJson(headers: Headers): void {
  const type = headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase()
  if (type !== 'application/json') throw new ProtocolError('unsupported-media-type')
  const encoding = headers.get('content-encoding') ?? 'identity'
  if (encoding !== 'identity') {
    throw new ProtocolError('unsupported-media-type', {
      message: 'Send the body without compression.',
    })
  }
}

/** Returns the position after which a client continues to read, from `?after=`, and whether it asks for positions. */
export function readPositions({ url }: Exchange): {
  readonly after: string | undefined
  readonly positions: boolean
} {
  const after = url.searchParams.get('after') ?? undefined
  if (after !== undefined && after.length > MAX_POSITION_LENGTH)
    throw new ProtocolError('bad-request', {
      message: `after: a position has at most ${MAX_POSITION_LENGTH} characters.`,
    })
  const positions = after !== undefined || url.searchParams.get('positions') === 'true'
  return { after, positions }
}

/** Returns the agent that a URL names for new chats with `?agent=`. */
export function readAgent({ url }: Exchange): { readonly addressed?: string } {
  const addressed = url.searchParams.get('agent')
  return addressed === null ? {} : { addressed }
}
