import { createServer, type Server } from 'node:http'

import { EmulatorError } from './emulator-error.ts'
import { attachLive, type LiveDesk } from './live/attach-live.ts'
import type { LiveOptions } from './live/live-options.ts'
import { synthesizeTone } from './live/tone.ts'
import type { Mind } from './mind.ts'
import { fallbackMind } from './minds/fallback-mind.ts'
import { firstOf } from './minds/first-of.ts'
import { scriptMind } from './minds/script/script-mind.ts'
import { createRequestLog, type RecordedRequest } from './request-log.ts'
import { answerRest } from './rest/answer-rest.ts'
import { createWorld, type Synthesize, type Transcribe } from './world.ts'

/** Where the emulator listens, and what its model does. */
export interface EmulatorOptions {
  /** Default 0: any free port. */
  readonly port?: number
  /** Default `127.0.0.1`. */
  readonly host?: string
  /** What the model does. Default: the script in the prompt. A prompt without one is repeated. */
  readonly mind?: Mind
  /** The only key that is accepted. Default: any non-empty key. */
  readonly apiKey?: string
  /** Models that exist, by name or pattern. Default: every name that starts with `gemini-`. */
  readonly models?: readonly (string | RegExp)[]
  /** Milliseconds between two streamed pieces. Default 0. */
  readonly paceMs?: number
  /** Live: converts the user's speech to text. Default: every utterance is `live.utterance`. */
  readonly transcribe?: Transcribe
  /** Live: converts the model's text to speech. Default: a tone that lasts as long as speech. */
  readonly synthesize?: Synthesize
  /** How the Live side behaves where Gemini's models differ. */
  readonly live?: LiveOptions
  /** Gets one line for each request and each event worth telling. Default: nothing. */
  readonly log?: (line: string) => void
  /** How many requests are remembered. Default 1000. */
  readonly keepRequests?: number
}

/** A running emulator; closing it cuts every connection. */
export interface Emulator extends AsyncDisposable {
  /** For `GOOGLE_GEMINI_BASE_URL` or `httpOptions.baseUrl`. */
  readonly baseUrl: string
  readonly port: number
  /** The last requests, oldest first. */
  readonly requests: readonly RecordedRequest[]
  readonly live: LiveDesk
  /** The first request, past or future, that matches and that no earlier call has returned. */
  nextRequest(predicate?: (request: RecordedRequest) => boolean): Promise<RecordedRequest>
  /** Opens the gate that a `wait` act stops at, also before the act is reached. */
  release(gate: string): void
  /** Forgets requests and ended Live sessions, and closes the gates again. */
  reset(): void
  close(): Promise<void>
}

/** Node's 5 s are so short that a busy client often sends its next request on a connection that is being closed. */
const KEEP_ALIVE_MS = 240_000

/** Starts Gemini's REST and Live wire on one loopback port. */
export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const { host = '127.0.0.1', port = 0 } = options
  const world = createWorld({
    mind: options.mind ?? firstOf(scriptMind, fallbackMind),
    apiKey: options.apiKey,
    models: options.models ?? [/^gemini-/],
    paceMs: options.paceMs ?? 0,
    transcribe: options.transcribe,
    synthesize: options.synthesize ?? synthesizeTone,
    log: options.log ?? (() => undefined),
  })
  const log = createRequestLog(options.keepRequests ?? 1000)
  const server = createServer((request, response) => {
    // It never rejects: what goes wrong is answered or cuts the connection.
    void answerRest({ world, log, request, response })
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  const live = attachLive(server, world, options.live)
  const boundPort = await listen(server, host, port)

  let closing: Promise<void> | undefined
  const close = () => (closing ??= shutDown())
  async function shutDown() {
    log.close()
    await live.close()
    const closed = new Promise<void>((resolve) => server.close(() => resolve()))
    server.closeAllConnections()
    await closed
  }
  return {
    baseUrl: `http://${host.includes(':') ? `[${host}]` : host}:${boundPort}`,
    port: boundPort,
    requests: log.requests,
    live,
    nextRequest: (predicate) => log.next(predicate),
    release: (gate) => world.gates.release(gate),
    reset() {
      log.reset()
      live.reset()
      world.gates.reset()
    },
    close,
    [Symbol.asyncDispose]: close,
  }
}

function listen(server: Server, host: string, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) => {
      reject(
        cause.code === 'EADDRINUSE'
          ? new EmulatorError('port-in-use', `Port ${port} on ${host} is taken. Choose another.`, {
              cause,
            })
          : new EmulatorError('cannot-listen', `Cannot listen on ${host}:${port}.`, { cause }),
      )
    })
    server.listen(port, host, () => {
      const address = server.address()
      resolve(typeof address === 'object' && address ? address.port : port)
    })
  })
}
