import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

/** A call of Slack's Web API. */
interface SlackCall {
  readonly method: string
  readonly body: Readonly<Record<string, unknown>>
}

/** Starts a server with the methods of Slack's Web API that cards need. `answer` replaces its response to a call. */
export async function startSlack(
  answer: (
    call: SlackCall,
  ) => { status: number; headers?: Record<string, string> } | undefined = () => undefined,
) {
  const calls: SlackCall[] = []
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
      calls.push(call)
      const known = request.headers.authorization === 'Bearer xoxb-test'
      const ok = known ? { ok: true } : { ok: false, error: 'invalid_auth' }
      const posted = { ...ok, channel: call.body['channel'], ts: `17.${calls.length}` }
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(posted))
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    calls,
    methods: () => calls.map(({ method }) => method),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
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
