import { defer } from '../deferred.ts'
import { EmulatorError } from '../emulator-error.ts'

export type Frame = Readonly<Record<string, unknown>>

/** Records the latest frames of one direction. */
export interface FrameLog {
  readonly frames: readonly Frame[]
  record(frame: Frame): void
  /** Returns the first matching frame, recorded or future. Rejects when the session ends or the signal aborts. */
  waitFor(predicate: (frame: Frame) => boolean, signal?: AbortSignal): Promise<Frame>
  /** Rejects pending waits, because the session ended. */
  end(): void
}

export interface FrameLogOptions {
  readonly capacity: number
  readonly keepMedia: boolean
}

export function createFrameLog(options: FrameLogOptions): FrameLog {
  const frames: Frame[] = []
  const watchers = new Set<(frame: Frame | undefined) => void>()
  let ended = false
  return {
    frames,
    record(frame) {
      const kept = options.keepMedia ? frame : toFrame(summarizeMedia(frame))
      frames.push(kept)
      if (frames.length > options.capacity) frames.shift()
      for (const watch of watchers) watch(kept)
    },
    async waitFor(predicate, signal) {
      signal?.throwIfAborted()
      const known = frames.find(predicate)
      if (known) return known
      if (ended) throw sessionEnded()
      const { promise, resolve, reject } = defer<Frame>()
      const watch = (frame: Frame | undefined) => {
        if (!frame) reject(sessionEnded())
        else if (predicate(frame)) resolve(frame)
      }
      const abort = () => reject(signal?.reason)
      watchers.add(watch)
      signal?.addEventListener('abort', abort, { once: true })
      try {
        return await promise
      } finally {
        watchers.delete(watch)
        signal?.removeEventListener('abort', abort)
      }
    },
    end() {
      ended = true
      for (const watch of watchers) watch(undefined)
    },
  }
}

function sessionEnded() {
  return new EmulatorError('closed', 'The Live session ended before a matching frame arrived.')
}

/** Replaces base64 `data` beside a `mimeType` by its size, to save memory. */
function summarizeMedia(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(summarizeMedia)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value)
  if ('mimeType' in value && 'data' in value && typeof value.data === 'string') {
    const bytes = Buffer.byteLength(value.data, 'base64')
    return { ...Object.fromEntries(entries.filter(([key]) => key !== 'data')), bytes }
  }
  return Object.fromEntries(entries.map(([key, item]) => [key, summarizeMedia(item)]))
}

// summarizeMedia returns an object for an object.
const toFrame = (value: unknown) => value as Frame
