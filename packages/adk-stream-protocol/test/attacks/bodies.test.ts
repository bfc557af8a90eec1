import { expect, test } from 'vitest'
import * as fc from 'fast-check'

import { messageBody, sendRaw } from '../support/raw-client.ts'
import { times } from '../../../../test/support/long-run.ts'
import { findLeaks } from '../support/leaks.ts'
import { serve } from '../support/serve.ts'

const user = (parts: unknown): unknown => ({
  id: 'c',
  messages: [{ id: 'm', role: 'user', parts }],
})
const text = { type: 'text', text: 'Hello' }
const repeat = (count: number, value: unknown): unknown[] =>
  Array.from({ length: count }, () => value)

const wrongShapes: readonly (readonly [string, unknown])[] = [
  ['null', null],
  ['a number', 7],
  ['a list', []],
  ['nothing', {}],
  ['no messages', { id: 'c' }],
  ['empty messages', { id: 'c', messages: [] }],
  ['messages as text', { id: 'c', messages: 'Hello' }],
  ['a message as text', { id: 'c', messages: ['Hello'] }],
  ['a message as null', { id: 'c', messages: [null] }],
  ['no role', { id: 'c', messages: [{ parts: [text] }] }],
  ['no parts', { id: 'c', messages: [{ role: 'user' }] }],
  ['empty parts', user([])],
  ['parts as an object', user({ length: 1, 0: text })],
  ['a part without a type', user([{ text: 'Hello' }])],
  ['a part with a type that is no text', user([{ type: 7 }])],
  ['a text that is no text', user([{ type: 'text', text: { toString: 'Hello' } }])],
  ['an empty text', user([{ type: 'text', text: '  \n' }])],
  ['only data parts', user([{ type: 'data-x', data: 1 }])],
  ['a tool part', user([text, { type: 'tool-pay', state: 'output-available', output: 1 }])],
  ['a dynamic tool', user([text, { type: 'dynamic-tool', toolName: 'pay' }])],
  ['a source', user([text, { type: 'source-url', url: 'https://example.com' }])],
  ['a tool result', user([text, { type: 'tool-result', result: 1 }])],
  ['no chat id', { messages: [{ role: 'user', parts: [text] }] }],
  ['an empty chat id', { id: '', messages: [{ role: 'user', parts: [text] }] }],
  ['a path as chat id', { id: '../../etc', messages: [{ role: 'user', parts: [text] }] }],
  ['a long chat id', { id: 'x'.repeat(129), messages: [{ role: 'user', parts: [text] }] }],
  ['a chat id with a line break', { id: 'a\nb', messages: [{ role: 'user', parts: [text] }] }],
  ['a number as chat id', { id: 7, messages: [{ role: 'user', parts: [text] }] }],
  [
    'a long message id',
    { id: 'c', messages: [{ id: 'x'.repeat(129), role: 'user', parts: [text] }] },
  ],
  ['an unknown trigger', { ...(user([text]) as object), trigger: 'explode' }],
  ['too many messages', { id: 'c', messages: repeat(100_001, {}) }],
  ['too many parts', user(repeat(65, text))],
  ['a file by address', user([{ type: 'file', mediaType: 'image/png', url: 'http://10.0.0.1/a' }])],
  [
    'a file of the disk',
    user([{ type: 'file', mediaType: 'image/png', url: 'file:///etc/passwd' }]),
  ],
  [
    'a script as file',
    user([{ type: 'file', mediaType: 'image/png', url: 'javascript:alert(1)' }]),
  ],
  [
    'a page as file',
    user([{ type: 'file', mediaType: 'text/html', url: 'data:text/html;base64,QQ==' }]),
  ],
  [
    'svg',
    user([{ type: 'file', mediaType: 'image/svg+xml', url: 'data:image/svg+xml;base64,QQ==' }]),
  ],
  [
    'no base64',
    user([{ type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,%%%%' }]),
  ],
  [
    'a file without content',
    user([{ type: 'file', mediaType: 'image/png', url: 'data:image/png;base64,' }]),
  ],
]

test.each(wrongShapes)('[RQ8] %s is rejected with its path', async (_name, body) => {
  await using server = await serve()
  const response = await server.browser().post('/stream', body)
  const answer = await response.text()
  expect(response.status).toBe(400)
  expect(JSON.parse(answer)).toMatchObject({ error: { code: 'bad-request' } })
  expect(findLeaks(answer)).toEqual([])
  expect(server.emulator.requests).toHaveLength(0)
})

test.each([
  ['assistant', { role: 'assistant', parts: [text] }],
  ['system', { role: 'system', parts: [text] }],
  ['an invented role', { role: 'developer', parts: [text] }],
])(
  '[RQ2] a newest message with the role %s is rejected with nothing-new',
  async (_name, message) => {
    await using server = await serve()
    const response = await server.browser().post('/stream', { id: 'c', messages: [message] })
    expect(response.status).toBe(409)
    expect(await response.json()).toMatchObject({ error: { code: 'nothing-new' } })
  },
)

test('[RQ4] a part of an unknown type is rejected, and the error names the type', async () => {
  await using server = await serve()
  const response = await server.browser().post('/stream', user([text, { type: 'hologram' }]))
  expect(await response.json()).toMatchObject({
    error: { code: 'bad-request', message: expect.stringContaining('"hologram"') as unknown },
  })
})

test.each<readonly [string, string | Uint8Array]>([
  ['half an object', '{"id":"c","messages":['],
  ['nothing', ''],
  ['words', 'Hello'],
  ['NaN', '{"id":NaN}'],
  ['a BOM in the middle', '{"id":\uFEFF"c"}'],
  [
    'invalid UTF-8',
    Buffer.concat([Buffer.from('{"id":"'), Buffer.of(0xff, 0xfe), Buffer.from('"}')]),
  ],
  [
    'an overlong slash',
    Buffer.concat([Buffer.from('{"id":"'), Buffer.of(0xc0, 0xaf), Buffer.from('"}')]),
  ],
  [
    'a surrogate in UTF-8',
    Buffer.concat([Buffer.from('"'), Buffer.of(0xed, 0xa0, 0x80), Buffer.from('"')]),
  ],
  ...[65, 2_000, 20_000, 1_000_000].map((depth): readonly [string, string] => [
    `lists ${depth} deep`,
    '['.repeat(depth) + ']'.repeat(depth),
  ]),
  ['objects 20,000 deep', '{"a":'.repeat(20_000) + '1' + '}'.repeat(20_000)],
  [
    'a message with a part 20,000 deep',
    messageBody('x').replace('"x"', `${'['.repeat(20_000)}1${']'.repeat(20_000)}`),
  ],
])('[RQ3] %s is malformed JSON', async (_name, body) => {
  await using server = await serve()
  const response = await server.browser().post('/stream', body)
  const answer = await response.text()
  expect(response.status).toBe(400)
  expect(JSON.parse(answer)).toMatchObject({ error: { code: 'malformed-json' } })
  expect(findLeaks(answer)).toEqual([])
})

test('[RQ3] 64 levels are read, and brackets inside strings do not count', async () => {
  await using server = await serve()
  const deep = JSON.parse('['.repeat(59) + ']'.repeat(59)) as unknown
  const said = `${'[{'.repeat(500)}"\\`
  const response = await server.browser().post(
    '/stream',
    user([
      { type: 'text', text: `[[say Fine.]] ${said}` },
      { type: 'data-x', data: deep },
    ]),
  )
  expect(response.status).toBe(200)
  await response.text()
})

test('[RQ6] 10 MB of text are rejected', async () => {
  await using server = await serve()
  const response = await server
    .browser()
    .post('/stream', user([{ type: 'text', text: 'x'.repeat(10_000_000) }]))
  expect(response.status).toBe(413)
  expect(await response.json()).toMatchObject({ error: { code: 'too-large' } })
})

test('[RQ6] a text and a file over their own limits are rejected', async () => {
  await using server = await serve({ limits: { maxTextLength: 100, maxFileBytes: 100 } })
  const browser = server.browser()
  const file = {
    type: 'file',
    mediaType: 'image/png',
    url: `data:image/png;base64,${'A'.repeat(400)}`,
  }
  const bodies = [
    user([{ type: 'text', text: 'x'.repeat(101) }]),
    user(repeat(3, { type: 'text', text: 'x'.repeat(50) })),
    user([text, file]),
  ]
  for (const body of bodies) expect((await browser.post('/stream', body)).status).toBe(413)
})

test.each([
  ['with its length', (size: number) => ({ 'content-length': String(size) })],
  ['without a length', () => ({ 'transfer-encoding': 'chunked', 'content-length': '' })],
])('[RQ6] a client that sends too much %s receives the error', async (_name, headers) => {
  await using server = await serve({ limits: { maxBodyBytes: 100_000 } })
  const size = 600_000
  const given = Object.fromEntries(
    Object.entries(headers(size)).filter(([, value]) => value !== ''),
  )
  const body = 'x'.repeat(size)
  const chunked = `${size.toString(16)}\r\n${body}\r\n0\r\n\r\n`
  const isChunked = 'transfer-encoding' in given
  using client = await sendRaw(`${server.url}/stream`, {
    headers: given,
    body: isChunked ? chunked : body,
    withoutLength: isChunked,
  })
  const answer = await client.drain()
  expect(answer).toMatch(/^HTTP\/1\.1 413 /)
  expect(answer).toContain('too-large')
})

test('[RQ6] a body far over the limit is rejected, and the server continues', async () => {
  await using server = await serve({ limits: { maxBodyBytes: 100_000 } })
  const browser = server.browser()
  expect((await browser.post('/stream', 'x'.repeat(20_000_000))).status).toBe(413)
  expect((await browser.say('[[say Fine.]]')).status).toBe(200)
})

test('[RQ10] another content type, or a compressed body, is rejected', async () => {
  await using server = await serve()
  const browser = server.browser()
  const refused = [
    await browser.post('/stream', messageBody('x'), { 'content-type': 'text/plain' }),
    await browser.post('/stream', messageBody('x'), {
      'content-type': 'application/x-www-form-urlencoded',
    }),
    await browser.post('/stream', messageBody('x'), { 'content-encoding': 'gzip' }),
  ]
  for (const response of refused) {
    expect(response.status).toBe(415)
    expect(await response.json()).toMatchObject({ error: { code: 'unsupported-media-type' } })
  }
})

test('[RQ8] keys such as __proto__ have no effect', async () => {
  await using server = await serve()
  const payloads = [
    '{"__proto__":{"polluted":1},"id":"c","messages":[{"role":"user","__proto__":{"polluted":1},"parts":[{"type":"text","text":"[[say Hi.]]","__proto__":{"polluted":1}}]}]}',
    '{"constructor":{"prototype":{"polluted":1}},"id":"c","messages":[{"role":"user","content":"[[say Hi.]]","constructor":{"prototype":{"polluted":1}}}]}',
    '{"id":"__proto__","messages":[{"id":"__proto__","role":"user","content":"[[say Hi.]]"}]}',
    '{"id":"constructor","messages":[{"id":"toString","role":"user","content":"[[say Hi.]]"}]}',
  ]
  for (const body of payloads) {
    const response = await server.browser().post('/stream', body)
    expect(response.status).toBe(200)
    await response.text()
  }
  expect('polluted' in {}).toBe(false)
})

test('[SE5] any JSON gets an error or a stream, and no prototype is changed', async () => {
  await using server = await serve({ respond: () => [{ type: 'say', text: 'ok' }] })
  const prototypeKeys = Object.getOwnPropertyNames(Object.prototype).toSorted()
  const browser = server.browser()
  const key = fc.constantFrom(
    'id',
    'chatId',
    'messages',
    'role',
    'parts',
    'content',
    'type',
    'text',
  )
  const evil = fc.constantFrom('__proto__', 'constructor', 'prototype', 'toString', 'toJSON')
  const { json } = fc.letrec<{ json: unknown }>((tie) => ({
    json: fc.oneof(
      { maxDepth: 6 },
      fc.constantFrom<unknown>('user', 'text', 'file', 'assistant', null, true, -0, 1e308),
      fc.string({ unit: 'binary' }),
      fc.array(tie('json'), { maxLength: 4 }),
      fc.dictionary(fc.oneof(key, evil, fc.string()), tie('json'), { maxKeys: 6 }),
      fc.record({
        id: fc.string(),
        messages: fc.array(
          fc.record({
            role: fc.constant('user'),
            parts: fc.array(tie('json')),
            content: tie('json'),
          }),
        ),
      }),
      fc.record({ type: fc.constant('text'), text: tie('json') }),
    ),
  }))
  await fc.assert(
    fc.asyncProperty(json, async (body) => {
      const response = await browser.post('/stream', JSON.stringify(body) ?? 'null')
      const answer = await response.text()
      if (response.status === 200) return answer.endsWith('data: [DONE]\n\n')
      const { error } = JSON.parse(answer) as { error: { code: string } }
      return (
        response.status >= 400 &&
        response.status < 500 &&
        typeof error.code === 'string' &&
        findLeaks(answer).length === 0
      )
    }),
    { numRuns: times(15, 300) },
  )
  expect(Object.getOwnPropertyNames(Object.prototype).toSorted()).toEqual(prototypeKeys)
  expect((await browser.get('/health')).status).toBe(200)
})
