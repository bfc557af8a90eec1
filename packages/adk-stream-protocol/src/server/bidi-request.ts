import { BIDI_SUBPROTOCOL } from '../protocol/bidi-events.ts'
import type { Exchange } from './exchange.ts'

const BIDI = 'bidi'

/** Whether who opens a socket asks for text frames, by the subprotocol or by `?dialect=bidi`, alone or beside another one. */
export function asksForBidi({ url }: Exchange, subprotocol: string): boolean {
  return subprotocol === BIDI_SUBPROTOCOL || dialectsIn(url).includes(BIDI)
}

/** The request with the dialect of its turns alone: text frames are a way to write any of them. */
export function withoutBidi(exchange: Exchange): Exchange {
  const rest = dialectsIn(exchange.url).filter((name) => name !== BIDI)
  const url = new URL(exchange.url)
  url.searchParams.delete('dialect')
  if (rest.length > 0) url.searchParams.set('dialect', rest.join(','))
  return { ...exchange, url }
}

function dialectsIn(url: URL): string[] {
  return url.searchParams.getAll('dialect').flatMap((value) => value.split(','))
}
