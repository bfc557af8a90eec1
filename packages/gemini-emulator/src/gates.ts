import { defer } from './deferred.ts'

/** Named points at which a reply waits until the test releases it. */
export interface Gates {
  /** Resolves when the gate is released, or immediately if it is. Rejects when the signal aborts. */
  wait(gate: string, signal: AbortSignal): Promise<void>
  release(gate: string): void
  /** Closes every gate. Pending waits continue. */
  reset(): void
}

export function createGates(): Gates {
  const released = new Set<string>()
  const waiting = new Map<string, Set<() => void>>()
  return {
    async wait(gate, signal) {
      signal.throwIfAborted()
      if (released.has(gate)) return
      const { promise, resolve, reject } = defer<void>()
      const waiters = waiting.get(gate) ?? new Set()
      waiting.set(gate, waiters.add(resolve))
      const abort = () => reject(signal.reason)
      signal.addEventListener('abort', abort, { once: true })
      try {
        await promise
      } finally {
        signal.removeEventListener('abort', abort)
        waiters.delete(resolve)
        if (waiters.size === 0 && waiting.get(gate) === waiters) waiting.delete(gate)
      }
    },
    release(gate) {
      released.add(gate)
      for (const resolve of waiting.get(gate) ?? []) resolve()
    },
    reset() {
      released.clear()
    },
  }
}
