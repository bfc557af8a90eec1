import { Modality } from '@google/genai'
import { expect, test } from 'vitest'

import { startEmulator } from '../src/emulator.ts'
import {
  audio,
  connect,
  connectRaw,
  mindOf,
  say,
  silence,
  startLab,
  TEXT_SETUP,
  textOf,
  toolCall,
  turnComplete,
  voice,
  wait,
} from './live-lab.ts'

test('[EL49] a frame that is too large closes the connection with 1009', async () => {
  await using lab = await startLab({ maxFrameBytes: 1000 })
  const { send, closed } = await connectRaw(lab)
  send(TEXT_SETUP)
  send({ realtimeInput: { text: 'x'.repeat(1000) } })
  expect(await closed).toMatchObject({ code: 1009 })
})

test('[EL50] media in remembered frames are replaced by their size', async () => {
  await using lab = await startLab()
  await using client = await connect(lab, { config: { responseModalities: [Modality.AUDIO] } })
  const data = Buffer.alloc(640).toString('base64')
  client.session.sendRealtimeInput({ audio: { mimeType: 'audio/pcm;rate=16000', data } })
  client.say('hi')
  await client.until(turnComplete)
  const [session] = lab.desk.sessions
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

test('[EL50] recordAudio keeps them, and only the last frames are kept', async () => {
  await using lab = await startLab({ recordAudio: true, keepFrames: 2 })
  await using client = await connect(lab)
  for (const text of ['one', 'two', 'three']) client.session.sendRealtimeInput({ text })
  client.session.sendRealtimeInput({ video: { mimeType: 'image/png', data: 'aW1n' } })
  const [session] = lab.desk.sessions
  await session?.waitFor((frame) => JSON.stringify(frame).includes('aW1n'))
  expect(session?.received).toEqual([
    { realtimeInput: { text: 'three' } },
    { realtimeInput: { video: { mimeType: 'image/png', data: 'aW1n' } } },
  ])
})

test('[EL51] nextSession hands each session out once, in order', async () => {
  await using lab = await startLab()
  const awaited = lab.desk.nextSession()
  await connect(lab)
  await connect(lab)
  expect(await awaited).toBe(lab.desk.sessions[0])
  expect(await lab.desk.nextSession()).toBe(lab.desk.sessions[1])
  await expect(lab.desk.nextSession(AbortSignal.abort())).rejects.toThrow(/abort/)
  const controller = new AbortController()
  const abandoned = lab.desk.nextSession(controller.signal)
  controller.abort()
  await expect(abandoned).rejects.toThrow(/abort/)
})

test('[EL51] waitFor gives up when the session ends or the signal aborts', async () => {
  await using lab = await startLab()
  await using client = await connect(lab)
  const session = await lab.desk.nextSession()
  const controller = new AbortController()
  const abandoned = session.waitFor(() => false, controller.signal)
  const disappointed = session.waitFor(() => false)
  controller.abort()
  await expect(abandoned).rejects.toThrow(/abort/)
  client.session.close()
  await expect(disappointed).rejects.toMatchObject({ code: 'closed' })
  await expect(session.waitFor(() => false)).rejects.toMatchObject({ code: 'closed' })
  expect(await session.waitFor((frame) => 'setup' in frame)).toHaveProperty('setup')
})

test('[EL52] reset forgets what has ended', async () => {
  await using lab = await startLab()
  const gone = await connect(lab)
  await connect(lab)
  gone.session.close()
  await lab.desk.sessions[0]?.ended
  lab.desk.hear('forgotten')
  lab.desk.reset()
  expect(lab.desk.sessions).toHaveLength(1)
  expect(await lab.desk.nextSession()).toBe(lab.desk.sessions[0])
})

test('[EL52] closing the desk cuts the sessions and those who wait', async () => {
  await using lab = await startLab()
  await using client = await connect(lab)
  await lab.desk.nextSession()
  const [waiting] = await Promise.allSettled([lab.desk.nextSession(), lab.desk.close()])
  expect(waiting).toMatchObject({ status: 'rejected', reason: { code: 'closed' } })
  expect(await client.closed).toMatchObject({ code: 1006 })
})

test('[EL53] the test can send anything', async () => {
  await using lab = await startLab()
  await using client = await connect(lab)
  lab.desk.sessions[0]?.send({ toolCall: { functionCalls: [{ id: 'x', name: 'stray' }] } })
  expect((await client.until(toolCall)).at(-1)?.toolCall?.functionCalls?.[0]?.name).toBe('stray')
})

test('[EL53] and what is no message', async () => {
  await using lab = await startLab()
  const { send, socket } = await connectRaw(lab)
  send(TEXT_SETUP)
  const session = await lab.desk.nextSession()
  const frame = new Promise<string>((resolve) => {
    socket.on('message', (data: Buffer) => {
      if (data.toString() !== '{"setupComplete":{}}') resolve(data.toString())
    })
  })
  session.sendText('{"half":')
  expect(await frame).toBe('{"half":')
  socket.close()
})

test('[EL53] an emulator has its desk at `live`, and passes its options on', async () => {
  await using emulator = await startEmulator({
    mind: mindOf({ hi: [wait('on'), say('Hello.')] }),
    live: { utterance: 'hi' },
  })
  await using client = await connect(emulator)
  client.session.sendRealtimeInput({ audio: audio(voice(300), silence(600)) })
  const session = await emulator.live.nextSession()
  await session.waitFor((frame) => 'realtimeInput' in frame)
  expect(session.speaking).toBe(true)
  emulator.release('on')
  expect(textOf(await client.until(turnComplete))).toBe('Hello.')
})
