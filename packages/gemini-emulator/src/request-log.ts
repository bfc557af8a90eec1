import type { IncomingHttpHeaders } from 'node:http'

import { defer } from './deferred.ts'
import { EmulatorError } from './emulator-error.ts'

/** One HTTP request the emulator got, for a test to look at. It changes until `done` resolves. */
export interface RecordedRequest {
  /** What was asked: `generateContent`, `streamGenerateContent`, `countTokens`, `models.list`, `models.get`, `unknown`. */
  readonly method: string
  readonly path: string
  /** Without the `models/` prefix; empty where the path names none. */
  readonly model: string
  /** The parsed JSON as it was sent, `{}` for an empty body; `undefined` if it was not JSON. */
  readonly body: unknown
  /** The API key is replaced by `[redacted]`. */
  readonly headers: Readonly<IncomingHttpHeaders>
  /** HTTP status; 0 until the head of the response is written. */
  readonly status: number
  /** Responses sent so far: stream chunks, or one for a whole body. */
  readonly chunksSent: number
  /** Whether the client went away before the response was complete. */
  readonly aborted: boolean
  /** Resolves when the response has ended, whichever way. */
  readonly done: Promise<void>
}

export interface RequestEntry extends RecordedRequest {
  status: number
  chunksSent: number
  aborted: boolean
  /** Whether the emulator itself cut the connection. */
  cut: boolean
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

/** Remembers the last `capacity` requests. */
export function createRequestLog(capacity: number): RequestLog {
  const requests: RequestEntry[] = []
  const taken = new WeakSet<RecordedRequest>()
  const waiters = new Set<Waiter>()
  let closed: EmulatorError | undefined
  const take = (request: RecordedRequest) => {
    taken.add(request)
    return request
  }
  /** Whether the waiter is done: it got the request, or its own predicate failed, which is nobody else's trouble. */
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
      closed = new EmulatorError('closed', 'The emulator was closed before the request came.')
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
  return { ...arrival, status: 0, chunksSent: 0, aborted: false, cut: false, done, end }
}
