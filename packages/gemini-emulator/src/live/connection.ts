import type { Socket } from 'node:net'
import type { WebSocket } from 'ws'

import { defer, type Deferred } from '../deferred.ts'
import { fitReason, isSendableCode } from './close-code.ts'
import { createFrameLog, type Frame, type FrameLog } from './frame-log.ts'
import type { LiveSettings } from './live-options.ts'

export interface Closing {
  readonly code: number
  readonly reason: string
}

/** One WebSocket with its memory of frames. */
export interface Connection {
  readonly received: FrameLog
  readonly sent: FrameLog
  /** Aborts when the connection ends, at once if it is this side that ends it. */
  readonly signal: AbortSignal
  readonly closed: Closing | undefined
  readonly ended: Promise<Closing>
  send(frame: Frame): void
  /** Sends a frame that need not be a message; it is not remembered. */
  sendText(text: string): void
  /** A promise while the client lags behind; nothing if it keeps up. */
  drained(): Promise<void> | undefined
  close(code: number, reason: string): void
  /** Cuts the TCP connection with a reset. */
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
  const life = new AbortController()
  const end = defer<Closing>()
  let closed: Closing | undefined
  let lag: Deferred<void> | undefined

  const transmit = (text: string) =>
    socket.send(settings.frames === 'binary' ? Buffer.from(text) : text, relieve)
  const relieve = () => {
    if (!lag || socket.bufferedAmount > settings.maxBufferedBytes) return
    lag.resolve()
    lag = undefined
  }
  // Errors are followed by 'close', which is where a connection ends.
  socket.on('error', () => undefined)
  socket.on('close', (code, reason) => {
    closed = { code, reason: reason.toString() }
    life.abort()
    lag?.resolve()
    received.end()
    sent.end()
    end.resolve(closed)
  })

  return {
    received,
    sent,
    signal: life.signal,
    get closed() {
      return closed
    },
    ended: end.promise,
    send(frame) {
      if (socket.readyState !== socket.OPEN) return
      sent.record(frame)
      transmit(JSON.stringify(frame))
    },
    sendText(text) {
      if (socket.readyState === socket.OPEN) transmit(text)
    },
    drained() {
      if (socket.bufferedAmount <= settings.maxBufferedBytes || closed) return undefined
      return (lag ??= defer<void>()).promise
    },
    close(code, reason) {
      life.abort()
      // Codes such as 1006 cannot be sent: they are what a client sees when the connection is cut.
      if (isSendableCode(code)) socket.close(code, fitReason(reason))
      else tcp.resetAndDestroy()
    },
    drop() {
      life.abort()
      tcp.resetAndDestroy()
    },
  }
}
