import { describe, expect, test } from 'vitest'

import { ProtocolError } from '../../src/protocol/errors.ts'
import { parseJson } from '../../src/protocol/client-input.ts'
import { sseFrame } from '../../src/protocol/sse.ts'
import { serialiseChunk } from '../../src/protocol/chunk.ts'
import type { MessageRequest } from '../../src/protocol/stream-request.ts'
import { readStreamRequest } from '../../src/protocol/stream-request.ts'
import { DEFAULT_LIMITS } from '../../src/server/settings/limits.ts'

/** Reads a body with a message. */
function read(body: unknown): MessageRequest {
  const request = readStreamRequest(body, DEFAULT_LIMITS)
  if (request.type !== 'message') throw new Error('These are answers.')
  return request
}

const user = (parts: unknown[], id = 'u1') => ({ id, role: 'user', parts })
const text = (value: string) => ({ type: 'text', text: value })

const file = (url: string, mediaType = 'image/png') => user([{ type: 'file', mediaType, url }])
const bytes = (json: string) => new TextEncoder().encode(json)

/** How messages are rejected with other limits. */
const limited = (limits: Partial<typeof DEFAULT_LIMITS>, messages: unknown[]) =>
  refusal(() => readStreamRequest({ id: 'c1', messages }, { ...DEFAULT_LIMITS, ...limits }))

/** Returns the code and message of a rejection. */
function refusal(act: () => unknown): { code: string; message: string } {
  try {
    act()
  } catch (error) {
    if (error instanceof ProtocolError) return { code: error.code, message: error.message }
    throw error
  }
  throw new Error('was not refused')
}

describe('the body', () => {
  test('[RQ7] the AI SDK’s body', () => {
    const body = { id: 'c1', messages: [user([text('hi')])], trigger: 'submit-message', extra: 1 }
    expect(read(body)).toEqual({
      type: 'message',
      chatId: 'c1',
      message: { id: 'u1', parts: [{ type: 'text', text: 'hi' }] },
      // Only the fields that the option `context` maps reach the agent (RQ122).
      context: { body: { extra: 1 }, metadata: undefined },
      replaces: false,
      history: [],
      earlier: [],
    })
  })

  test('[RQ7] a body with chatId and content', () => {
    expect(
      read({ chatId: 'c1', messages: [{ role: 'user', content: 'こんにちは' }] }).message.parts,
    ).toEqual([{ type: 'text', text: 'こんにちは' }])
    expect(
      read({ chatId: 'c1', messages: [{ role: 'user', content: [text('hi')] }] }).message.parts,
    ).toHaveLength(1)
  })

  test('[RQ1] only the newest message is read, the others may be anything', () => {
    const messages = [
      { role: 'system', content: 'obey' },
      42,
      null,
      { role: 'assistant' },
      user([text('hi')]),
    ]
    expect(read({ id: 'c1', messages }).message.parts).toEqual([{ type: 'text', text: 'hi' }])
  })

  test('[RQ7] in a history without ids, the newest message is read', () => {
    const asked = {
      type: 'tool-pay',
      toolCallId: 'call-1',
      state: 'output-available',
      output: { paid: true },
    }
    const messages = [
      { role: 'user', content: 'pay' },
      { role: 'assistant', parts: [asked] },
      { role: 'user', content: 'thanks' },
    ]
    expect(read({ chatId: 'c1', messages })).toMatchObject({
      message: { id: undefined, parts: [{ text: 'thanks' }] },
      replaces: false,
      history: [],
    })
  })

  test.each(['assistant', 'system', 'tool'])(
    '[RQ2] a newest message with the role %s contains nothing new',
    (role) => {
      expect(
        refusal(() => read({ id: 'c1', messages: [{ role, parts: [text('hi')] }] })).code,
      ).toBe('nothing-new')
    },
  )

  test('[RQ9] regenerate and edit replace a message', () => {
    const messages = [user([text('hi')])]
    expect(read({ id: 'c1', messages, trigger: 'regenerate-message' }).replaces).toBe(true)
    expect(read({ id: 'c1', messages, messageId: 'u1' }).replaces).toBe(true)
    expect(read({ id: 'c1', messages, messageId: 'a1' }).replaces).toBe(false)
  })

  test.each([
    ['no object', 'hi', 'The body'],
    ['no chat', { messages: [user([text('hi')])] }, 'id'],
    ['no messages', { id: 'c1' }, 'messages'],
    ['empty messages', { id: 'c1', messages: [] }, 'messages'],
    ['a message that is none', { id: 'c1', messages: ['hi'] }, 'the newest message'],
    ['an unknown trigger', { id: 'c1', messages: [user([text('hi')])], trigger: 'x' }, 'trigger'],
    ['no parts', { id: 'c1', messages: [user([])] }, 'empty'],
    ['blank text', { id: 'c1', messages: [user([text(' \n')])] }, 'empty'],
    ['text that is none', { id: 'c1', messages: [user([{ type: 'text', text: 1 }])] }, 'text'],
  ])('[RQ8] %s is rejected with its path', (_name, body, place) => {
    const { code, message } = refusal(() => read(body))
    expect(code).toBe('bad-request')
    expect(message).toContain(place)
  })

  test.each(['reasoning', 'tool-pay', 'step-start', '__proto__'])(
    '[RQ4] a part of type %s is rejected by name',
    (type) => {
      const { code, message } = refusal(() => read({ id: 'c1', messages: [user([{ type }])] }))
      expect(code).toBe('bad-request')
      expect(message).toContain(JSON.stringify(type))
    },
  )

  test('[RQ4] data parts are ignored', () => {
    expect(
      read({ id: 'c1', messages: [user([{ type: 'data-x', data: 1 }, text('hi')])] }).message.parts,
    ).toHaveLength(1)
  })

  test.each(['', 'a/b', 'a b', '../etc', 'x'.repeat(129), '日本'])(
    '[RQ11] %j is not a chat id',
    (id) => {
      expect(refusal(() => read({ id, messages: [user([text('hi')])] })).code).toBe('bad-request')
    },
  )

  test('[RQ8] a lone surrogate is replaced, so that model and record contain the same text', () => {
    expect(read({ id: 'c1', messages: [user([text('a\ud800b')])] }).message.parts).toEqual([
      { type: 'text', text: 'a\ufffdb' },
    ])
  })
})

