import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { produced } from '../script.ts'

/** What the measuring process asks a server for; with `collect`, garbage is collected first. */
export interface Question {
  readonly collect: boolean
}

/** What a server knows of itself. */
export interface Reading {
  readonly cpuMs: number
  readonly heapBytes: number
  /** Tokens that its models produced. */
  readonly tokens: number
  /** Models that have ended, and when the last one did, by the clock of the machine. */
  readonly ended: number
  readonly lastEndMs: number
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** Serves one row of the table: tells its port to the process that started it, then answers its questions. */
export async function serve(answer: Answer): Promise<void> {
  const server = createServer((request, response) => {
    // An answer fails when its client has left; there is nobody to tell.
    answer(request, response).catch(() => response.destroy())
  }).listen(0, '127.0.0.1')
  // Browsers wait while other rows are measured; a connection closed meanwhile would break their next request.
  server.keepAliveTimeout = 0
  await once(server, 'listening')
  process.on('message', (question: Question) => {
    if (question.collect) collect()
    process.send?.(readSelf())
  })
  // The run is over, or has failed: nobody needs this server any more.
  process.on('disconnect', () => process.exit())
  // A server that listens on a port has such an address.
  process.send?.((server.address() as AddressInfo).port)
}

/** What an AI SDK client posts, as far as the rows need it. */
export interface ChatBody {
  readonly id: string
  readonly messages: { id: string; role: 'user'; parts: { type: 'text'; text: string }[] }[]
}

export async function readChatBody(request: IncomingMessage): Promise<ChatBody> {
  let text = ''
  request.setEncoding('utf8')
  for await (const piece of request) text += String(piece)
  // Posted by the load generator of the same run.
  return JSON.parse(text) as ChatBody
}

export function newestText({ messages }: ChatBody): string {
  return messages.at(-1)?.parts[0]?.text ?? ''
}

export const SSE_HEADERS = {
  'content-type': 'text/event-stream',
  'cache-control': 'no-cache',
  'x-vercel-ai-ui-message-stream': 'v1',
  'x-accel-buffering': 'no',
}

/** The bytes of one text delta, the same in every row. */
export function deltaFrame(delta: string): string {
  return `data: {"type":"text-delta","id":"text-1","delta":${JSON.stringify(delta)}}\n\n`
}

function readSelf(): Reading {
  const { user, system } = process.cpuUsage()
  return {
    cpuMs: (user + system) / 1_000,
    heapBytes: process.memoryUsage().heapUsed,
    ...produced,
  }
}

function collect(): void {
  if (!globalThis.gc) throw new Error('Start the server with --expose-gc.')
  globalThis.gc()
  globalThis.gc()
}
