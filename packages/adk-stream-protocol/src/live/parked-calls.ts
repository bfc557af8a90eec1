import { AWAITING_APPROVAL } from '../agent/call-responses.ts'

/**
 * Whether a call is parked: its function response is a status, and its result follows as text. `sent`: the model may not have read the
 * status. `known`: the model has reacted to it.
 */
export type Parking = 'sent' | 'known'

/** The status of a call that was approved and has not ended. */
const UNDER_WAY = {
  status: 'running',
  note: 'Approved and under way. It has not ended: do not say that it is done, and do not call it again. The result comes later.',
} as const

/** Returns the function response that parks a call. */
export function toParkedResponse(isDecided: boolean): Record<string, unknown> {
  return isDecided ? { ...UNDER_WAY } : { ...AWAITING_APPROVAL }
}

/** A call that has ended. */
export interface EndedCall {
  readonly id: string
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  readonly response: Readonly<Record<string, unknown>>
}

/** Returns the text that gives the model the result of a parked call. It names the call, because several may be parked. */
export function describeParkedResult({ id, name, args, response }: EndedCall): string {
  const call = `${name}(${JSON.stringify(args)})`
  return `[Result of the call ${id}, ${call}, which waited for a person: ${JSON.stringify(response)}]`
}
