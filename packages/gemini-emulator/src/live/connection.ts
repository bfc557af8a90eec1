import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'

import { defer, type Deferred } from '../deferred.ts'
import { createFrameLog, type Frame, type FrameLog } from './frame-log.ts'
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

export type ConnectionSettings = Pick<
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
