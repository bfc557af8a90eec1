/** How much of a turn a client has received. */
export interface TurnPosition {
  /** The id of the turn, which identifies its log. */
  readonly turnId: string
  /** The number of the last entry, from 0. Consecutive deltas of one text part are one entry. */
  readonly entry: number
  /** How much of the last entry was received, in UTF-16 units. Undefined: all of it. */
  readonly offset?: number
}

/** The maximum length of a position that a client sends. */
export const MAX_POSITION_LENGTH = 200

const POSITION = /^([\w-]{1,64}):(\d{1,15})(?::(\d{1,15}))?$/

/** Reads the position that a client sends. Returns undefined if it is not one. */
export function readTurnPosition(text: string): TurnPosition | undefined {
  const [, turnId, entry, offset] = POSITION.exec(text) ?? []
  if (turnId === undefined) return undefined
  return {
    turnId,
    entry: Number(entry),
    ...(offset !== undefined && { offset: Number(offset) }),
  }
}

/** Returns the position after a whole entry, as it is sent with the first chunk of the entry. */
export function entryPosition(turnId: string, entry: number): string {
  return `${turnId}:${entry}`
}
