import { Modality } from '@google/genai'
import { expect, test } from 'vitest'

import { startEmulator } from '../src/emulator.ts'
import {
  audio,
  connect,
  connectRaw,
  replies,
  say,
  silence,
  startLive,
  TEXT_SETUP,
  textOf,
  toolCall,
  turnComplete,
  voice,
  wait,
} from './support/live-server.ts'

test('[EL50] media in recorded frames are replaced by their size', async () => {
  await using server = await startLive()
  await using client = await connect(server, { config: { responseModalities: [Modality.AUDIO] } })
  const data = Buffer.alloc(640).toString('base64')
  client.session.sendRealtimeInput({ audio: { mimeType: 'audio/pcm;rate=16000', data } })
  client.say('hi')
  await client.until(turnComplete)
  const [session] = server.live.sessions
  expect(session?.received[1]).toEqual({
    realtimeInput: { audio: { mimeType: 'audio/pcm;rate=16000', bytes: 640 } },
  })
  expect(session?.sent[1]).toEqual({
    serverContent: {
      modelTurn: {
        role: 'model',
        parts: [{ inlineData: { mimeType: 'audio/pcm;rate=24000', bytes: 3840 } }],
      },
    },
  })
})

test('[EL50] recordAudio keeps media, and only the latest frames are kept', async () => {
  await using server = await startLive({ recordAudio: true, keepFrames: 2 })
  await using client = await connect(server)
  for (const text of ['one', 'two', 'three']) client.session.sendRealtimeInput({ text })
  client.session.sendRealtimeInput({ video: { mimeType: 'image/png', data: 'aW1n' } })
  const [session] = server.live.sessions
  await session?.waitFor((frame) => JSON.stringify(frame).includes('aW1n'))
  expect(session?.received).toEqual([
    { realtimeInput: { text: 'three' } },
    { realtimeInput: { video: { mimeType: 'image/png', data: 'aW1n' } } },
  ])
})

test('[EL51] `nextSession` returns each session once, in order', async () => {
  await using server = await startLive()
  const awaited = server.live.nextSession()
  await connect(server)
  await connect(server)
  expect(await awaited).toBe(server.live.sessions[0])
  expect(await server.live.nextSession()).toBe(server.live.sessions[1])
  await expect(server.live.nextSession(AbortSignal.abort())).rejects.toThrow(/abort/)
  const controller = new AbortController()
  const aborted = server.live.nextSession(controller.signal)
  controller.abort()
  await expect(aborted).rejects.toThrow(/abort/)
})

test('[EL51] `waitFor` rejects when the session ends or the signal aborts', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  const session = await server.live.nextSession()
  const controller = new AbortController()
  const aborted = session.waitFor(() => false, controller.signal)
  const pending = session.waitFor(() => false)
  controller.abort()
  await expect(aborted).rejects.toThrow(/abort/)
  client.session.close()
  await expect(pending).rejects.toMatchObject({ code: 'closed' })
  await expect(session.waitFor(() => false)).rejects.toMatchObject({ code: 'closed' })
  expect(await session.waitFor((frame) => 'setup' in frame)).toHaveProperty('setup')
})

test('[EL52] `reset` removes ended sessions and queued transcripts', async () => {
  await using server = await startLive()
  const ended = await connect(server)
  await using open = await connect(server)
  ended.session.close()
  await server.live.sessions[0]?.ended
  server.live.queueTranscript('removed')
  server.live.reset()
  expect(server.live.sessions).toHaveLength(1)
  expect(await server.live.nextSession()).toBe(server.live.sessions[0])
  open.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  expect(textOf(await open.until(turnComplete))).toBe('You said: Hello.')
})

test('[EL52] `close` ends the sessions and rejects pending waits', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  await server.live.nextSession()
  const [waiting] = await Promise.allSettled([server.live.nextSession(), server.live.close()])
  expect(waiting).toMatchObject({ status: 'rejected', reason: { code: 'closed' } })
  expect(await client.closed).toMatchObject({ code: 1006 })
})

test('[EL53] a test can send any message', async () => {
  await using server = await startLive()
  await using client = await connect(server)
  server.live.sessions[0]?.send({ toolCall: { functionCalls: [{ id: 'x', name: 'stray' }] } })
  expect((await client.until(toolCall)).at(-1)?.toolCall?.functionCalls?.[0]?.name).toBe('stray')
})

test('[EL53] a test can send any text', async () => {
  await using server = await startLive()
  const { send, socket } = await connectRaw(server)
  send(TEXT_SETUP)
  const session = await server.live.nextSession()
  const frame = new Promise<string>((resolve) => {
    socket.on('message', (data: Buffer) => {
      if (data.toString() !== '{"setupComplete":{}}') resolve(data.toString())
    })
  })
  session.sendText('{"half":')
  expect(await frame).toBe('{"half":')
  socket.close()
})

test('[EL53] `emulator.live` has the sessions and uses the Live options', async () => {
  await using emulator = await startEmulator({
    respond: replies({ hi: [wait('on'), say('Hello.')] }),
    live: { defaultTranscript: 'hi' },
  })
  await using client = await connect(emulator)
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  const session = await emulator.live.nextSession()
  await session.waitFor((frame) => 'realtimeInput' in frame)
  expect(session.speaking).toBe(true)
  emulator.release('on')
  expect(textOf(await client.until(turnComplete))).toBe('Hello.')
})
