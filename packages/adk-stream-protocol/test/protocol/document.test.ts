import { readFileSync } from 'node:fs'
import { FunctionTool } from '@google/adk'
import { Modality } from '@google/genai'
import type { Responder } from 'gemini-emulator'
import { expect, test } from 'vitest'
import { z } from 'zod'

import { EventNotes } from '../../src/agent/events/event-notes.ts'
import { ERROR_CODES } from '../../src/protocol/error-codes.ts'
import { ProtocolError } from '../../src/protocol/errors.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { assistant } from '../support/agents.ts'
import { serve, type TestServer } from '../support/serve.ts'
import type { WireChunk } from '../support/wire-rules.ts'

const PROTOCOL = readFileSync(new URL('../../../../PROTOCOL.md', import.meta.url), 'utf8')

test('[ST1003] the table of the notes on events has every key', () => {
  const store = readFileSync(new URL('../../../../docs/spec/store.md', import.meta.url), 'utf8')
  const table = /\*\*ST1003\*\*[^]*?\n## /.exec(store)?.[0] ?? ''
  const cells = [...table.matchAll(/^\| (`.*?) \|/gm)].map(([, cell = '']) => cell)
  const keys = cells.flatMap((cell) => cell.replaceAll(/[` ]/g, '').split(','))
  expect(keys.toSorted()).toEqual(Object.keys(EventNotes.shape).toSorted())
})

/** Ids that PROTOCOL.md shows in place of random ones. */
const SHOWN_ID = /^(?:message|call|approval)-\d$/
/** Numbers that differ between two runs. */
const VARYING = new Set(['at', 'deadline', 'inputTokens', 'outputTokens', 'totalTokens'])

test('[SS1] the example of a message over SSE is what the server sends', async () => {
  await using server = await open()
  const { shown, sent } = await replayHttp(server, 'A message over SSE')
  expect(shown).toHaveLength(1)
  expect(sent).toEqual(shown)
})

test('[AP3] the example of an approval over SSE is what the server sends', async () => {
  await using server = await open()
  const { shown, sent } = await replayHttp(server, 'An approval over SSE')
  expect(shown).toHaveLength(2)
  expect(sent).toEqual(shown)
})

test('[WS7] the example of an approval over the socket is what the server sends', async () => {
  await using server = await open({ live: true })
  const { shown, sent } = await replaySocket(server, 'An approval over the socket')
  expect(shown.length).toBeGreaterThan(10)
  expect(sent).toEqual(shown)
})

