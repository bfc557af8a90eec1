import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'

import { EmulatorError } from '../emulator-error.ts'
import type { RequestEntry, RequestLog } from '../request-log.ts'
import { GoogleError, invalidArgument, invalidKey, missingKey } from '../wire/google-error.ts'
import type { World } from '../world.ts'
import { countTokens, generate } from './generate.ts'
import { getModel, listModels } from './models.ts'
import { readBody } from './read-body.ts'
import { parseJson } from './read-request.ts'
import { Reply } from './reply.ts'
import { readRoute, type Route } from './route.ts'

export interface Exchange {
  readonly world: World
  readonly log: RequestLog
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

/** Answers one HTTP request; it never rejects. */
export async function answerRest(exchange: Exchange): Promise<void> {
  const { world, log, request, response } = exchange
  const route = readRoute(request.method ?? '', request.url ?? '')
  const arrived = await receive(request)
  const { method, path, model } = route
  const headers = redact(request.headers)
  const entry = log.open({ method, path, model, headers, body: arrived.body })
  const reply = new Reply(response, entry, route.form)
  const client = watchClient(exchange, entry)
  try {
    refuseBadKey(route, request.headers, world)
    if (arrived.fault) throw arrived.fault
    await answer({ world, route, body: arrived.body, reply, signal: client.signal })
  } catch (error) {
    if (client.signal.aborted) return
    reply.error(toGoogleError(error, world))
  }
}

type Arrived =
  | { readonly body: unknown; readonly fault?: undefined }
  | { readonly body?: undefined; readonly fault: GoogleError }

async function receive(request: IncomingMessage): Promise<Arrived> {
  try {
    const text = await readBody(request)
    return { body: text === '' ? {} : parseJson(text) }
  } catch (error) {
    if (error instanceof GoogleError) return { fault: error }
    // The client went away in the middle of its body; nobody will read the answer.
    return { fault: invalidArgument('The request body was cut off.') }
  }
}

/** The signal aborts when the connection closes before the response is complete. */
function watchClient({ world, response }: Exchange, entry: RequestEntry): AbortController {
  const started = performance.now()
  const client = new AbortController()
  const settle = () => {
    entry.aborted = !response.writableFinished && !entry.cut
    client.abort()
    entry.end()
    const outcome = entry.aborted ? 'client went away' : `${entry.chunksSent} chunks`
    const ms = Math.round(performance.now() - started)
    world.log(`${entry.method} ${entry.model} ${entry.status} (${outcome}, ${ms} ms)`)
  }
  // It may have gone away in the middle of its own request.
  if (response.destroyed) settle()
  else response.once('close', settle)
  return client
}

async function answer(generation: Parameters<typeof generate>[0]): Promise<void> {
  const { route, reply, world } = generation
  switch (route.method) {
    case 'generateContent':
    case 'streamGenerateContent':
      return generate(generation)
    case 'countTokens':
      return countTokens(generation)
    case 'models.list':
      return reply.body(listModels(route, world))
    case 'models.get':
      return reply.body(getModel(route, world))
    case 'unknown':
      throw new GoogleError(
        404,
        `gemini-emulator does not serve ${route.path}. It serves models/{model}:generateContent, :streamGenerateContent, :countTokens, GET models and GET models/{model} under /v1beta, /v1alpha and /v1.`,
      )
  }
}

function refuseBadKey(route: Route, headers: IncomingHttpHeaders, world: World): void {
  const header = headers['x-goog-api-key']
  const bearer = headers.authorization?.replace(/^Bearer\s+/i, '')
  const key = (Array.isArray(header) ? header[0] : header) ?? route.query.get('key') ?? bearer
  const verdict = world.judgeKey(key)
  if (verdict === 'missing') throw missingKey()
  if (verdict === 'invalid') throw invalidKey()
}

function redact(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  return {
    ...headers,
    ...(headers['x-goog-api-key'] !== undefined && { 'x-goog-api-key': '[redacted]' }),
    ...(headers.authorization !== undefined && { authorization: '[redacted]' }),
  }
}

function toGoogleError(error: unknown, world: World): GoogleError {
  if (error instanceof GoogleError) return error
  if (error instanceof EmulatorError) {
    return new GoogleError(error.code === 'bad-script' ? 400 : 500, error.message)
  }
  const reason = error instanceof Error ? (error.stack ?? error.message) : String(error)
  world.log(`the mind failed: ${reason}`)
  const message = error instanceof Error ? error.message : String(error)
  return new GoogleError(500, `gemini-emulator: the mind failed: ${message}`)
}
