import { defer } from './deferred.ts'

/** Named points where a generation waits until the test lets it go on. */
export interface Gates {
  /** Resolves once the gate is released, at once if that has already happened; rejects when the signal aborts. */
  wait(gate: string, signal: AbortSignal): Promise<void>
  release(gate: string): void
  /** Closes every gate again; whoever still waits keeps waiting. */
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
      const abandon = () => reject(signal.reason)
      signal.addEventListener('abort', abandon, { once: true })
      try {
        await promise
      } finally {
        signal.removeEventListener('abort', abandon)
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
