/**
 * Why a socket was closed, and whether the client should open another: `yes`, at once or after a short pause; `later`, after a
 * pause that grows; `changed`, only with something else than before, such as new credentials or a smaller frame; `no`.
 * PROTOCOL.md, Closing, holds the same table.
 */
export const CLOSE_CODES = {
  normal: { code: 1000, retry: 'no' },
  'going-away': { code: 1001, retry: 'later' },
  'protocol-error': { code: 1002, retry: 'no' },
  'invalid-text': { code: 1007, retry: 'no' },
  policy: { code: 1008, retry: 'no' },
  'too-big': { code: 1009, retry: 'changed' },
  internal: { code: 1011, retry: 'later' },
  unauthenticated: { code: 4401, retry: 'changed' },
  'dead-peer': { code: 4408, retry: 'yes' },
  'too-slow': { code: 4409, retry: 'yes' },
  'too-fast': { code: 4429, retry: 'later' },
} as const satisfies Record<string, { code: number; retry: Retry }>

/** Whether a client that was closed may come back, and when. */
export type Retry = 'yes' | 'later' | 'changed' | 'no'

/** The name of a code that a socket is closed with. */
export type CloseReason = keyof typeof CLOSE_CODES

/** What a client should do about a code. One that is not in the table, such as the 1006 of a lost connection, may be retried. */
export function mayRetry(code: number): Retry {
  const known = Object.values(CLOSE_CODES).find((entry) => entry.code === code)
  return known?.retry ?? 'later'
}
