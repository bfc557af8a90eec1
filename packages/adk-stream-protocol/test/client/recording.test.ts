import { DefaultChatTransport as Transport6 } from 'ai'
import { describe, expect, test, vi } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import {
  type AdkUIMessage,
  Player,
  playRecording,
  readRecording,
  Recorder,
  sseTransport,
} from '../../src/client/index.ts'
import { ApprovingChat } from '../approvals/support/approving-chat.ts'
import { TestBridge } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { textOf } from '../support/chat-probe.ts'
import { ClientPage, openSse, versions, type Version } from './support/client-page.ts'

const HEADERS = { 'x-api-key': 'hanako' }

async function record(version: Version): Promise<{ jsonl: string; messages: unknown }> {
  await using testBridge = await TestBridge.open()
  const recorder = new Recorder()
  const live = { hold: false, observe: recorder.observe }
  await using page = new ClientPage({ url: testBridge.url, version, live })
  recorder.start()
  const { transport } = page
  const chat = new ApprovingChat(version.open({ id: 'chat-1', messages: [], transport }), {})
  await chat.send('[[say One.]]')
  await chat.send(`[[say Let me see.]]${callPayment(5)}`)
  return { jsonl: recorder.toJsonl(), messages: assistants(chat) }
}

function assistants(chat: ApprovingChat): unknown {
  return plain(chat.messages.filter(({ role }) => role === 'assistant'))
}

function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value))
}

function stepThrice(player: Player): void {
  for (let step = 0; step < 3; step += 1) player.step()
}

describe.each(oneOf(versions, 'ai 6'))('$name', (version) => {
  test.each(['fast', 'real-time'] as const)(
    '[CL14] a recording played %s shows the same messages',
    async (pace) => {
      const { jsonl, messages } = await record(version)
      const transport = new Player({ recording: jsonl, pace })
      const chat = new ApprovingChat(version.open({ id: 'other', messages: [], transport }), {})
      await chat.send('anything')
      await chat.send('anything')
      expect(assistants(chat)).toEqual(messages)
      expect(transport.left).toBe(0)
      const frames = readRecording(jsonl).flatMap((line) =>
        line.type === 'frame' ? [line.direction] : [],
      )
      expect(new Set(frames)).toEqual(new Set(['in', 'out']))
      await chat.send('once more')
      expect(chat.error).toMatchObject({ code: 'nothing-new' })
    },
  )

  test('[CL14] a recording played at the pace `step` continues with each step()', async () => {
    const { jsonl } = await record(version)
    const transport = new Player({ recording: jsonl, pace: 'step' })
    const chat = new ApprovingChat(version.open({ id: 'other', messages: [], transport }), {})
    const played = chat.send('anything')
    // start, start-step, text-start, the text
    stepThrice(transport)
    await chat.until(({ status }) => status === 'streaming')
    expect(chat.text).toBe('')
    transport.step()
    await chat.untilShown('One.')
    expect(chat.status).toBe('streaming')
    stepThrice(transport)
    await played
    expect(chat.status).toBe('ready')
  })

  test('[CL14] a recording contains a whole conversation: messages, approvals, decisions, regenerated replies', async () => {
    await using testBridge = await TestBridge.open()
    const recorder = new Recorder()
    recorder.start()
    const transport = sseTransport({
      url: testBridge.url,
      headers: HEADERS,
      observe: recorder.observe,
    })
    const chat = await openSse(transport, version)
    await chat.send('[[say One.]]')
    await chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
    await chat.decide(true)
    await chat.send('[[say Three.]]')
    await chat.regenerate()
    const stage = { messages: [] }
    await playRecording(stage, recorder.toJsonl()).done
    expect(plain(stage.messages)).toEqual(plain(chat.messages))
  })

  test('[CL14] a reply that was interrupted and resumed is played as one message', async () => {
    await using testBridge = await TestBridge.open()
    const recorder = new Recorder()
    recorder.start()
    const live = { observe: recorder.observe }
    await using page = new ClientPage({ url: testBridge.url, version, live })
    const chat = await page.open()
    void chat.send('[[say One.]][[wait more]][[say Two.]]')
    await chat.untilShown('One.')
    page.cut()
    await vi.waitFor(() => expect(page.types).toContain('resume'), {
      timeout: 120_000,
      interval: 10,
    })
    testBridge.emulator.release('more')
    await chat.untilShown('One.Two.')
    await chat.rest()
    const recording = recorder.toJsonl()
    const stage = { messages: [] }
    await playRecording(stage, recording).done
    expect(plain(stage.messages)).toEqual(plain(chat.messages))
    const transport = new Player({ recording })
    const other = new ApprovingChat(version.open({ id: 'other', messages: [], transport }), {})
    await other.send('anything')
    expect(other.text).toBe('One.Two.')
    expect(transport.left).toBe(0)
    await other.resume()
    expect(other.status).toBe('ready')
  })

  test('[CL14] a turn that the client did not request is recorded, and played where it was shown', async () => {
    await using testBridge = await TestBridge.open()
    const recorder = new Recorder()
    recorder.start()
    const live = { observe: recorder.observe }
    await using page = new ClientPage({ url: testBridge.url, version, live })
    const chat = await page.open()
    const first = chat.send('[[say One.]][[wait never]]')
    await chat.untilShown('One.')
    page.transport.sendText('chat-1', '[[say Two.]]')
    await chat.until(({ messages }) => messages.some((message) => textOf(message) === 'Two.'))
    await first
    const stage: { messages: { parts: readonly { type: string; text?: string }[] }[] } = {
      messages: [],
    }
    await playRecording(stage as never, recorder.toJsonl()).done
    expect(
      stage.messages.map(({ parts }) => parts.find(({ type }) => type === 'text')?.text),
    ).toEqual(['[[say One.]][[wait never]]', 'One.', '[[say Two.]]', 'Two.'])
  })
})

