import { once } from 'node:events'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { produced } from '../script.ts'

/** A request of the measuring process for figures. With `collect`, garbage is collected first. */
export interface ReadRequest {
  readonly collect: boolean
}

/** The figures of a server process. */
export interface Reading {
  readonly cpuMs: number
  readonly heapBytes: number
  /** Tokens that the models have produced. */
  readonly tokens: number
  /** The number of ended model calls, and when the last one ended, by `monotonicMs`. */
  readonly ended: number
  readonly lastEndMs: number
}

export type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>

/** Serves one row of the table. Sends its port to the parent process, then a reading for each request. */
export async function serve(handler: Handler): Promise<void> {
  const server = createServer((request, response) => {
    // A handler rejects when its client has disconnected.
    handler(request, response).catch(() => response.destroy())
  }).listen(0, '127.0.0.1')
  // Connections are idle while other rows are measured. A connection closed meanwhile would fail the next request.
  server.keepAliveTimeout = 0
  await once(server, 'listening')
  process.on('message', (request: ReadRequest) => {
    if (request.collect) collect()
    process.send?.(readFigures())
  })
  // The measuring process has ended.
  process.on('disconnect', () => process.exit())
  // A server that listens on a port has such an address.
  process.send?.((server.address() as AddressInfo).port)
}

/** The used fields of the body that an AI SDK client posts. */
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

/** Returns the SSE frame of a text delta. It is the same in every row. */
export function deltaFrame(delta: string): string {
  return `data: {"type":"text-delta","id":"text-1","delta":${JSON.stringify(delta)}}\n\n`
}

function readFigures(): Reading {
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
