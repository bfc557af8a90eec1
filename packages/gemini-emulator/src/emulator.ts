import { createServer, type Server } from 'node:http'

import { createCore, type Synthesize, type Transcribe } from './emulator-core.ts'
import { EmulatorError } from './emulator-error.ts'
import { attachLive, type LiveControls } from './live/attach-live.ts'
import { synthesizeTone } from './live/audio.ts'
import type { LiveOptions } from './live/live-options.ts'
import { createRequestLog, type RecordedRequest } from './request-log.ts'
import type { Responder } from './responders/responder.ts'
import { fallbackResponder, firstOf } from './responders/responder.ts'
import { scriptResponder } from './responders/script-responder.ts'
import { handleRequest } from './rest/handle-request.ts'

/** Options of `startEmulator`. */
export interface EmulatorOptions {
  /** Default 0: a free port. */
  readonly port?: number
  /** Default `127.0.0.1`. */
  readonly host?: string
  /** Decides what the model does. Default: runs the script in the prompt; repeats a prompt without one. */
  readonly respond?: Responder
  /** The only accepted key. Default: every non-empty key. */
  readonly apiKey?: string
  /** Names or patterns of the models that exist. Default: every name that starts with `gemini-`. */
  readonly models?: readonly (string | RegExp)[]
  /** Milliseconds between two streamed pieces. Default 0. */
  readonly paceMs?: number
  /** Live: converts the user's speech to text. Default: `live.defaultTranscript` for every utterance. */
  readonly transcribe?: Transcribe
  /** Live: converts the model's text to speech. Default: a tone that lasts about as long as the spoken text. */
  readonly synthesize?: Synthesize
  /** Options of the Live server. */
  readonly live?: LiveOptions
  /** Called with one line for each request and each Live connection. Default: none. */
  readonly log?: (line: string) => void
  /** The number of requests to keep. Default 1000. */
  readonly keepRequests?: number
}

/** A running emulator. */
export interface Emulator extends AsyncDisposable {
  /** The value for `GOOGLE_GEMINI_BASE_URL` or `httpOptions.baseUrl`. */
  readonly baseUrl: string
  readonly port: number
  /** The latest requests, oldest first. */
  readonly requests: readonly RecordedRequest[]
  /** The Live sessions. */
  readonly live: LiveControls
  /** Returns the first matching request, recorded or future, that no earlier call returned. */
  nextRequest(predicate?: (request: RecordedRequest) => boolean): Promise<RecordedRequest>
  /** Releases a gate of `wait` actions, including later ones. */
  release(gate: string): void
  /** Removes recorded requests and ended Live sessions, and closes the gates. */
  reset(): void
  /** Ends every connection and stops the server. */
  close(): Promise<void>
}

// Node's default of 5 s is too short: a busy client often reuses a connection that the server is closing.
const KEEP_ALIVE_MS = 240_000

/** Starts a server for Gemini's REST and Live APIs on one port. */
export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const { host = '127.0.0.1', port = 0 } = options
  const core = createCore({
    respond: options.respond ?? firstOf(scriptResponder, fallbackResponder),
    apiKey: options.apiKey,
    models: options.models ?? [/^gemini-/],
    paceMs: options.paceMs ?? 0,
    transcribe: options.transcribe,
    synthesize: options.synthesize ?? synthesizeTone,
    log: options.log ?? (() => undefined),
  })
  const log = createRequestLog(options.keepRequests ?? 1000)
  const server = createServer((request, response) => {
    // handleRequest never rejects.
    void handleRequest({ core, log, request, response })
  })
  server.keepAliveTimeout = KEEP_ALIVE_MS
  const live = attachLive(server, core, options.live)
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
    release: (gate) => core.gates.release(gate),
    reset() {
      log.reset()
      live.reset()
      core.gates.reset()
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
          ? new EmulatorError(
              'port-in-use',
              `Port ${port} on ${host} is in use. Choose another port.`,
              {
                cause,
              },
            )
          : new EmulatorError('cannot-listen', `Cannot listen on ${host}:${port}.`, { cause }),
      )
    })
    server.listen(port, host, () => {
      const address = server.address()
      resolve(typeof address === 'object' && address ? address.port : port)
    })
  })
}