test('[CL14] a playback at the pace `step` can be stopped', async () => {
  const { jsonl } = await record(versions[0])
  const stage: { messages: unknown[] } = { messages: [] }
  const playback = playRecording(stage as never, jsonl, { pace: 'step' })
  playback.step()
  await new Promise(setImmediate)
  expect(stage.messages).toMatchObject([{ role: 'user', parts: [{ text: '[[say One.]]' }] }])
  playback.stop()
  await playback.done
  expect(stage.messages).toHaveLength(1)
})

test('[CL14] a transport of the AI SDK is recorded as well', async () => {
  await using testBridge = await TestBridge.open()
  const recorder = new Recorder()
  recorder.start()
  const foreign = new Transport6({ api: `${testBridge.url}/stream`, headers: HEADERS })
  const transport = recorder.record(foreign)
  const [version] = versions
  const chat = version && new ApprovingChat(version.open({ id: 'x', messages: [], transport }), {})
  await chat?.send('[[say One.]]')
  const stage = { messages: [] }
  await playRecording(stage, recorder.toJsonl()).done
  expect(plain(stage.messages)).toEqual(plain(chat?.messages))
})

test('[CL14] a recorder keeps nothing before it is started, and at most `maxLines`', () => {
  const recorder = new Recorder({ maxLines: 3 })
  const see = (count: number): void =>
    recorder.observe({ type: 'frame', direction: 'in', frame: { count } })
  see(0)
  expect(recorder.toJsonl()).toBe('')
  recorder.start()
  for (const count of [1, 2, 3, 4, 5]) see(count)
  expect(readRecording(recorder.toJsonl())).toMatchObject([
    { type: 'start' },
    ...[3, 4, 5].map((count) => ({ frame: { count } })),
  ])
  expect(recorder.dropped).toBe(2)
  recorder.stop()
  see(6)
  expect(readRecording(recorder.toJsonl())).toHaveLength(4)
})

const MINE = { id: 'u', role: 'user', parts: [{ type: 'text', text: 'Hello' }] }

/** An approval request, a vote and the rest of the reply, with recorded pauses of an hour. */
const VOTED = [
  { at: 0, type: 'start', time: 1_000_000 },
  { at: 10, type: 'request', request: 0, chatId: 'c', trigger: 'submit-message', message: MINE },
  { at: 20, type: 'chunk', request: 0, chunk: { type: 'start', messageId: 'm' } },
  { at: 30, type: 'chunk', request: 0, chunk: { type: 'text-start', id: 't' } },
  { at: 40, type: 'chunk', request: 0, chunk: { type: 'text-delta', id: 't', delta: 'One' } },
  { at: 50, type: 'votes', chatId: 'c', approvalId: 'a', given: 1, voted: true },
  {
    at: 3_600_050,
    type: 'chunk',
    request: 0,
    chunk: { type: 'text-delta', id: 't', delta: 'Two' },
  },
]
  .map((line) => JSON.stringify(line))
  .join('\n')

test('[CL380] a playback reports its progress, seeks in both directions, pauses, and contains votes and times', async () => {
  const target: { messages: AdkUIMessage[] } = { messages: [] }
  const seen: { position: number; length: number; time: number | undefined; given?: number }[] = []
  const playback = playRecording(target, VOTED, {
    pace: 'real-time',
    onProgress: ({ votes, ...progress }) => {
      const given = votes.get('a')?.given
      seen.push({ ...progress, ...(given !== undefined && { given }) })
    },
  })
  playback.pause()
  const text = () => JSON.stringify(target.messages.at(-1)?.parts)
  playback.seek(4)
  expect(seen.at(-1)).toEqual({ position: 4, length: 6, time: 1_000_040 })
  expect(text()).toContain('One')
  playback.seek(99)
  expect(seen.at(-1)).toEqual({ position: 6, length: 6, time: 4_600_050, given: 1 })
  expect(text()).toContain('OneTwo')
  playback.seek(1)
  expect(seen.at(-1)).toEqual({ position: 1, length: 6, time: 1_000_010 })
  expect(target.messages).toHaveLength(1)
  // Paused: nothing is played until it continues.
  await new Promise((resolve) => setTimeout(resolve, 30))
  expect(seen.at(-1)?.position).toBe(1)
  playback.resume()
  await expect.poll(() => seen.at(-1)?.position).toBe(5)
  playback.seek(6)
  await playback.done

  const at: number[] = []
  const fast = playRecording(target, VOTED, {
    onProgress: ({ position }) => void at.push(position),
  })
  await fast.done
  fast.seek(2)
  await new Promise((resolve) => setTimeout(resolve, 10))
  // It stays there.
  expect(at.at(-1)).toBe(2)
})

test.each([
  ['another text', 'Dear diary,'],
  ['other JSON lines', '{"no":"recording"}'],
  ['a line of a later kind', '{"at":1,"type":"smell"}'],
  ['a list', '[]'],
  ['nothing at all', 'null'],
])('[CL14] %s is not a recording', (_name, text) => {
  expect(() =>
    readRecording(`{"at":0,"type":"sound","direction":"in","bytes":1}\n${text}\n`),
  ).toThrow(SyntaxError)
})
