import { ProtocolError } from '../../protocol/errors.ts'
import type { Exchange } from '../http/exchange.ts'
import type { TurnFormat } from '../http/turn-format.ts'
import { UI_FORMAT } from '../http/turn-format.ts'
import { CONFIRMATION_FORMAT } from './python-clients/confirmation.ts'

/** The dialects of a turn; see PROTOCOL.md, Dialects. */
const DIALECTS: ReadonlyMap<string, TurnFormat> = new Map([
  ['ui', UI_FORMAT],
  ['confirmation', CONFIRMATION_FORMAT],
])

/** Returns the dialect that a client requests with `?dialect=`, the header `x-adk-dialect`, or `dialect` in the body. */
export function readDialect({ url, headers }: Exchange, inBody?: string): TurnFormat {
  const requested =
    url.searchParams.get('dialect') ?? headers.get('x-adk-dialect') ?? inBody ?? 'ui'
  const format = DIALECTS.get(requested)
  if (format) return format
  const names = [...DIALECTS.keys()].join(' and ')
  throw new ProtocolError('bad-request', { message: `Dialects are ${names}.` })
}