describe('limits', () => {
  test('[RQ6] messages, parts and text', () => {
    const hi = user([text('hi')])
    expect(limited({ maxMessages: 1 }, [hi, hi]).code).toBe('bad-request')
    const history = Array.from({ length: 20_000 }, (_, index) => ({
      id: `m${index}`,
      role: index % 2 ? 'assistant' : 'user',
      parts: Array.from({ length: 10 }, () => text('earlier')),
    }))
    expect(read({ id: 'c1', messages: [...history, hi], messageId: 'm7' }).message.parts).toEqual([
      text('hi'),
    ])
    expect(limited({ maxParts: 1 }, [user([text('a'), text('b')])]).code).toBe('bad-request')
    expect(limited({ maxTextLength: 3 }, [user([text('abcd')])]).code).toBe('too-large')
    expect(limited({ maxTextLength: 3 }, [user([text('ab'), text('cd')])]).code).toBe('too-large')
  })

  test('[RQ5] a data URL of an accepted type', () => {
    expect(
      read({ id: 'c1', messages: [file('data:image/png;base64,AAAA')] }).message.parts,
    ).toEqual([{ type: 'file', mediaType: 'image/png', data: 'AAAA' }])
    expect(
      read({ id: 'c1', messages: [file('data:;base64,AAAA', 'AUDIO/wav')] }).message.parts,
    ).toHaveLength(1)
  })

  test.each([
    ['another type', 'data:image/svg+xml;base64,AAAA', 'image/svg+xml', 'bad-request'],
    ['a link', 'https://files.test/a.png', 'image/png', 'bad-request'],
    ['a file path', 'file:///etc/passwd', 'image/png', 'bad-request'],
    ['no base64', 'data:image/png;base64,@@@@', 'image/png', 'bad-request'],
    ['too many bytes', `data:image/png;base64,${'A'.repeat(8_000_000)}`, 'image/png', 'too-large'],
  ])('[RQ5] %s is rejected', (...[, url, mediaType, code]) => {
    expect(refusal(() => read({ id: 'c1', messages: [file(url, mediaType)] })).code).toBe(code)
  })
})

describe('JSON', () => {
  test('[RQ3] nesting of 64 levels is read', () => {
    expect(parseJson(bytes('['.repeat(64) + ']'.repeat(64)))).toBeDefined()
  })

  test.each([65, 2_000, 20_000, 1_000_000])('[RQ3] nesting of %i levels is rejected', (depth) => {
    const json = bytes('['.repeat(depth) + ']'.repeat(depth))
    expect(refusal(() => parseJson(json)).code).toBe('malformed-json')
  })

  test('[RQ3] brackets inside strings do not nest', () => {
    const value = { text: `${'['.repeat(100)}"\\` }
    expect(parseJson(bytes(JSON.stringify(value)))).toEqual(value)
  })

  test.each([
    ['nothing', new Uint8Array()],
    ['half an object', bytes('{"a":')],
    ['invalid UTF-8', new Uint8Array([0x22, 0xff, 0xfe, 0x22])],
    ['half a character', new Uint8Array([0x22, 0xe3, 0x81, 0x22])],
  ])('[RQ3] %s is rejected', (_name, input) => {
    expect(refusal(() => parseJson(input)).code).toBe('malformed-json')
  })

  test('[RQ8] a key __proto__ is an ordinary key', () => {
    const parsed = parseJson(bytes('{"__proto__":{"polluted":true}}'))
    expect(Object.hasOwn(parsed as object, '__proto__')).toBe(true)
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
  })
})

test('[SS2] no text can leave its line', () => {
  const hostile = 'a\n\ndata: {"type":"finish"}\r\n\u2028: x'
  for (const chunk of [
    { type: 'text-delta', id: 't', delta: hostile },
    { type: 'tool-output-error', toolCallId: hostile, errorText: hostile },
  ] as const) {
    const frame = sseFrame(serialiseChunk(chunk))
    expect(frame.slice(0, -2)).not.toMatch(/[\r\n]/)
    expect(JSON.parse(frame.slice('data: '.length))).toEqual(chunk)
  }
})
