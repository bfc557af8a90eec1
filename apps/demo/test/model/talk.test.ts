import { crc32, inflateSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { naturalPieces } from '../../src/model/replies/render.ts'
import { demoTools, model, respond, user } from './prompt.ts'

test.each([
  ['hello', 'Hello!'],
  ['who are you?', 'not a real model'],
  ['what can you do?', '- Send $30 to Alice and $40 to Bob'],
  ['thanks', 'You are welcome'],
  ['bye', 'Goodbye'],
  ['こんにちは', '本物のモデルではなく'],
  ['あなたは誰ですか', '本物のモデルではありません'],
  ['何ができますか', '- 東京とロンドンの天気は？'],
  ['ありがとう', 'どういたしまして'],
])('[ED24] replies to %j', (request, words) => {
  const reply = respond(request)
  expect(reply.text).toContain(words)
  expect(reply.calls).toEqual([])
})

test('[ED24] offers examples for declared tools only', () => {
  const functions = demoTools.filter(({ name }) => name === 'get_weather')
  const { text } = respond('help', { functions })
  expect(text).toContain('weather in Tokyo')
  expect(text).not.toContain('Alice')
})

test.each([
  ['my name is Ken and I am new', "what's my name?", 'Your name is Ken.'],
  ['私の名前は健です', '私の名前は何ですか', 'お名前は健さんです。'],
  ['hello', 'do you remember my name?', 'You have not told me your name yet. What is it?'],
])('[ED25] remembers: %j, %j', (first, second, text) => {
  expect(respond([user(first), model('…'), user(second)]).text).toBe(text)
})

test('[ED25] remembers the balance of the last payment', () => {
  const paid = { success: true, amount: 5, currency: 'EUR', wallet_balance: 995 }
  const contents = [
    user('pay Bob €5'),
    { role: 'model', parts: [{ functionCall: { name: 'process_payment', args: {} } }] },
    { role: 'user', parts: [{ functionResponse: { name: 'process_payment', response: paid } }] },
    model('Done.'),
    user('What is my balance?'),
  ]
  expect(respond(contents).text).toBe('After the last payment your balance was €995.00.')
})

test.each(['show me markdown', 'give me a code example', 'マークダウンを見せて'])(
  '[ED26] shows a list, a table and code for %j',
  (request) => {
    expect(respond(request).text).toMatch(/^1\. .*\n2\. [\s\S]*\| --- \|[\s\S]*```ts\n[\s\S]*```/mu)
  },
)

test.each(['think about the moon', '月について段階的に説明して'])(
  '[ED27] writes reasoning only if the request asks for it: %j',
  (request) => {
    const types = (includeThoughts: boolean) =>
      respond(request, { includeThoughts }).actions.map(({ type }) => type)
    expect(types(true)).toEqual(['think', 'say'])
    expect(types(false)).toEqual(['say'])
  },
)

test.each([
  ['Think step by step: which is larger, 9.9 or 9.11?', '**9.9 is larger.**', '0.79'],
  ['順を追って考えて：9.9と9.11はどちらが大きい？', '**9.9のほうが大きい**', '0.79'],
  ['Which is greater, 3 or 12?', '**12 is larger.**', '9'],
  ['Which is bigger, 2.50 or 2.5?', '2.50 and 2.5 are equal.', ''],
])('[ED390] compares the numbers of %j', (request, result, difference) => {
  const { text, actions } = respond(request, { includeThoughts: true })
  expect(actions.map(({ type }) => type)).toEqual(['think', 'say'])
  expect(text).toContain(result)
  expect(text).toContain(difference)
  expect(respond(request, { mode: 'live' }).text).not.toMatch(/[*\n]/)
})

test.each([
  [
    'Send $30 to Alice and $40 to Bob',
    'the payment of $30.00 to Alice and the payment of $40.00 to Bob',
  ],
  ['Aliceに30ドル送金してください', '承認をお願いします'],
])('[ED391] in a live session, says which payments need approval: %j', (request, words) => {
  const { actions, text } = respond(request, { mode: 'live' })
  expect(actions[0]).toMatchObject({ type: 'say' })
  expect(actions.at(-1)).toMatchObject({ type: 'call', name: 'process_payment' })
  expect(text).toContain(words)
  expect(respond(request).text).toBe('')
})

describe('pictures', () => {
  const image = {
    inlineData: { mimeType: 'image/png', data: Buffer.alloc(2_048).toString('base64') },
  }

  test('[ED28] names the type and size of a file, and still carries out the request', () => {
    const shown = (text: string) => respond([{ role: 'user', parts: [{ text }, image] }])
    expect(shown('look').text).toContain('image/png (2.0 kB)')
    expect(shown('これを見て').text).toContain('image/png (2.0 kB)を受け取りました')
    expect(shown('weather in Tokyo').calls).toHaveLength(1)
    expect(respond([{ role: 'user', parts: [image] }]).text).toContain('image/png (2.0 kB)')
  })

  test.each(['draw a cat', 'generate an image of a cat', '猫の絵を描いて'])(
    '[ED29] draws a picture for %j',
    (request) => {
      const [picture, words] = respond(request).actions
      if (picture?.type !== 'image') throw new Error('No picture was drawn.')
      expect(picture.mimeType).toBe('image/png')
      expect(readPng(Buffer.from(picture.data, 'base64'))).toEqual({
        width: 360,
        height: 240,
        bytes: 240 * (1 + 360 * 3),
      })
      expect(words).toMatchObject({ type: 'say' })
      expect(respond(request).actions).toEqual(respond(request).actions)
      expect(respond('draw a dog').actions[0]).not.toEqual(picture)
    },
  )
})

/** Reads a PNG as a decoder would, checksums included. */
function readPng(file: Buffer): { width: number; height: number; bytes: number } {
  expect(file.subarray(0, 8).toString('latin1')).toBe('\u0089PNG\r\n\u001a\n')
  const chunks = new Map<string, Buffer>()
  for (let at = 8; at < file.length;) {
    const length = file.readUInt32BE(at)
    const body = file.subarray(at + 4, at + 8 + length)
    expect(file.readUInt32BE(at + 8 + length)).toBe(crc32(body))
    chunks.set(body.toString('latin1', 0, 4), body.subarray(4))
    at += 12 + length
  }
  expect([...chunks.keys()]).toEqual(['IHDR', 'IDAT', 'IEND'])
  const header = chunks.get('IHDR') ?? Buffer.alloc(13)
  const bytes = inflateSync(chunks.get('IDAT') ?? Buffer.alloc(0)).length
  return { width: header.readUInt32BE(0), height: header.readUInt32BE(4), bytes }
}

test.each([
  'hello',
  'help',
  'show me markdown',
  'tell me a joke',
  '何ができますか',
  'マークダウン',
])('[ED30] a reply in a live session has no Markdown: %j', (request) => {
  const { text } = respond(request, { mode: 'live' })
  expect(text).not.toMatch(/[*#`|\n]|^- /mu)
  expect(text.length).toBeGreaterThan(0)
  expect(text.length).toBeLessThanOrEqual(respond(request).text.length)
})

test.each([
  ['I sent $30.00 to Alice.', ['I ', 'sent ', '$30.00 ', 'to ', 'Alice.']],
  [
    '花子さんに50ドルを送金しました。',
    ['花子', 'さん', 'に', '50', 'ドル', 'を送', '金し', 'まし', 'た。'],
  ],
  ['が\u3099👩‍👩‍👧 é', ['が\u3099', '👩‍👩‍👧 ', 'é']],
])('[ED31] streams %j in natural pieces', (text, pieces) => {
  expect(naturalPieces(text)).toEqual(pieces)
})

test('[ED31] every sentence is split into pieces', () => {
  const { actions, text } = respond('何ができますか')
  expect(
    actions.flatMap((action) => (action.type === 'say' ? (action.pieces ?? []) : [])).join(''),
  ).toBe(text)
})

test.each([
  ['tell me a joke', 'You said “tell me a joke”. I am an emulator'],
  ['面白い話をして', '「面白い話をして」ですね。私は本物のモデルではなくエミュレーター'],
])('[ED34] repeats the main point of %j and makes a suggestion', (request, words) => {
  expect(respond(request).text).toContain(words)
})

test('[ED34] replies to an empty conversation', () => {
  expect(respond([]).text).not.toBe('')
  expect(respond([user('hello'), model('Hello.')]).text).not.toBe('')
})
