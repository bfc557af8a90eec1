import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'

import type { EmulatorCore } from '../emulator-core.ts'
import { EmulatorError } from '../emulator-error.ts'
import type { RequestEntry, RequestLog } from '../request-log.ts'
import { GoogleError, invalidArgument, invalidKey, missingKey } from '../wire/google-error.ts'
import type { Generation } from './methods.ts'
import { countTokens, generate, getModel, listModels } from './methods.ts'
import { parseJson, readBody } from './read-request.ts'
import { ResponseWriter } from './response-writer.ts'
import { readRoute, type Route } from './route.ts'

export interface Exchange {
  readonly core: EmulatorCore
  readonly log: RequestLog
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Handles one HTTP request. Never rejects. */
export async function handleRequest(exchange: Exchange): Promise<void> {
  const { core, log, request, response } = exchange
  const route = readRoute(request.method ?? '', request.url ?? '')
  const received = await receive(request)
  const { method, path, model } = route
  const headers = redact(request.headers)
  const entry = log.open({ method, path, model, headers, body: received.body })
  const writer = new ResponseWriter(response, entry, route.form)
  const client = watchClient(exchange, entry)
  try {
    checkKey(route, request.headers, core)
    if (received.error) throw received.error
    await respond({ core, route, body: received.body, writer, signal: client.signal })
  } catch (error) {
    if (client.signal.aborted) return
    writer.error(toGoogleError(error, core))
  }
}

type ReceivedBody =
  | { readonly body: unknown; readonly error?: undefined }
  | { readonly body?: undefined; readonly error: GoogleError }

async function receive(request: IncomingMessage): Promise<ReceivedBody> {
  try {
    const text = await readBody(request)
    return { body: text === '' ? {} : parseJson(text) }
  } catch (error) {
    if (error instanceof GoogleError) return { error }
    // The client disconnected while it was sending its body.
    return { error: invalidArgument('The request body is incomplete.') }
  }
}

/** Aborts the signal when the connection closes, and records the end of the response. */
function watchClient({ core, response }: Exchange, entry: RequestEntry): AbortController {
  const started = performance.now()
  const client = new AbortController()
  const settle = () => {
    entry.aborted = !response.writableFinished && !entry.dropped
    client.abort()
    entry.end()
    const outcome = entry.aborted ? 'client disconnected' : `${entry.chunksSent} chunks`
    const ms = Math.round(performance.now() - started)
    core.log(`${entry.method} ${entry.model} ${entry.status} (${outcome}, ${ms} ms)`)
  }
  // The client may have disconnected during its own request.
  if (response.destroyed) settle()
  else response.once('close', settle)
  return client
}

async function respond(generation: Generation): Promise<void> {
  const { route, writer, core } = generation
  switch (route.method) {
    case 'generateContent':
    case 'streamGenerateContent':
      return generate(generation)
    case 'countTokens':
      return countTokens(generation)
    case 'models.list':
      return writer.body(listModels(route, core))
    case 'models.get':
      return writer.body(getModel(route, core))
    case 'unknown':
      throw new GoogleError(
        404,
        `gemini-emulator does not serve ${route.path}. It serves models/{model}:generateContent, :streamGenerateContent, :countTokens, GET models and GET models/{model} under /v1beta, /v1alpha and /v1.`,
      )
  }
}

function checkKey(route: Route, headers: IncomingHttpHeaders, core: EmulatorCore): void {
  const header = headers['x-goog-api-key']
  const bearer = headers.authorization?.replace(/^Bearer\s+/i, '')
  const key = (Array.isArray(header) ? header[0] : header) ?? route.query.get('key') ?? bearer
  const result = core.checkKey(key)
  if (result === 'missing') throw missingKey()
  if (result === 'invalid') throw invalidKey()
}

function redact(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return {
    ...headers,
    ...(headers['x-goog-api-key'] !== undefined && { 'x-goog-api-key': '[redacted]' }),
    ...(headers.authorization !== undefined && { authorization: '[redacted]' }),
  }
}

function toGoogleError(error: unknown, core: EmulatorCore): GoogleError {
  if (error instanceof GoogleError) return error
  if (error instanceof EmulatorError) {
    return new GoogleError(error.code === 'bad-script' ? 400 : 500, error.message)
  }
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
  core.log(`responder failed: ${reason}`)
  const message = error instanceof Error ? error.message : String(error)
  return new GoogleError(500, `gemini-emulator: the responder failed: ${message}`)
}
