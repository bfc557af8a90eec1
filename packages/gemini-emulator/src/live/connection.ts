import type { Socket } from 'node:net'

import type { WebSocket } from 'ws'

import type { Deferred } from '../deferred.ts'
import { defer } from '../deferred.ts'
import { EmulatorError } from '../emulator-error.ts'
import type { LiveSettings } from './live-options.ts'

/** The WebSocket close codes of Gemini Live. */
export const CloseCode = {
  GoingAway: 1001,
  /** An invalid message or a wrong API key. */
  InvalidArgument: 1007,
  /** An unknown model or session. */
  NotFound: 1008,
  Internal: 1011,
} as const

/** The code and reason of a close frame. */
export interface CloseInfo {
  readonly code: number
  readonly reason: string
}

/** A WebSocket that records its frames. */
export interface Connection {
  readonly received: FrameLog
  readonly sent: FrameLog
  /** Aborts when the connection ends, or as soon as the emulator closes it. */
  readonly signal: AbortSignal
  readonly closed: CloseInfo | undefined
  /** Whether neither side has started to close the connection. */
  readonly isOpen: boolean
  readonly ended: Promise<CloseInfo>
  send(frame: Frame): void
  /** Sends any text. Does not record it. */
  sendText(text: string): void
  /** Returns a promise if the client is slow; it resolves when the client has caught up. */
  drained(): Promise<void> | undefined
  close(code: number, reason: string): void
  /** Resets the TCP connection. */
  drop(): void
}

type ConnectionSettings = Pick<
  LiveSettings,
  'frames' | 'keepFrames' | 'recordAudio' | 'maxBufferedBytes'
>

export function createConnection(
  socket: WebSocket,
  tcp: Socket,
  settings: ConnectionSettings,
): Connection {
  const logOptions = { capacity: settings.keepFrames, keepMedia: settings.recordAudio }
  const received = createFrameLog(logOptions)
  const sent = createFrameLog(logOptions)
  const lifetime = new AbortController()
  const end = defer<CloseInfo>()
  let closed: CloseInfo | undefined
  let drain: Deferred<void> | undefined

  const write = (text: string) =>
    socket.send(settings.frames === 'binary' ? Buffer.from(text) : text, checkDrained)
  const checkDrained = () => {
    if (!drain || socket.bufferedAmount > settings.maxBufferedBytes) return
    drain.resolve()
    drain = undefined
  }
  // 'close' follows every 'error'.
  socket.on('error', () => undefined)
  socket.on('close', (code, reason) => {
    closed = { code, reason: reason.toString() }
    lifetime.abort()
    drain?.resolve()
    received.end()
    sent.end()
    end.resolve(closed)
  })

  return {
    received,
    sent,
    signal: lifetime.signal,
    get closed() {
      return closed
    },
    get isOpen() {
      return socket.readyState === socket.OPEN
    },
    ended: end.promise,
    send(frame) {
      if (socket.readyState !== socket.OPEN) return
      sent.record(frame)
      write(JSON.stringify(frame))
    },
    sendText(text) {
      if (socket.readyState === socket.OPEN) write(text)
    },
    drained() {
      if (socket.bufferedAmount <= settings.maxBufferedBytes || closed) return undefined
      return (drain ??= defer<void>()).promise
    },
    close(code, reason) {
      lifetime.abort()
      // Codes such as 1006 cannot be sent. A client sees them after a reset.
      if (isSendable(code)) socket.close(code, truncateReason(reason))
      else tcp.resetAndDestroy()
    },
    drop() {
      lifetime.abort()
      tcp.resetAndDestroy()
    },
  }
}

/** Truncates a reason to the 123 bytes of a close frame, as Gemini does. */
export function truncateReason(reason: string): string {
  const bytes = Buffer.from(reason)
  if (bytes.length <= 123) return reason
  // An incomplete character decodes to U+FFFD.
  return bytes
    .subarray(0, 123)
    .toString()
    .replace(/\uFFFD+$/, '')
}

/** Returns whether a close frame may have this code. */
function isSendable(code: number): boolean {
  if (code >= 3000) return code <= 4999
  return code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)
}

export type Frame = Readonly<Record<string, unknown>>

/** Records the latest frames of one direction. */
interface FrameLog {
  readonly frames: readonly Frame[]
  record(frame: Frame): void
  /** Returns the first matching frame, recorded or future. Rejects when the session ends or the signal aborts. */
  waitFor(predicate: (frame: Frame) => boolean, signal?: AbortSignal): Promise<Frame>
  /** Rejects pending waits, because the session ended. */
  end(): void
}

interface FrameLogOptions {
  readonly capacity: number
  readonly keepMedia: boolean
}

function createFrameLog(options: FrameLogOptions): FrameLog {
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
