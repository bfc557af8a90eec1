import { setTimeout as wait } from 'node:timers/promises'

const MAX_DELAY_MS = 8000

/** Waits before another attempt: not at all after success, then twice as long each time, with jitter so that not all come at once. */
export async function backOff(
  failures: number,
  { delayMs, signal }: { readonly delayMs: number; readonly signal: AbortSignal },
): Promise<void> {
  if (failures === 0) return
  const longest = Math.min(MAX_DELAY_MS, delayMs * 2 ** (failures - 1))
  await wait(longest * (0.5 + Math.random() / 2), undefined, { signal })
}
