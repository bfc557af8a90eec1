import { createHmac } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createGoogleGenerativeAI } from '@ai-sdk/google'
import { type Authenticate, type Principal, ProtocolError } from 'adk-stream-protocol/server'
import { readJsonBody, toAuthenticateRequest } from 'adk-stream-protocol-studio'
import {
  APICallError,
  convertToModelMessages,
  stepCountIs,
  streamText,
  safeValidateUIMessages,
  type ToolSet,
  type UIMessage,
  isToolUIPart,
} from 'ai'
import { z } from 'zod'

import { INSTRUCTION, canThink } from '../agent/demo-agent.ts'
import type { Wallets } from '../agent/wallet/wallets.ts'
import type { Weather } from '../agent/weather/weather.ts'
import { createDirectTools } from './direct-tools.ts'

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
  if (statusCode === 503) return new ProtocolError('model-overloaded')
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

/** A conversation as the AI SDK transport sends it: all messages in every request. */
interface DirectRequest {
  readonly chatId: string
  readonly messages: UIMessage[]
}

const Body = z.object({
  id: z.string().min(1).max(128),
  messages: z
    .array(z.looseObject({ role: z.enum(['user', 'assistant']) }))
    .min(1)
    .max(1000),
})

/** Parses a request. Rejects invalid ones, and those with file URLs that the server would fetch. */
async function readDirectRequest(json: string, tools: ToolSet): Promise<DirectRequest> {
  const body = Body.safeParse(parse(json))
  if (!body.success) throw refused('Send { id, messages } as the AI SDK does.')
  const { id: chatId } = body.data
  // The input types of the tools are checked when they run.
  const checked = await safeValidateUIMessages({
    messages: body.data.messages,
    tools: tools as NonNullable<Parameters<typeof safeValidateUIMessages>[0]['tools']>,
  })
  if (!checked.success) throw refused('The messages are not those of the AI SDK.')
  const messages = checked.data
  if (messages.some(({ parts }) => parts.some(isForeignFile))) {
    throw refused('Send files whole, as data: URLs.')
  }
  return { chatId, messages }
}

// The AI SDK downloads files from any URL that the client sends.
function isForeignFile(part: UIMessage['parts'][number]): boolean {
  return part.type === 'file' && !part.url.startsWith('data:')
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch (cause) {
    throw new ProtocolError('malformed-json', { cause })
  }
}

function refused(message: string): ProtocolError {
  return new ProtocolError('bad-request', { message })
}

/**
 * Marks calls that were denied with a reason. The AI SDK's Gemini provider (3.0) sends the reason as the result, and a model cannot
 * distinguish “not this month” from a tool's result.
 */
function markDenials(messages: readonly UIMessage[]): UIMessage[] {
  return messages.map((message) => ({ ...message, parts: message.parts.map(markDenial) }))
}

type Part = UIMessage['parts'][number]

function markDenial(part: Part): Part {
  if (!isToolUIPart(part) || part.approval?.approved !== false) return part
  const { approval } = part
  if (approval.reason === undefined) return part
  const reason = JSON.stringify({ status: 'denied', error: DENIED, reason: approval.reason })
  // The cast is safe, because the state of the part does not change.
  return { ...part, approval: { ...approval, reason } } as Part
}

// The same message as the bridge sends.
const DENIED = 'The person denied this call. It did not run.'
