import type { IncomingHttpHeaders } from 'node:http'

import { defer } from './deferred.ts'
import { EmulatorError } from './emulator-error.ts'

/** An HTTP request that the emulator received. Updated until `done` resolves. */
export interface RecordedRequest {
  /** `generateContent`, `streamGenerateContent`, `countTokens`, `models.list`, `models.get`, `unknown`. */
  readonly method: string
  readonly path: string
  /** Without the `models/` prefix. Empty if the path has no model. */
  readonly model: string
  /** The parsed JSON body: `{}` if it is empty, `undefined` if it is not JSON. */
  readonly body: unknown
  /** The API key is replaced by `[redacted]`. */
  readonly headers: Readonly<IncomingHttpHeaders>
  /** The HTTP status. 0 until the response headers are written. */
  readonly status: number
  /** Messages sent so far: stream chunks, or 1 for a complete body. */
  readonly chunksSent: number
  /** Whether the client disconnected before the response was complete. */
  readonly aborted: boolean
  /** Resolves when the response has ended, successfully or not. */
  readonly done: Promise<void>
}

export interface RequestEntry extends RecordedRequest {
  status: number
  chunksSent: number
  aborted: boolean
  /** Whether the emulator itself closed the connection. */
  dropped: boolean
  end(): void
}

type Arrival = Pick<RecordedRequest, 'method' | 'path' | 'model' | 'body' | 'headers'>
type Predicate = (request: RecordedRequest) => boolean

export interface RequestLog {
  readonly requests: readonly RecordedRequest[]
  open(arrival: Arrival): RequestEntry
  next(predicate?: Predicate): Promise<RecordedRequest>
  reset(): void
  close(): void
}

/** Keeps the last `capacity` requests. */
export function createRequestLog(capacity: number): RequestLog {
  const requests: RequestEntry[] = []
  const taken = new WeakSet<RecordedRequest>()
  const waiters = new Set<Waiter>()
  let closed: EmulatorError | undefined
  const take = (request: RecordedRequest) => {
    taken.add(request)
    return request
  }
  /** Returns whether the waiter is settled. A predicate that throws rejects only its own waiter. */
  const settle = (waiter: Waiter, request: RecordedRequest) => {
    try {
      if (!waiter.predicate(request)) return false
      waiter.resolve(take(request))
    } catch (error) {
      waiter.reject(error)
    }
    return true
  }
  return {
    requests,
    open(arrival) {
      const entry = createEntry(arrival)
      requests.push(entry)
      if (requests.length > capacity) requests.shift()
      for (const waiter of waiters) {
        if (!settle(waiter, entry)) continue
        waiters.delete(waiter)
        if (taken.has(entry)) break
      }
      return entry
    },
    async next(predicate = () => true) {
      const known = requests.find((request) => !taken.has(request) && predicate(request))
      if (known) return take(known)
      if (closed) throw closed
      return new Promise((resolve, reject) => waiters.add({ predicate, resolve, reject }))
    },
    reset() {
      requests.length = 0
    },
    close() {
      closed = new EmulatorError('closed', 'The emulator closed before a matching request arrived.')
      for (const waiter of waiters) waiter.reject(closed)
      waiters.clear()
    },
  }
}

interface Waiter {
  readonly predicate: Predicate
  readonly resolve: (request: RecordedRequest) => void
  readonly reject: (reason: unknown) => void
}

function createEntry(arrival: Arrival): RequestEntry {
  const { promise: done, resolve: end } = defer<void>()
  return { ...arrival, status: 0, chunksSent: 0, aborted: false, dropped: false, done, end }
}
