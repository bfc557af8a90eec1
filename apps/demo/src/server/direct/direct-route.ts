import { createHmac } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'

import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { type Authenticate, type Principal, ProtocolError } from 'adk-stream-protocol/server'
import { APICallError, convertToModelMessages, stepCountIs, streamText } from 'ai'

import { INSTRUCTION } from '../../agent/instruction.ts'
import { canThink } from '../../agent/demo-agent.ts'
import type { Wallets } from '../../agent/wallet/wallets.ts'
import type { Weather } from '../../agent/weather/weather.ts'
import { readJsonBody, toAuthenticateRequest } from '../node-request.ts'
import { createDirectTools } from './direct-tools.ts'
import { readDirectRequest } from './read-direct-request.ts'
import { markDenials } from './mark-denials.ts'

export interface DirectOptions {
  readonly authenticate: Authenticate
  readonly wallets: Wallets
  readonly weather: Weather
  /** The Gemini endpoint and its key. */
  readonly endpoint: { readonly baseUrl: string; readonly apiKey: string; readonly model: string }
  /** The secret that signs approvals, which the AI SDK accepts from the client. */
  readonly secret: () => Promise<Uint8Array>
  readonly onError: (error: unknown) => void
}

export type DirectRoute = (request: IncomingMessage, response: ServerResponse) => Promise<void>

const MAX_STEPS = 8

/**
 * `POST /direct`: the same tools without ADK and the bridge, for comparison. The AI SDK calls Gemini, and the page stores the
 * history. Never rejects.
 */
export function createDirectRoute(options: DirectOptions): DirectRoute {
  const { baseUrl, apiKey, model } = options.endpoint
  const google = createGoogleGenerativeAI({ baseURL: `${baseUrl}/v1beta`, apiKey })
  return async (request, response) => {
    try {
      const principal = await options.authenticate(toAuthenticateRequest(request))
      if (!principal) throw new ProtocolError('unauthenticated')
      for (const [name, value] of Object.entries(principal.responseHeaders ?? {}))
        response.setHeader(name, value)
      const tools = createDirectTools({ ...options, userId: principal.id })
      const chat = await readDirectRequest(await readJsonBody(request), tools)
      const closed = new AbortController()
      response.on('close', () => closed.abort())
      const result = streamText({
        model: google(model),
        system: INSTRUCTION,
        messages: await convertToModelMessages(markDenials(chat.messages), { tools }),
        tools,
        stopWhen: stepCountIs(MAX_STEPS),
        maxRetries: 0,
        abortSignal: closed.signal,
        experimental_toolApprovalSecret: await approvalSecret(options, principal, chat.chatId),
        onError: ({ error }) => options.onError(error),
        ...(canThink(model) && {
          providerOptions: { google: { thinkingConfig: { includeThoughts: true } } },
        }),
      })
      await result.pipeUIMessageStreamToResponse(response, {
        originalMessages: chat.messages,
        sendSources: true,
        onError: describeError,
      })
    } catch (thrown) {
      refuse(response, thrown, options.onError)
    }
  }
}

/** Binds approvals to a person and a chat, which the AI SDK does not do. */
async function approvalSecret(
  { secret }: DirectOptions,
  { id }: Principal,
  chatId: string,
): Promise<Uint8Array> {
  return createHmac('sha256', await secret())
    .update(JSON.stringify([id, chatId]))
    .digest()
}

/** Returns the error for the client, in the format of the bridge. */
function describeError(thrown: unknown): string {
  return JSON.stringify(toModelError(thrown))
}

function toModelError(thrown: unknown): ProtocolError {
  if (!APICallError.isInstance(thrown)) return new ProtocolError('internal')
  const { statusCode = 503 } = thrown
  if (statusCode === 429) return new ProtocolError('model-rate-limited')
  return new ProtocolError(statusCode >= 500 ? 'model-unavailable' : 'model-refused')
}

function refuse(
  response: ServerResponse,
  thrown: unknown,
  onError: (error: unknown) => void,
): void {
  const error = thrown instanceof ProtocolError ? thrown : new ProtocolError('internal')
  if (error !== thrown) onError(thrown)
  if (response.headersSent) return void response.destroy()
  response.writeHead(error.status, {
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    ...(error.status === 413 && { connection: 'close' }),
  })
  response.end(JSON.stringify(error))
}
