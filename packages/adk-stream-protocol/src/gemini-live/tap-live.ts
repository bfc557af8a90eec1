import type { Live } from '@google/genai'

/** The socket of Google's SDK. */
export interface RawSocket {
  connect(): void
  send(text: string): void
  close(): void
}

export interface RawFrame {
  readonly data: unknown
}

interface RawCallbacks {
  readonly onmessage: (frame: RawFrame) => void
}

interface SocketFactory {
  create(url: string, headers: Record<string, string>, callbacks: RawCallbacks): RawSocket
}

/** What is done between the SDK and its socket. */
export interface Taps {
  readonly onSocket: (socket: RawSocket) => void
  readonly onSetup: (text: string) => string
  readonly onFrame: (frame: RawFrame, pass: (frame: RawFrame) => void) => void
}

/**
 * The SDK's live side with an ear on its sockets. The SDK gives nobody its socket while it connects, and parses frames in a promise
 * that nobody awaits, so that one frame which is no JSON ends the process (genai 2.32.0). The original is left as it is.
 */
export function tapLive(live: Live, taps: Taps): Live {
  const factory = readFactory(live)
  const create: SocketFactory['create'] = (url, headers, callbacks) => {
    const socket = factory.create(url, headers, {
      ...callbacks,
      onmessage: (frame) => taps.onFrame(frame, callbacks.onmessage),
    })
    taps.onSocket(socket)
    let isSetup = true
    return {
      connect: () => socket.connect(),
      close: () => socket.close(),
      send(text) {
        socket.send(isSetup ? taps.onSetup(text) : text)
        isSetup = false
      },
    }
  }
  const tapped: unknown = Object.create(factory, { create: { value: create } })
  // What is not overridden comes from the original.
  return Object.create(live, { webSocketFactory: { value: tapped } }) as Live
}

function readFactory(live: Live): SocketFactory {
  const factory: unknown = Reflect.get(live, 'webSocketFactory')
  if (isFactory(factory)) return factory
  throw new TypeError('This version of @google/genai hides its sockets; use one of ^2.9.0.')
}

function isFactory(value: unknown): value is SocketFactory {
  return typeof value === 'object' && value !== null && 'create' in value
}
