import { once } from 'node:events'

import { beforeAll, expect, test } from 'vitest'
import { WebSocket } from 'ws'

import { startDemo } from '../src/server/start-demo.ts'
import { builtPage } from '../../../test/support/built-page.ts'
import { longTest } from '../../../test/support/long-test.ts'
import { temporaryDirectory } from '../../../test/support/temporary-directory.ts'

beforeAll(() => builtPage())

const RATE = 16_000
const LONG = { timeout: 120_000 }

interface Frame {
  readonly type: string
  readonly requestId?: string
  readonly chunk?: { readonly type: string; readonly [key: string]: unknown }
  readonly text?: string
  readonly message?: { readonly parts: readonly { readonly text?: string }[] }
}

/** Opens a socket to the demo that sends speech with background noise. */
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
    /** Sends audio in frames of 100 ms, as the page does. */
    sendAudio: (ms: number, loudness: number) => {
      for (let sent = 0; sent < ms; sent += 100) socket.send(createFrame(loudness))
    },
    transcripts: () =>
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

/** Returns 100 ms of a voice with background noise. */
function createFrame(loudness: number): Buffer {
  const samples = new Int16Array(RATE / 10).map(
    (_, at) => Math.sin(at / 5) * loudness * Math.SQRT2 + Math.sin(at * at) * 150,
  )
  return Buffer.from(samples.buffer)
}

type Talk = Awaited<ReturnType<typeof openTalk>>

function speak(talk: Talk): void {
  talk.sendAudio(900, 4_000)
  talk.sendAudio(700, 0)
}

longTest(
  '[DM47] each utterance is a marked demo line with a spoken reply, which may request approval and can be interrupted',
  async () => {
    await using talk = await openTalk()
    speak(talk)
    await expect.poll(() => talk.transcripts(), LONG).toHaveLength(1)
    expect(talk.transcripts()[0]).toMatch(/^What is the weather in Tokyo\? \(demo line\)$/)
    await expect.poll(() => talk.chunks('finish').length, LONG).toBe(1)
    speak(talk)
    await expect.poll(() => talk.chunks('tool-approval-request').length, LONG).toBe(1)
    speak(talk)
    // The line is a message only after its reply, which takes ten seconds.
    const heardAt = (): number =>
      talk.frames.findIndex(({ type, text }) => type === 'transcript' && text?.includes('long'))
    const hasReply = (): boolean =>
      heardAt() >= 0 &&
      talk.frames.slice(heardAt()).some(({ chunk }) => chunk?.type === 'text-delta')
    await expect.poll(hasReply, LONG).toBe(true)
    // The line may have interrupted the sentence about the approval.
    const interruptions = (): number =>
      talk.frames.filter(({ type }) => type === 'interrupted').length
    const before = interruptions()
    talk.sendAudio(300, 4_000)
    await expect.poll(interruptions, LONG).toBe(before + 1)
    await expect.poll(() => talk.transcripts(), LONG).toHaveLength(3)
    expect(talk.transcripts()[2]).toMatch(/^Give me a long answer\./)
  },
)

test('[DM47] a Japanese browser gets the Japanese dialogue', async () => {
  await using talk = await openTalk({ 'accept-language': 'ja' })
  speak(talk)
  await expect.poll(() => talk.transcripts(), LONG).toHaveLength(1)
  expect(talk.transcripts()[0]).toMatch(/^東京の天気は\? （デモの台詞）$/)
})

test('[DM47] a short noise gets no reply', async () => {
  await using talk = await openTalk()
  talk.sendAudio(100, 4_000)
  talk.sendAudio(800, 0)
  speak(talk)
  await expect.poll(() => talk.transcripts(), LONG).toHaveLength(1)
  expect(talk.transcripts()[0]).toContain('weather')
})
