import type { Signal } from '../../relay/relay.ts'

export interface SignalRow {
  readonly id: string
  readonly sender: string
  readonly kind: string
  readonly body: string
}

export function decodeSignal({ id, sender, kind, body }: SignalRow): Signal {
  return { id, from: sender, kind, body: JSON.parse(body) as unknown }
}
