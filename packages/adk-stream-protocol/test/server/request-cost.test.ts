import { describe, expect, test } from 'vitest'

import { readBidiEvent } from '../../src/server/dialects/python-clients/bidi-events.ts'
import { readClientFrame } from '../../src/protocol/client-frame.ts'
import { ProtocolError } from '../../src/protocol/errors.ts'
import { parseJson } from '../../src/protocol/client-input.ts'
import { readStreamRequest } from '../../src/protocol/stream-request.ts'
import { DEFAULT_LIMITS } from '../../src/server/settings/limits.ts'
import { BidiClient } from '../bidi/support/bidi-client.ts'
import { SocketClient } from '../sockets/support/socket-client.ts'
import { serve } from '../support/serve.ts'

const BYTES = DEFAULT_LIMITS.maxBodyBytes
const text = { type: 'text', text: 'h' }
const responded = {
  type: 'tool-pay',
  state: 'approval-responded',
  approval: { id: 'a', approved: true },
}

/** As many copies as fit into a body, or this number. */
function copies<Value>(value: Value, count = Number.MAX_SAFE_INTEGER): Value[] {
  const fit = Math.floor((BYTES - 1_000) / (JSON.stringify(value).length + 1))
  return Array.from({ length: Math.min(count, fit) }, () => value)
}

const assistant = (parts: unknown): object => ({
  id: 'c',
  messages: [{ id: 'm', role: 'assistant', parts }],
})

function codeOf(act: () => unknown): string {
  try {
    act()
    return 'taken'
  } catch (error) {
    if (error instanceof ProtocolError) return error.code
    throw error
  }
}

const PARTS = (parts: string): string => `[{"id":"m","role":"user","parts":[${parts}]}]`
const MANY = 250_001

describe('a body', () => {
  test.each<readonly [string, string]>([
    ['decisions', PARTS(`${JSON.stringify(responded)},`.repeat(MANY / 5))],
    ['parts', PARTS('{"type":"text"},'.repeat(MANY / 2))],
    ['parts that are none', PARTS('0,'.repeat(MANY))],
    ['messages', `[${'0,'.repeat(MANY)}0]`],
    ['lists in lists', PARTS('[[[[[]]]]],'.repeat(MANY / 6))],
    ['keys', PARTS(`{"type":"text",${'"key":0,'.repeat(MANY)}"x":0}`)],
  ])(
    '[RQ130] with too many %s is rejected before it is parsed, over every transport',
    (_name, json) => {
      // None of these bodies is complete JSON, and each is rejected before that is noticed.
      const bytes = (before: string): Uint8Array =>
        new TextEncoder().encode(`{${before}"id":"c","messages":${json}`)
      expect(codeOf(() => parseJson(bytes('')))).toBe('too-large')
      // A client that waits for its request receives the error.
      expect(readClientFrame(bytes('"type":"send","requestId":"r1",'))).toMatchObject({
        fault: { code: 'too-large', requestId: 'r1' },
      })
      expect(readBidiEvent(bytes('"type":"message",'))).toMatchObject({
        fault: { code: 'too-large' },
      })
    },
  )
})

test('[RQ130] a history of 8 MiB is read', () => {
  const part = { type: 'text', text: 'a sentence of an answer '.repeat(8) }
  const history = copies({ id: 'm', role: 'assistant', parts: copies(part, 40) }, 900)
  const body = { id: 'c', messages: [...history, { id: 'u', role: 'user', parts: [text] }] }
  const bytes = new TextEncoder().encode(JSON.stringify(body))
  expect(bytes.length).toBeGreaterThan(0.9 * BYTES)
  expect(readStreamRequest(parseJson(bytes), DEFAULT_LIMITS)).toMatchObject({ type: 'message' })
})

/** A part that counts how often its response is read. */
function counting(part: object): { part: object; reads: () => number } {
  let reads = 0
  const look = <Value>(value: Value): Value => {
    reads += 1
    return value
  }
  const watched = Object.defineProperties(
    { ...part },
    {
      approval: { get: () => look({ id: 'a', approved: true }), enumerable: true },
      result: { get: () => look({ confirmed: true }), enumerable: true },
      output: { get: () => look({ confirmed: true }), enumerable: true },
    },
  )
  return { part: watched, reads: () => reads }
}

describe('responses', () => {
  test.each([
    ['decisions', 'assistant', { type: 'tool-pay', state: 'approval-responded' }],
    ['results', 'user', { type: 'tool-result', toolCallId: 'a' }],
    [
      'confirmations',
      'assistant',
      { type: 'tool-adk_request_confirmation', toolCallId: 'a', state: 'output-available' },
    ],
  ])('[RQ131] too many %s are rejected before any of them is read', (_name, role, given) => {
    const { part, reads } = counting(given)
    const parts = Array.from({ length: 98_665 }, () => part)
    const read = (): unknown =>
      readStreamRequest({ id: 'c', messages: [{ id: 'm', role, parts }] }, DEFAULT_LIMITS)
    expect(read).toThrow('The request contains more than 256 responses. Send fewer at once.')
    expect(reads()).toBe(0)
  })

  test('[RQ131] of the ended calls only the newest are read, because clients send all calls of a message', () => {
    const { part, reads } = counting({ type: 'tool-look', toolCallId: 'a', state: 'output-error' })
    const ended = { ...part, errorText: 'no' }
    const parts = Array.from({ length: 98_665 }, () => part)
    const request = readStreamRequest(assistant([...parts, ended]), DEFAULT_LIMITS)
    expect(request).toMatchObject({ type: 'responses', outputs: [{ toolCallId: 'a' }] })
    // zod may read a part twice. It must not read parts that are ignored.
    expect(reads()).toBeLessThan(4 * DEFAULT_LIMITS.maxResponses)
  })

  test('[RQ131] edited arguments count as responses', () => {
    const edits = Object.fromEntries(Array.from({ length: 257 }, (_, index) => [`a${index}`, {}]))
    const body = { ...assistant([responded]), edits }
    expect(codeOf(() => readStreamRequest(body, DEFAULT_LIMITS))).toBe('bad-request')
  })

  test('[RQ131] they are rejected in the same way over HTTP, a socket and text frames', async () => {
    await using server = await serve({ authenticate: () => ({ id: 'hanako' }) })
    const body = { ...assistant(copies(responded, 257)), id: 'c' }
    const response = await server.browser().post('/stream', body)
    expect(response.status).toBe(400)
    expect(await response.text()).toContain('more than 256 responses')
    await using socket = await SocketClient.open(server.url)
    socket.send({ type: 'send', requestId: 'r1', ...body })
    expect(await socket.nextOf('error', 'r1')).toMatchObject({ code: 'bad-request' })
    await using frames = await BidiClient.open(server.url)
    const result = { type: 'tool-result', toolCallId: 'a', result: { confirmed: true } }
    frames.send({ type: 'message', messages: [{ role: 'user', content: copies(result, 257) }] })
    await frames.untilDone()
    expect(frames.ofType('error')).toMatchObject([
      { errorText: expect.stringContaining('more than 256 responses') as unknown },
    ])
  })
})
