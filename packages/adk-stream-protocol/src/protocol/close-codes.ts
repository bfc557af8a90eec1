/**
 * The codes with which the server closes a socket, and whether the client should reconnect:
 * - `yes`: immediately or after a short delay
 * - `later`: after a delay that grows with each attempt
 * - `changed`: only after a change, such as new credentials or a smaller frame
 * - `no`: never
 *
 * PROTOCOL.md contains the same table.
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

/** Whether and when a client may reconnect after its socket was closed. */
export type Retry = 'yes' | 'later' | 'changed' | 'no'

/** The name of a close code. */
export type CloseReason = keyof typeof CLOSE_CODES

/**
 * Returns whether and when a client may reconnect after a close code. Returns `later` for unknown codes, such as 1006
 * (connection lost).
 */
export function mayRetry(code: number): Retry {
  const known = Object.values(CLOSE_CODES).find((entry) => entry.code === code)
  return known?.retry ?? 'later'
}
