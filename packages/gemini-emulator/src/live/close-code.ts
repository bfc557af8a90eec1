/** The WebSocket close codes of Gemini Live. */
export const CloseCode = {
  GoingAway: 1001,
  /** The client sent something that cannot be read or is not allowed; also a wrong API key. */
  InvalidArgument: 1007,
  /** The model or the session does not exist. */
  NotFound: 1008,
  Internal: 1011,
} as const

/** Cuts a reason to the 123 bytes that a close frame can hold, as Gemini's own long sentences are. */
export function fitReason(reason: string): string {
  const bytes = Buffer.from(reason)
  if (bytes.length <= 123) return reason
  // A character cut in two would decode to U+FFFD.
  return bytes
    .subarray(0, 123)
    .toString()
    .replace(/\uFFFD+$/, '')
}

/** Whether a close frame may carry the code; the others only describe what happened to a connection. */
export function isSendableCode(code: number): boolean {
  if (code >= 3000) return code <= 4999
  return code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)
}
