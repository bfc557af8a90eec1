import { ProtocolError } from '../../protocol/errors.ts'
import { parseJson } from '../../protocol/client-input.ts'
import type { Dialect } from './dialects.ts'
import { DIALECTS } from './dialects.ts'
import type { Exchange } from './exchange.ts'

/** Reads the body of a request as JSON. Throws if it is not JSON or is larger than `maxBodyBytes`. */
export async function readJson(
  exchange: Exchange,
  { maxBodyBytes }: { readonly maxBodyBytes: number },
): Promise<unknown> {
  requireJson(exchange.headers)
  return parseJson(await exchange.readBody(maxBodyBytes))
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

/** Returns the dialect that a client requests with `?dialect=`, the header `x-adk-dialect`, or `dialect` in the body. */
export function readDialect({ url, headers }: Exchange, inBody?: string): Dialect {
  const requested =
    url.searchParams.get('dialect') ?? headers.get('x-adk-dialect') ?? inBody ?? 'ui'
  const dialect = DIALECTS.find((known) => known === requested)
  if (!dialect) {
    throw new ProtocolError('bad-request', { message: `Dialects are ${DIALECTS.join(' and ')}.` })
  }
  return dialect
}

/** Returns the agent that a URL names for new chats with `?agent=`. */
export function readAgent({ url }: Exchange): { readonly addressed?: string } {
  const addressed = url.searchParams.get('agent')
  return addressed === null ? {} : { addressed }
}
