import type { Server } from 'node:http'
import type { Duplex } from 'node:stream'
import { Socket } from 'node:net'
import { WebSocketServer, type WebSocket } from 'ws'

import { invalidKey, missingKey } from '../wire/google-error.ts'
import type { Transcribe, World } from '../world.ts'
import { CloseCode, fitReason } from './close-code.ts'
import { createHandles } from './handles.ts'
import { HostedSession } from './host-session.ts'
import { readLiveOptions, type LiveOptions } from './live-options.ts'
import type { LiveSession } from './live-session.ts'
import { readTarget, type Target } from './read-target.ts'
import { createRoster } from './roster.ts'
import { createConnection } from './connection.ts'

/** The Live side of an emulator: its WebSocket sessions. */
export interface LiveDesk {
  /** Every connection that was let in, oldest first. */
  readonly sessions: readonly LiveSession[]
  /** The next session whose setup is complete, past or future, that no earlier call has returned. */
  nextSession(signal?: AbortSignal): Promise<LiveSession>
  /** Queues what the next spoken utterance, of whichever session, will be taken for. */
  hear(text: string): void
  /** Forgets the sessions that have ended, and what was queued to be heard. */
  reset(): void
  /** Cuts every session. */
  close(): Promise<void>
}

/** Answers WebSocket upgrades on the server with Gemini Live. */
export function attachLive(server: Server, world: World, options: LiveOptions = {}): LiveDesk {
  const settings = readLiveOptions(options)
  const { handleLifetimeMs: lifetimeMs, maxFrameBytes: maxPayload } = settings
  const handles = createHandles({ lifetimeMs, newId: () => world.newId(), now: Date.now })
  const sockets = new WebSocketServer({ noServer: true, maxPayload, perMessageDeflate: false })
  const roster = createRoster()
  const heard: string[] = []

  const transcribe: Transcribe = (speech, history) =>
    heard.shift() ?? world.transcribe?.(speech, history) ?? settings.utterance

  const admit = (socket: WebSocket, tcp: Socket, target: Target) => {
    const refusal = judge(target, world)
    if (refusal) {
      socket.on('error', ignoreError)
      return socket.close(refusal.code, fitReason(refusal.reason))
    }
    const { path, version } = target
    const connection = createConnection(socket, tcp, settings)
    const onReady = roster.announce
    const session = new HostedSession({
      world,
      settings,
      handles,
      version,
      connection,
      path,
      transcribe,
      onReady,
    })
    roster.add(session)
    socket.on('message', (data: Buffer) => session.take(data.toString()))
    world.log(`live ${session.id}: connected to ${path}`)
    void connection.ended.then(({ code, reason }) =>
      world.log(`live ${session.id}: ended with ${code} ${reason}`),
    )
  }

  server.on('upgrade', (request, stream, head) => {
    const target = readTarget(request)
    // An HTTP server's streams are sockets, unless it was handed something of one's own.
    if (!target || !(stream instanceof Socket)) return refuseUpgrade(stream)
    sockets.handleUpgrade(request, stream, head, (socket) => admit(socket, stream, target))
  })

  return {
    sessions: roster.sessions,
    nextSession: (signal) => roster.next(signal),
    hear: (text) => void heard.push(text),
    reset() {
      roster.reset()
      heard.length = 0
    },
    async close() {
      roster.close()
      for (const socket of sockets.clients) socket.terminate()
      sockets.close()
      await Promise.all(roster.sessions.map((session) => session.ended))
    },
  }
}

function judge({ key }: Target, world: World) {
  switch (world.judgeKey(key)) {
    case 'accepted':
      return undefined
    case 'missing':
      return { code: CloseCode.NotFound, reason: missingKey().message }
    case 'invalid':
      return { code: CloseCode.InvalidArgument, reason: invalidKey().message }
  }
}

function refuseUpgrade(stream: Duplex) {
  stream.on('error', ignoreError)
  stream.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
}

// The connection is being closed anyway.
const ignoreError = () => undefined
