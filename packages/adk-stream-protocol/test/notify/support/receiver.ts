import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'

import { Webhook } from 'standardwebhooks'

/** A request as the receiver of a webhook read it. */
interface Received {
  readonly id: string
  readonly type: string
  readonly data: Readonly<Record<string, unknown>>
  readonly headers: IncomingHttpHeaders
}

/** What a receiver answers: a status, or undefined to close the connection without an answer. */
type AnswerWith = (received: Received, number: number) => Answer | undefined

interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
}

export const SECRET = `whsec_${Buffer.from('a secret of more than 24 bytes').toString('base64')}`

/**
 * Starts a receiver of webhooks. It checks each signature and its time with the library of Standard Webhooks. `now` is its clock, if it is
 * not the one of this process.
 */
export async function startReceiver(
  answer: AnswerWith = () => ({ status: 204 }),
  secret: string = SECRET,
  now?: () => number,
) {
  const received: Received[] = []
  const server = createServer((request, response) => {
    void (async () => {
      const text = await new Response(request as unknown as ReadableStream).text()
      const verify = (): unknown =>
        new Webhook(secret).verify(text, {
          'webhook-id': String(request.headers['webhook-id']),
          'webhook-timestamp': String(request.headers['webhook-timestamp']),
          'webhook-signature': String(request.headers['webhook-signature']),
        })
      const { type, data } = (now ? withClock(now, verify) : verify()) as Received
      const { headers } = request
      const one = { id: String(headers['webhook-id']), type, data, headers }
      received.push(one)
      const { status, headers: given } = answer(one, received.length) ?? {}
      if (status === undefined) request.socket.destroy()
      else response.writeHead(status, given).end()
    })().catch(() => response.writeHead(401).end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    received,
    types: () => received.map(({ type }) => type),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** Runs a function that returns at once, with another clock. */
function withClock<Result>(now: () => number, run: () => Result): Result {
  const own = Date.now
  Date.now = now
  try {
    return run()
  } finally {
    Date.now = own
  }
}
