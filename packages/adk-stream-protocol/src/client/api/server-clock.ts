/** How far the clock of the server is ahead of the clock of this device, in ms. */
let offsetMs = 0

/** Smaller differences are not corrected: a countdown would jump with each response. */
const TOLERANCE_MS = 2_000

/**
 * Returns the time of the server in ms since 1970, as far as responses have shown it. Deadlines are times of the server, and the clock of
 * the device may be wrong.
 */
export function getServerTime(): number {
  return Date.now() + offsetMs
}

/** Reads the clock of the server from a response to a request that was sent at `sentAt`. A response from a cache has an old time. */
export function observeServerTime({ headers }: Response, sentAt: number): void {
  const date = Date.parse(headers.get('date') ?? '')
  if (Number.isNaN(date) || headers.has('age')) return
  // The header has whole seconds, and the response was made at some time since the request was sent.
  const least = date - Date.now()
  const most = date + 1_000 - sentAt
  const isRight = least <= TOLERANCE_MS && most >= -TOLERANCE_MS
  offsetMs = isRight ? 0 : (least + most) / 2
}
