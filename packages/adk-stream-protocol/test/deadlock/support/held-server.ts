import { once } from 'node:events'
import type { ServerResponse } from 'node:http'
import { createServer } from 'node:http'

import { listen } from '../../../../../test/support/listen.ts'
import { SSE_DONE, SSE_HEADERS, sseFrame } from '../../../src/protocol/sse.ts'

/** What the earlier server sent before it waited: a tool that blocks, and no end of the stream. */
const QUESTION = [
  { type: 'start', messageId: 'm1' },
  { type: 'start-step' },
  { type: 'tool-input-start', toolCallId: 'c1', toolName: 'process_payment' },
  {
    type: 'tool-input-available',
    toolCallId: 'c1',
    toolName: 'process_payment',
    input: { amount: 50 },
  },
  { type: 'tool-approval-request', toolCallId: 'c1', approvalId: 'a1' },
]

const GIVEN_UP = [{ type: 'finish-step' }, { type: 'finish', finishReason: 'stop' }]

const TIMED_OUT = { type: 'tool-output-error', toolCallId: 'c1', errorText: 'Timed out.' }

function toBody(chunks: readonly object[]): string {
  return [...chunks.map((chunk) => sseFrame(JSON.stringify(chunk))), SSE_DONE].join('')
}

export interface HeldServer extends AsyncDisposable {
  readonly url: string
  /** The number of requests. */
  readonly requests: () => number
  /** Ends the stream without a decision, as a tool does that has waited long enough. */
  readonly endStreams: () => void
}

/** A server that keeps its stream open until the approval is decided, as the earlier one did. */
export async function holdStreams(note: (what: string) => void): Promise<HeldServer> {
  const open: ServerResponse[] = []
  let requests = 0
  const server = createServer((request, response) => {
    request.resume()
    requests += 1
    note(`request ${requests}`)
    response.writeHead(200, SSE_HEADERS)
    if (requests > 1) {
      response.end(toBody([{ type: 'start', messageId: 'm1' }, TIMED_OUT, ...GIVEN_UP]))
      return
    }
    open.push(response)
    for (const chunk of QUESTION) response.write(sseFrame(JSON.stringify(chunk)))
  })
  const port = await listen(server)
  return {
    url: `http://127.0.0.1:${port}/stream`,
    requests: () => requests,
    endStreams: () => {
      note('server gives up')
      for (const response of open.splice(0)) response.end(toBody(GIVEN_UP))
    },
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
      await once(server, 'close')
    },
  }
}
