import type { IncomingMessage, Server } from 'node:http'
import { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

import type { WebSocket } from 'ws'
import { WebSocketServer } from 'ws'

import type { Deferred } from '../deferred.ts'
import { defer } from '../deferred.ts'
import type { EmulatorCore, Transcribe } from '../emulator-core.ts'
import { EmulatorError } from '../emulator-error.ts'
import { invalidKey, missingKey } from '../wire/google-error.ts'
import type { CloseInfo } from './connection.ts'
import { CloseCode, createConnection, truncateReason } from './connection.ts'
import type { LiveOptions } from './live-options.ts'
import { readLiveOptions } from './live-options.ts'
import type { LiveSession } from './live-session.ts'
import { HostedSession } from './live-session.ts'
import { createResumptionHandles } from './open-setup.ts'

/** The Live sessions of an emulator. */
export interface LiveControls {
  /** All sessions, including ended ones, oldest first. */
  readonly sessions: readonly LiveSession[]
  /** Returns the next session whose setup is complete, current or future, that no earlier call returned. */
  nextSession(signal?: AbortSignal): Promise<LiveSession>
  /** Sets the transcript of the next utterance of any session. Several calls set those of the following ones. */
  queueTranscript(text: string): void
  /** Removes ended sessions and queued transcripts. */
  reset(): void
  /** Ends every connection. */
  close(): Promise<void>
}

/** Serves Gemini Live on the WebSocket upgrades of an HTTP server. */
export function attachLive(
  server: Server,
  core: EmulatorCore,
  options: LiveOptions = {},
): LiveControls {
  const settings = readLiveOptions(options)
  const { handleLifetimeMs: lifetimeMs, maxFrameBytes: maxPayload } = settings
  const handles = createResumptionHandles({ lifetimeMs, newId: () => core.newId(), now: Date.now })
  const { pongDelayMs } = settings
  const autoPong = pongDelayMs === 0
  const sockets = new WebSocketServer({
    noServer: true,
    maxPayload,
    perMessageDeflate: false,
    autoPong,
  })
  const registry = createSessionRegistry()
  const transcripts: string[] = []

  const transcribe: Transcribe = (speech, history) =>
    transcripts.shift() ?? core.transcribe?.(speech, history) ?? settings.defaultTranscript

  const accept = (socket: WebSocket, tcp: Socket, target: Target) => {
    const error = checkKey(target, core)
    if (error) {
      socket.on('error', ignoreError)
      return socket.close(error.code, truncateReason(error.reason))
    }
    const { path, version } = target
    const connection = createConnection(socket, tcp, settings)
    const onReady = registry.markReady
    const session = new HostedSession({
      core,
      settings,
      handles,
      version,
      connection,
      path,
      transcribe,
      onReady,
    })
    registry.add(session)
    socket.on('message', (data: Buffer) => session.receive(data.toString()))
    if (!autoPong)
      socket.on('ping', (data) => {
        // The connection may end meanwhile.
        core.pause(pongDelayMs, connection.signal).then(
          () => socket.pong(data),
          () => undefined,
        )
      })
    core.log(`live ${session.id}: connected to ${path}`)
    void connection.ended.then(({ code, reason }) =>
      core.log(`live ${session.id}: closed with ${code} ${reason}`),
    )
  }

  server.on('upgrade', (request, stream, head) => {
    const target = readTarget(request)
    // The stream is a socket unless the server was given another kind of stream.
    if (!target || !(stream instanceof Socket)) return rejectUpgrade(stream)
    sockets.handleUpgrade(request, stream, head, (socket) => accept(socket, stream, target))
  })

  return {
    sessions: registry.sessions,
    nextSession: (signal) => registry.next(signal),
    queueTranscript: (text) => void transcripts.push(text),
    reset() {
      registry.reset()
      transcripts.length = 0
    },
    async close() {
      registry.close()
      for (const socket of sockets.clients) socket.terminate()
      sockets.close()
      await Promise.all(registry.sessions.map((session) => session.ended))
    },
  }
}

/** The path and key of an upgrade request. */
interface Target {
  /** `v1alpha` or `v1beta`. */
  readonly version: string
  /** Path and query. The key is replaced by `[redacted]`. */
  readonly path: string
  readonly key: string | null
}

/** Returns `undefined` if the path is not that of Gemini Live. */
function readTarget(request: IncomingMessage): Target | undefined {
  // The Gen AI SDK puts two slashes before `ws` if its base URL ends with one.
  const address = `http://host${(request.url ?? '').replace(/^\/*/, '/')}`
  const { pathname, searchParams } = new URL(URL.canParse(address) ? address : 'http://host')
  const version = LIVE_PATH.exec(pathname)?.[1]
  if (version === undefined) return undefined
  const key = searchParams.get('key') ?? searchParams.get('access_token') ?? readHeader(request)
  for (const name of ['key', 'access_token']) {
    if (searchParams.has(name)) searchParams.set(name, REDACTED)
  }
  const query = searchParams.toString().replaceAll(encodeURIComponent(REDACTED), REDACTED)
  return { version, key, path: query ? `${pathname}?${query}` : pathname }
}

const REDACTED = '[redacted]'

const LIVE_PATH =
  /^\/ws\/google\.ai\.generativelanguage\.(v1alpha|v1beta)\.GenerativeService\.BidiGenerateContent(?:Constrained)?$/

function readHeader({ headers }: IncomingMessage): string | null {
  const key = headers['x-goog-api-key'] ?? headers.authorization?.replace(/^(Token|Bearer) /, '')
  return (Array.isArray(key) ? key[0] : key) ?? null
}

function checkKey({ key }: Target, core: EmulatorCore): CloseInfo | undefined {
  switch (core.checkKey(key)) {
    case 'accepted':
      return undefined
    case 'missing':
      return { code: CloseCode.NotFound, reason: missingKey().message }
    case 'invalid':
      return { code: CloseCode.InvalidArgument, reason: invalidKey().message }
  }
}

function rejectUpgrade(stream: Duplex) {
  stream.on('error', ignoreError)
  stream.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
}

// The connection is being closed.
const ignoreError = () => undefined

/** The sessions of an emulator, and the pending calls of `nextSession`. */
interface SessionRegistry {
  readonly sessions: readonly LiveSession[]
  add(session: LiveSession): void
  /** Makes a session available to `next`. */
  markReady(this: void, session: LiveSession): void
  /** Returns each ready session once. Waits for one if there is none. */
  next(signal?: AbortSignal): Promise<LiveSession>
  /** Removes ended sessions. */
  reset(): void
  /** Rejects pending calls of `next`. */
  close(): void
}

// Beyond this number, the oldest ended session is removed.
const MAX_SESSIONS = 1000

function createSessionRegistry(): SessionRegistry {
  const sessions: LiveSession[] = []
  const ready: LiveSession[] = []
  const waiters = new Set<Deferred<LiveSession>>()

  return {
    sessions,
    add(session) {
      sessions.push(session)
      if (sessions.length <= MAX_SESSIONS) return
      const oldest = sessions.find((candidate) => candidate.closed)
      remove(sessions, (candidate) => candidate === oldest)
      remove(ready, (candidate) => candidate === oldest)
    },
    markReady(session) {
      const [waiter] = waiters
      if (!waiter) {
        ready.push(session)
        return
      }
      waiters.delete(waiter)
      waiter.resolve(session)
    },
    async next(signal) {
      signal?.throwIfAborted()
      const session = ready.shift()
      if (session) return session
      const waiter = defer<LiveSession>()
      const abort = () => waiter.reject(signal?.reason)
      waiters.add(waiter)
      signal?.addEventListener('abort', abort, { once: true })
      try {
        return await waiter.promise
      } finally {
        waiters.delete(waiter)
        signal?.removeEventListener('abort', abort)
      }
    },
    reset() {
      remove(sessions, (session) => session.closed !== undefined)
      remove(ready, (session) => session.closed !== undefined)
    },
    close() {
      const error = new EmulatorError('closed', 'The emulator closed before a session was ready.')
      for (const waiter of waiters) waiter.reject(error)
      waiters.clear()
    },
  }
}

function remove(list: LiveSession[], isRemoved: (session: LiveSession) => boolean): void {
  list.splice(0, list.length, ...list.filter((session) => !isRemoved(session)))
}
