import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import { z } from 'zod'

/** Tells how often the tool has run. Each check has a key of its own, which the prompt carries to the tool. */
export interface ExecutionCounter extends AsyncDisposable {
  /** How the executions are observed, for the report. */
  readonly description: string
  /** Replaces the placeholders of a prompt. */
  fill(prompt: string, key: string): string
  /** Undefined if this counter observes nothing, so only the results that a client shows are counted. */
  count(key: string): Promise<number | undefined>
}

export interface CounterOptions {
  readonly prompt: string
  /** A URL that returns the number of executions, with `{key}`. */
  readonly countUrl: string | undefined
  /** The host under which the backend reaches this process. */
  readonly host: string
  readonly headers: Readonly<Record<string, string>>
}

/**
 * Opens the counter: the application's own URL, a URL of this process that the tool posts to (`{counter}` in the prompt), or none. The
 * third one sees the results in the streams only.
 */
export async function openCounter(options: CounterOptions): Promise<ExecutionCounter> {
  if (options.countUrl !== undefined) return askUrl(options.countUrl, options.headers)
  if (options.prompt.includes(COUNTER)) return listenForPosts(options.host)
  return {
    description: 'the results that the client shows (no --count and no {counter})',
    fill: fillKey,
    count: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  }
}

const COUNTER = '{counter}'

function fillKey(prompt: string, key: string): string {
  return prompt.replaceAll('{key}', key)
}

const Count = z.union([z.number(), z.object({ count: z.number() }).transform(({ count }) => count)])

function askUrl(url: string, headers: CounterOptions['headers']): ExecutionCounter {
  return {
    description: `GET ${url}`,
    fill: fillKey,
    async count(key) {
      const response = await fetch(fillKey(url, encodeURIComponent(key)), { headers })
      const read = Count.safeParse(await response.json().catch(() => undefined))
      if (!response.ok || !read.success)
        throw new TypeError(
          `${url} must return a number, or { "count": number }. It returned ${response.status}.`,
        )
      return read.data
    },
    [Symbol.asyncDispose]: async () => undefined,
  }
}

async function listenForPosts(host: string): Promise<ExecutionCounter> {
  const counts = new Map<string, number>()
  const server = createServer((request, response) => {
    const key = decodeURIComponent((request.url ?? '').slice(1))
    const count = counts.get(key) ?? 0
    if (request.method === 'POST') counts.set(key, count + 1)
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ count: counts.get(key) ?? 0 }))
  })
  server.listen(0)
  await once(server, 'listening')
  // A server that listens on a port has an address with one.
  const { port } = server.address() as AddressInfo
  const origin = `http://${host}:${port}`
  return {
    description: `a POST of the tool to ${origin}/<key>`,
    fill: (prompt, key) =>
      fillKey(prompt.replaceAll(COUNTER, `${origin}/${encodeURIComponent(key)}`), key),
    count: async (key) => counts.get(key) ?? 0,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
