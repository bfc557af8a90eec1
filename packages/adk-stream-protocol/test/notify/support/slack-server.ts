import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

import type { WebSocket } from 'ws'
import { WebSocketServer } from 'ws'

/** A call of Slack's Web API. */
interface SlackCall {
  readonly method: string
  readonly body: Readonly<Record<string, unknown>>
}

/** The token of the app for Socket Mode. */
export const APP_TOKEN = 'xapp-test'

/**
 * Starts a server with the methods of Slack's Web API that cards need, and with Socket Mode. `answer` replaces its response to a call. `sockets`
 * has each socket that a client opened, with the ids of the envelopes that it acknowledged.
 */
export async function startSlack(
  answer: (
    call: SlackCall,
  ) => { status: number; headers?: Record<string, string> } | undefined = () => undefined,
) {
  const calls: SlackCall[] = []
  const sockets: SlackSocket[] = []
  let tickets = 0
  const server = createServer((request, response) => {
    void (async () => {
      const text = await new Response(request as unknown as ReadableStream).text()
      const call = {
        method: String(request.url).slice(1),
        body: JSON.parse(text) as SlackCall['body'],
      }
      const given = answer(call)
      if (given) {
        response.writeHead(given.status, given.headers).end()
        return
      }
      const { authorization } = request.headers
      if (call.method === 'apps.connections.open') {
        const isApp = authorization === `Bearer ${APP_TOKEN}`
        tickets += 1
        const { port } = server.address() as AddressInfo
        const url = `ws://127.0.0.1:${port}/link?ticket=${tickets}`
        const opened = isApp ? { ok: true, url } : { ok: false, error: 'invalid_auth' }
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(opened))
        return
      }
      calls.push(call)
      const known = authorization === 'Bearer xoxb-test'
      const ok = known ? { ok: true } : { ok: false, error: 'invalid_auth' }
      const posted = { ...ok, channel: call.body['channel'], ts: `17.${calls.length}` }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(posted))
    })()
  })
  new WebSocketServer({ server }).on('connection', (socket) => {
    const acknowledged: string[] = []
    socket.on('message', (data) => {
      const { envelope_id } = JSON.parse(String(data)) as { readonly envelope_id: string }
      acknowledged.push(envelope_id)
    })
    sockets.push({
      acknowledged,
      socket,
      send: (message) => socket.send(JSON.stringify(message)),
    })
    socket.send(JSON.stringify({ type: 'hello', num_connections: sockets.length }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    calls,
    sockets,
    methods: () => calls.map(({ method }) => method),
    async [Symbol.asyncDispose]() {
      for (const { socket } of sockets) socket.terminate()
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A socket of Socket Mode. */
interface SlackSocket {
  readonly acknowledged: readonly string[]
  readonly socket: WebSocket
  readonly send: (message: unknown) => void
}

interface Signing {
  readonly secret?: string
  /** How long ago Slack has sent the request, in s. Default 0. */
  readonly ageS?: number
}

export const SIGNING_SECRET = '8f742231b10e8888abcd99yyyzzz85a5'

/** Signs a body as Slack does. */
export function signAsSlack(
  body: string,
  { secret = SIGNING_SECRET, ageS = 0 }: Signing = {},
): Record<string, string> {
  const timestamp = Math.floor(Date.now() / 1_000) - ageS
  const text = `v0:${timestamp}:${body}`
  return {
    'content-type': 'application/x-www-form-urlencoded',
    'x-slack-request-timestamp': String(timestamp),
    'x-slack-signature': `v0=${createHmac('sha256', secret).update(text).digest('hex')}`,
  }
}
