import { crc32, deflateSync } from 'node:zlib'

import { scriptResponder } from 'gemini-emulator'
import { describe, expect, test } from 'vitest'

import { measureImage } from '../../src/model/images/measure-image.ts'
import { drawPicture } from '../../src/model/images/draw-picture.ts'
import { transcribeAsDialogue } from '../../src/model/speech/dialogue.ts'
import { afterCalls, respond, model, pay, PROMPT, user } from './prompt.ts'

describe('examples', () => {
  test.each([
    ['Search for the history of tea', ['say', 'ground']],
    ['お茶の歴史を検索して', ['say', 'ground']],
    ['Run some code', ['say', 'code', 'say']],
    ['コードを実行して', ['say', 'code', 'say']],
    ['Show me an error', ['say', 'fail']],
    ['エラーを起こして', ['say', 'fail']],
    ['Give me a long answer', ['say']],
    ['長い話をして', ['say']],
  ])('[ED40] shows an example for %j', (request, types) => {
    expect(respond(request).actions.map(({ type }) => type)).toEqual(types)
  })

  test.each(['Are you busy?', 'Show me a rate limit', '混雑を見せて'])(
    '[ED40] fails with a rate limit for %j',
    (request) => {
      expect(respond(request).actions).toEqual([
        expect.objectContaining({ type: 'fail', status: 429, retryAfterSeconds: 10 }),
      ])
    },
  )

  test('[ED40] a long reply is shorter in a live session', () => {
    expect(respond('a long answer please').text.length).toBeGreaterThan(2_000)
    // At 12 characters a second.
    expect(respond('a long answer please', { mode: 'live' }).text.length).toBeLessThan(12 * 45)
  })

  test.each([
    ['Send $30 to Busy Bob', 'process_payment'],
    ['Search the weather in Tokyo', 'get_weather'],
  ])('[ED40] %s is carried out and not shown as an example', (request, tool) => {
    expect(respond(request).calls.map(({ name }) => name)).toEqual([tool])
  })

  test('[ED40] a request for an example does not complete a payment', () => {
    const contents = [user('Send $30'), model('Who should receive it?'), user('Search for tea')]
    expect(respond(contents).calls).toEqual([])
  })
})

function shown(data: string, text = 'look'): string {
  const inlineData = { mimeType: 'image/png', data }
  return respond([{ role: 'user', parts: [{ text }, { inlineData }] }]).text
}

describe('sent pictures', () => {
  test.each(['red', 'green', 'blue', 'black', 'white', 'yellow', 'orange', 'purple'])(
    '[ED28] a %s PNG is described by its size and colour',
    async (colour) => {
      expect(shown(await solidImage(colour))).toContain(`16 × 16, mostly ${colour}`)
    },
  )

  test('[ED28] a drawn picture is described, also in Japanese', async () => {
    expect(shown(await solidImage('red'), 'これを見て')).toContain('16 × 16, 主に赤')
    expect(shown(drawPicture('the sea'))).toMatch(/360 × 240, mostly \w+/)
  })

  test.each([
    ['a GIF', Buffer.from('GIF89a\x0a\x00\x14\x00', 'latin1'), { width: 10, height: 20 }],
    [
      'a JPEG',
      Buffer.from('ffd8ffe00004aaaaffc0001108000a001403012200021101031101', 'hex'),
      { width: 20, height: 10 },
    ],
    [
      'a WebP',
      Buffer.from('RIFF\0\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x09\0\0\x13\0\0', 'latin1'),
      { width: 10, height: 20 },
    ],
    ['no picture', Buffer.from('hello'), undefined],
    ['half a PNG', Buffer.from(drawPicture('red'), 'base64').subarray(0, 45), undefined],
  ])('[ED28] measures %s', (_what, file, look) => {
    expect(measureImage(file)).toEqual(look)
  })

  test('[ED28] reads every filter of a row', () => {
    // The decoded rows of a picture with the PNG filters none, sub, up, average and Paeth.
    expect(measureImage(filteredPng())).toEqual({ width: 2, height: 5, colour: 'red' })
  })
})

test('[ED41] a result of the AI SDK is read like any other one', () => {
  const request = 'Send $30 to Alice'
  const completed = { success: true, transaction_id: 'txn_1', amount: 30, recipient: 'Alice' }
  const replyTo = (content: unknown) =>
    respond(afterCalls(request, [pay(30, 'Alice')], [{ name: 'process_payment', content }])).text
  expect(replyTo(completed)).toContain('transaction txn_1')
  expect(replyTo(JSON.stringify(completed))).toContain('transaction txn_1')
  expect(replyTo('Tool call execution denied.')).toContain('rejected')
})

describe('demonstration', () => {
  const spoken = { pcm: new Uint8Array(16_000 * 2 * 2), sampleRate: 16_000 }

  test.each(['en', 'ja'] as const)(
    '[ED42] the dialogue continues line by line and ends (%s)',
    async (language) => {
      const transcribe = transcribeAsDialogue(() => language)
      const history: ReturnType<typeof user>[] = []
      const actions: string[] = []
      for (let n = 0; n < 6; n += 1) {
        const line = await transcribe(spoken, history)
        const { actions: reply } = respond([...history, user(line)], { mode: 'live' })
        const action = reply.find(({ type }) => type === 'call') ?? reply[0]
        actions.push(action?.type === 'call' ? action.name : (action?.type ?? 'nothing'))
        expect(line).toContain(language === 'en' ? '(demo line)' : 'デモの台詞')
        history.push(user(line), model('Yes.'))
      }
      expect(actions).toEqual(['get_weather', 'process_payment', 'say', 'change_bgm', 'say', 'say'])
    },
  )

  test('[ED42] a short noise is not an utterance', async () => {
    const cough = { pcm: new Uint8Array(16_000 * 2 * 0.8), sampleRate: 16_000 }
    expect(await transcribeAsDialogue(() => 'en')(cough, [])).toBe('')
  })
})

/** A PNG of 16 × 16 pixels in one colour, as the emulator draws it. */
async function solidImage(colour: string): Promise<string> {
  const [image] =
    (await scriptResponder({ ...PROMPT, contents: [user(`[[image ${colour}]]`)] })) ?? []
  if (image?.type !== 'image') throw new Error(`The emulator does not draw ${colour}.`)
  return image.data
}

/** Two red pixels in each of five rows, each row stored with another filter. */
function filteredPng(): Buffer {
  const rows = Buffer.from(
    [
      [0, 255, 0, 0, 255, 0, 0],
      [1, 255, 0, 0, 0, 0, 0],
      [2, 0, 0, 0, 0, 0, 0],
      [3, 128, 0, 0, 0, 0, 0],
      [4, 0, 0, 0, 0, 0, 0],
    ].flat(),
  )
  const header = Buffer.alloc(13)
  header.writeUInt32BE(2, 0)
  header.writeUInt32BE(5, 4)
  header.set([8, 2], 8)
  return Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const frame = Buffer.alloc(body.length + 8)
  frame.writeUInt32BE(data.length, 0)
  frame.set(body, 4)
  frame.writeUInt32BE(crc32(body), body.length + 4)
  return frame
}
