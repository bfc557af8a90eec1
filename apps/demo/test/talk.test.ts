import { once } from 'node:events'

import { beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'

import { startDemo } from '../src/server/start-demo.ts'
import { builtPage } from '../../../test/support/built-page.ts'
import { temporaryDirectory } from './support/temporary-directory.ts'

beforeAll(() => builtPage())

const RATE = 16_000
const LONG = { timeout: 120_000 }

interface Frame {
  readonly type: string
  readonly requestId?: string
  readonly chunk?: { readonly type: string; readonly [key: string]: unknown }
  readonly message?: { readonly parts: readonly { readonly text?: string }[] }
}

/** A person with a microphone in a room with noise, and a socket to the demo. */
async function openTalk(headers: Record<string, string> = {}) {
  const data = await temporaryDirectory()
  const demo = await startDemo({ PORT: '0', DATA_DIR: data.path })
  const socket = new WebSocket(`${demo.url.replace('http', 'ws')}/live`, { headers })
  const frames: Frame[] = []
  socket.on('message', (piece: Buffer, isBinary) => {
    if (!isBinary) frames.push(JSON.parse(piece.toString()) as Frame)
  })
  await once(socket, 'open')
  socket.send(JSON.stringify({ type: 'watch', id: 'chat-1', audio: 'binary' }))
  return {
    frames,
    /** Sends audio as a page does: 100 ms at a time. */
    utter: (ms: number, loudness: number) => {
      for (let sent = 0; sent < ms; sent += 100) socket.send(sound(loudness))
    },
    heard: () =>
      frames.flatMap(({ type, message }) =>
        type === 'user-message' ? [message?.parts[0]?.text ?? ''] : [],
      ),
    chunks: (type: string) => frames.filter(({ chunk }) => chunk?.type === type),
    async [Symbol.asyncDispose]() {
      socket.terminate()
      await demo[Symbol.asyncDispose]()
      await data[Symbol.asyncDispose]()
    },
  }
}

/** 100 ms of a voice with background noise. */
function sound(loudness: number): Buffer {
  const samples = new Int16Array(RATE / 10).map(
    (_, at) => Math.sin(at / 5) * loudness * Math.SQRT2 + Math.sin(at * at) * 150,
  )
  return Buffer.from(samples.buffer)
}

type Talk = Awaited<ReturnType<typeof openTalk>>

function say(talk: Talk): void {
  talk.utter(900, 4_000)
  talk.utter(700, 0)
}

test('[DM47] a spoken conversation without speech recognition: it says so, replies, requests approval, and can be interrupted', async () => {
  await using talk = await openTalk()
  say(talk)
  await expect.poll(() => talk.heard(), LONG).toHaveLength(1)
  expect(talk.heard()[0]).toMatch(/^What is the weather in Tokyo\? \(demo line\)$/)
  await expect.poll(() => talk.chunks('finish').length, LONG).toBe(1)
  say(talk)
  await expect.poll(() => talk.chunks('tool-approval-request').length, LONG).toBe(1)
  say(talk)
  await expect.poll(() => talk.heard(), LONG).toHaveLength(3)
  expect(talk.heard()[2]).toMatch(/^Give me a long answer\./)
  // The previous line may have interrupted the sentence about the approval.
  const interruptions = (): number =>
    talk.frames.filter(({ type }) => type === 'interrupted').length
  const before = interruptions()
  // The reply is still being played, although its whole text may have arrived.
  talk.utter(300, 4_000)
  await expect.poll(interruptions, LONG).toBe(before + 1)
})

test('[DM47] it speaks Japanese to a Japanese browser', async () => {
  await using talk = await openTalk({ 'accept-language': 'ja' })
  say(talk)
  await expect.poll(() => talk.heard(), LONG).toHaveLength(1)
  expect(talk.heard()[0]).toMatch(/^東京の天気は\? （デモの台詞）$/)
})

test('[DM47] a cough is not answered', async () => {
  await using talk = await openTalk()
  talk.utter(100, 4_000)
  talk.utter(800, 0)
  say(talk)
  await expect.poll(() => talk.heard(), LONG).toHaveLength(1)
  expect(talk.heard()[0]).toContain('weather')
})
