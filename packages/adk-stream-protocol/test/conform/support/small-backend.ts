import type { IncomingMessage } from 'node:http'
import { createServer } from 'node:http'

import { listen } from '../../../../../test/support/listen.ts'
import { readRunInput, toRunEvents } from './ag-ui-backend.ts'

/** What is wrong with a backend. */
export type Fault =
  | 'none'
  | 'runs twice'
  | 'runs without asking'
  | 'ignores a denial'
  | 'forgets what it has decided'
  | 'trusts the arguments of the client'
  | 'trusts the history of the client'
  | 'answers anybody'
  | 'breaks the order of chunks'
  | 'fails after an answer'

interface Asked {
  readonly approvalId: string
  readonly key: string
  readonly person: string
  isDecided: boolean
}

export interface Body {
  readonly id?: unknown
  readonly messages?: unknown
}

/** A chunk of the AI SDK's stream. */
export interface Chunk {
  readonly type: string
  readonly toolCallId?: string
  readonly [key: string]: unknown
}

export interface Part {
  readonly type: string
  readonly state?: string
  readonly text?: string
  readonly toolCallId?: string
  readonly input?: { readonly key?: string }
  readonly approval?: { readonly approved?: boolean }
}

/** A backend for `useChat`, and for AG-UI at `/ag-ui`, which knows nothing of this library. A prompt with `pay <key>` asks for approval. */
export async function openSmallBackend(fault: Fault) {
  const asked = new Map<string, Asked>()
  const counts = new Map<string, number>()
  const pay = (key: string): void => void counts.set(key, (counts.get(key) ?? 0) + 1)

  const answer = (body: Body, person: string): Chunk[] | number => {
    const last = Array.isArray(body.messages) ? (body.messages as { parts?: Part[] }[]).at(-1) : 0
    if (!last || !last.parts || typeof body.id !== 'string') return 400
    const text = last.parts.map((part) => part.text ?? '').join('')
    const key = /pay (\S+)/.exec(text)?.[1]
    const decided = last.parts.filter(({ state }) => state === 'approval-responded')
    if (decided.length > 0) return decided.flatMap((part) => decide(part, person))
    if (key === undefined) return say('Hello.')
    return ask(key, person)
  }

  const ask = (key: string, person: string): Chunk[] => {
    const toolCallId = crypto.randomUUID()
    const approvalId = crypto.randomUUID()
    asked.set(toolCallId, { approvalId, key, person, isDecided: false })
    if (fault === 'runs without asking') pay(key)
    const call = { toolCallId, toolName: 'pay', input: { key } }
    const request = { type: 'tool-approval-request', approvalId, toolCallId }
    const shown = { type: 'tool-input-available', ...call }
    const chunks = fault === 'breaks the order of chunks' ? [request, shown] : [shown, request]
    return [{ type: 'start' }, { type: 'start-step' }, ...chunks, ...END]
  }

  const decide = ({ toolCallId = '', input, approval }: Part, person: string): Chunk[] => {
    const known = asked.get(toolCallId)
    if (!known && fault === 'trusts the history of the client') pay(input?.key ?? '')
    if (!known) return say('I do not know this call.')
    const isForeign = known.person !== person && fault !== 'answers anybody'
    const isOver = known.isDecided && fault !== 'forgets what it has decided'
    if (isForeign || isOver) return say('There is nothing to decide.')
    known.isDecided = true
    const isApproved = approval?.approved === true || fault === 'ignores a denial'
    const given = fault === 'trusts the arguments of the client' ? input?.key : undefined
    if (isApproved) pay(given ?? known.key)
    if (isApproved && fault === 'runs twice') pay(known.key)
    if (fault === 'fails after an answer') return [{ type: 'error', errorText: 'Something.' }]
    const result = isApproved
      ? { type: 'tool-output-available', toolCallId, output: { paid: true } }
      : { type: 'tool-output-denied', toolCallId }
    return [{ type: 'start' }, result, ...say('Done.').slice(1)]
  }

  const server = createServer((request, response) => {
    const url = new URL(request.url ?? '/', 'http://localhost')
    if (url.pathname === '/count') {
      response.end(JSON.stringify(counts.get(url.searchParams.get('key') ?? '') ?? 0))
      return
    }
    void readJson(request).then((body) => {
      const isAgUi = url.pathname === '/ag-ui'
      const read = isAgUi ? readRunInput(body) : body
      const answered = read ? answer(read, String(request.headers['x-person'])) : 400
      if (typeof answered === 'number') return response.writeHead(answered).end()
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      const events = isAgUi ? toRunEvents(answered, body) : answered
      const frames = events.map((event) => `data: ${JSON.stringify(event)}\n\n`)
      return response.end(`${frames.join('')}${isAgUi ? '' : 'data: [DONE]\n\n'}`)
    })
  })
  const url = `http://127.0.0.1:${await listen(server)}`
  return {
    url,
    async [Symbol.asyncDispose]() {
      server.close()
      server.closeAllConnections()
    },
  }
}

const END = [{ type: 'finish-step' }, { type: 'finish' }]

function say(text: string): Chunk[] {
  const id = 'text-1'
  return [
    { type: 'start' },
    { type: 'start-step' },
    { type: 'text-start', id },
    { type: 'text-delta', id, delta: text },
    { type: 'text-end', id },
    ...END,
  ]
}

async function readJson(request: IncomingMessage): Promise<unknown> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  try {
    return JSON.parse(Buffer.concat(pieces).toString())
  } catch {
    return undefined
  }
}