test('[ER1] PROTOCOL.md lists every error code, with its status', () => {
  const [list = ''] = PROTOCOL.split('\n## Errors\n')[1]?.split('- **ER1**') ?? []
  const listed = new Map<string, string>()
  for (const line of list.split('\n')) {
    const [, label = ''] = /^- \*\*(.+?)\*\*: /.exec(line) ?? []
    const codes = line.matchAll(/`([a-z-]+)` \((?:(\d{3}),)?/g)
    for (const [, code = '', status = label] of codes) listed.set(code, status)
  }
  expect([...listed.keys()].toSorted()).toEqual(ERROR_CODES.toSorted())
  // An error in the stream or in a frame has no response with a status.
  const withStatus = ERROR_CODES.filter((code) => !listed.get(code)?.startsWith('In '))
  expect(withStatus.map((code) => listed.get(code))).toEqual(
    withStatus.map((code) => String(new ProtocolError(code).status)),
  )
})

/** What PROTOCOL.md shows, and what the server sent, with the ids that are shown. */
interface Replay {
  readonly shown: unknown[]
  readonly sent: unknown[]
}

/** Sends the requests of an example. */
async function replayHttp(server: TestServer, title: string): Promise<Replay> {
  const ids = new Map<string, string>()
  const browser = server.browser()
  const blocks = readExample(title)
  const replay: Replay = { shown: [], sent: [] }
  for (let index = 0; index < blocks.length; index += 2) {
    const [request, response] = [readHttp(blocks[index]), readHttp(blocks[index + 1])]
    const [, path = ''] = request.start.split(' ')
    const given = await browser.post(path, fill(JSON.parse(request.body.join('')), ids))
    const shown = { ...response, body: readChunks(response.body) }
    const sent = {
      start: `HTTP/1.1 ${given.status} ${given.statusText}`,
      headers: response.headers.map(([name]) => [name, given.headers.get(name)]),
      body: readChunks((await given.text()).trim().split('\n\n')),
    }
    replay.shown.push(shown)
    replay.sent.push(show(sent, shown, ids))
  }
  return replay
}

/** Sends the frames of an example, each when the frames shown before it have arrived. */
async function replaySocket(server: TestServer, title: string): Promise<Replay> {
  const ids = new Map<string, string>()
  // `decided` may arrive before or after a chunk, so frames are compared request by request.
  const places = new Map<string, number>()
  await using client = await SocketClient.open(server.url)
  const [block = ''] = readExample(title)
  const replay: Replay = { shown: [], sent: [] }
  for (const line of block.trim().split('\n')) {
    const frame = JSON.parse(line.slice(2)) as { readonly requestId: string }
    if (line.startsWith('→')) client.send(fill(frame, ids))
    else {
      const place = places.get(frame.requestId) ?? 0
      places.set(frame.requestId, place + 1)
      await client.next(() => client.of(frame.requestId).length > place)
      replay.shown.push(frame)
      replay.sent.push(show(client.of(frame.requestId)[place], frame, ids))
    }
  }
  return replay
}

/** The fenced blocks under a heading of PROTOCOL.md. */
function readExample(title: string): string[] {
  const section = PROTOCOL.split(`\n### ${title}\n`)[1]?.split(/\n##+ /)[0] ?? ''
  return [...section.matchAll(/^```\w+\n([\s\S]*?)^```$/gm)].map(([, text = '']) => text)
}

function readHttp(block = '') {
  const [head = '', body = ''] = block.split('\n\n')
  const [start = '', ...headers] = head.split('\n')
  return {
    start,
    headers: headers.map((header) => header.split(': ', 2) as [string, string]),
    body: body.trim().split('\n'),
  }
}

/** The chunks of a stream that ends with `[DONE]`. Adjacent deltas are joined, as a slow reader may receive them (TU1). */
function readChunks(lines: readonly string[]): WireChunk[] {
  const chunks: WireChunk[] = []
  if (lines.at(-1) !== 'data: [DONE]') throw new Error('The stream does not end with [DONE].')
  for (const line of lines.slice(0, -1)) {
    const chunk = JSON.parse(line.slice('data: '.length)) as WireChunk
    const last = chunks.at(-1)
    if (last?.type === 'text-delta' && chunk.type === 'text-delta')
      chunks[chunks.length - 1] = {
        ...last,
        delta: `${String(last['delta'])}${String(chunk['delta'])}`,
      }
    else chunks.push(chunk)
  }
  return chunks
}

/** The given value with the ids that are shown; an id that is shown for the first time is remembered. */
function show(given: unknown, shown: unknown, ids: Map<string, string>, key = ''): unknown {
  if (typeof given === 'number' && VARYING.has(key)) return shown
  if (typeof given === 'string' && typeof shown === 'string' && SHOWN_ID.test(shown)) {
    if (!ids.has(shown)) ids.set(shown, given)
    return ids.get(shown) === given ? shown : given
  }
  if (Array.isArray(given) && Array.isArray(shown))
    return given.map((item, index) => show(item, shown[index], ids))
  if (!isRecord(given) || !isRecord(shown)) return given
  return mapValues(given, (value, name) => show(value, shown[name], ids, name))
}

/** The shown value with the ids of this run. */
function fill(shown: unknown, ids: ReadonlyMap<string, string>): object {
  return JSON.parse(
    JSON.stringify(shown, (_key, value: unknown) =>
      typeof value === 'string' ? (ids.get(value) ?? value) : value,
    ),
  ) as object
}

function mapValues(value: Record<string, unknown>, map: (item: unknown, name: string) => unknown) {
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, map(item, name)]))
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const pay = new FunctionTool({
  name: 'process_payment',
  description: 'Pays a person.',
  parameters: z.object({ amount: z.number(), recipient: z.string() }),
  requireConfirmation: true,
  execute: ({ amount }) => ({ success: true, balance: 1_000 - amount }),
})

const respond: Responder = ({ contents }) => {
  const parts = contents.at(-1)?.parts ?? []
  if (parts.some(({ functionResponse }) => functionResponse))
    return [{ type: 'say', text: 'Paid.' }]
  if (!parts.some(({ text }) => text?.startsWith('Pay')))
    return [{ type: 'say', text: 'Hello, Hanako.' }]
  return [{ type: 'call', name: 'process_payment', args: { amount: 50, recipient: 'Alice' } }]
}

function open({ live = false } = {}): Promise<TestServer> {
  const runConfig = { responseModalities: [Modality.TEXT] }
  return serve({
    respond,
    agent: (model) => assistant(model, { tools: [pay] }),
    authenticate: () => ({ id: 'hanako' }),
    ...(live && { live: (model) => ({ model, runConfig }) }),
  })
}
