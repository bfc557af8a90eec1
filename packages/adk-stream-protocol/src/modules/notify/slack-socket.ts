import { WebSocket } from 'ws'
import * as z from 'zod'

import { delayBefore, sleep } from '../../shared/backoff.ts'
import { NoticeError } from './notice.ts'

export interface SlackSocketOptions {
  /** Asks Slack for the URL of a socket. */
  readonly openConnection: (signal: AbortSignal) => Promise<unknown>
  /** Handles what a person did in Slack. It was acknowledged before. */
  readonly handle: (payload: unknown) => Promise<unknown>
  readonly onError: (error: unknown) => void
  /** Closes the socket. */
  readonly signal: AbortSignal
  /** For how long Slack may be silent. It sends a ping every few seconds. Default 60 s. */
  readonly silenceMs?: number
}

const BACKOFF = { firstMs: 500, maxMs: 30_000, attempts: 0 }
const SILENCE_MS = 60_000
/** Slack asks for a new connection before it closes the old one. */
const OVERLAP_MS = 20_000
const MAX_PAYLOAD_BYTES = 1_000_000

/**
 * Receives the clicks of people over a socket that this process opens, so that Slack needs no URL of it. Opens another one when Slack asks for
 * it, and when it is lost. Resolves when the signal is aborted and the last payload is handled.
 */
export async function runSlackSocket(options: SlackSocketOptions): Promise<void> {
  const { openConnection, onError, signal } = options
  const handling = new Set<Promise<unknown>>()
  let failures = 0
  while (!signal.aborted) {
    try {
      const { url } = Opened.parse(await openConnection(signal))
      await useConnection(new WebSocket(checkUrl(url), { maxPayload: MAX_PAYLOAD_BYTES }), {
        ...options,
        handling,
        onHello: () => {
          failures = 0
        },
      })
    } catch (cause) {
      // One report for each time that the connection is lost.
      if (failures === 0 && !signal.aborted)
        onError(new NoticeError('Slack does not accept a socket. Clicks wait.', { cause }))
      failures += 1
      const asked = cause instanceof NoticeError ? cause.retryMs : undefined
      await sleep(asked ?? delayBefore(failures - 1, BACKOFF), signal)
    }
  }
  await Promise.allSettled(handling)
}

interface Connection extends SlackSocketOptions {
  readonly handling: Set<Promise<unknown>>
  /** Called when Slack sends on this connection. */
  readonly onHello: () => void
}

/** Resolves when another connection is needed. Rejects if this one could not be opened or was lost. */
function useConnection(
  socket: WebSocket,
  { handle, handling, onHello, onError, signal, silenceMs = SILENCE_MS }: Connection,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const close = (): void => socket.terminate()
    const silence = setTimeout(close, silenceMs)
    let replaced: ReturnType<typeof setTimeout> | undefined
    signal.addEventListener('abort', close, { once: true })
    socket.on('ping', () => silence.refresh())
    socket.on('message', (data) => {
      silence.refresh()
      const message = Message.safeParse(readJson(String(data)))
      if (!message.success) return
      const { type, envelope_id, payload } = message.data
      if (type === 'hello') onHello()
      if (type === 'disconnect') {
        // Payloads may still arrive here until Slack closes it.
        replaced ??= setTimeout(close, OVERLAP_MS)
        resolve()
      }
      if (envelope_id === undefined) return
      // Slack wants an acknowledgement within three seconds, and a decision may take longer.
      socket.send(JSON.stringify({ envelope_id }))
      if (type !== 'interactive') return
      const handled = handle(payload)
        .catch(onError)
        .finally(() => handling.delete(handled))
      handling.add(handled)
    })
    // 'close' follows.
    socket.on('error', (error) => reject(error))
    socket.on('close', (code) => {
      clearTimeout(silence)
      clearTimeout(replaced)
      signal.removeEventListener('abort', close)
      if (signal.aborted) resolve()
      else reject(new NoticeError(`Slack closed the socket with code ${code}.`))
    })
    if (signal.aborted) close()
  })
}

const Opened = z.object({ url: z.string() })

const Message = z.object({
  type: z.string(),
  envelope_id: z.string().optional(),
  payload: z.unknown().optional(),
})

/** A socket over the network is encrypted. One on this machine is for tests. */
function checkUrl(text: string): URL {
  const url = new URL(text)
  const isLocal = url.hostname === '127.0.0.1' || url.hostname === 'localhost'
  if (url.protocol === 'wss:' || (isLocal && url.protocol === 'ws:')) return url
  throw new NoticeError('Slack returned a URL that is no encrypted socket.')
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
