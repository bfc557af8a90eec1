import { Modality } from '@google/genai'
import { describe, expect, test } from 'vitest'

import { oneOf } from '../../../../test/support/long-run.ts'
import type { MessageView } from '../../src/client/connection/chat-messages.ts'
import { showUserMessage } from '../../src/client/connection/chat-messages.ts'
import { showTurn } from '../../src/client/sync/read-into-chat.ts'
import type { LiveEvent, WireEvent } from '../../src/client/index.ts'
import type { Chunk } from '../../src/protocol/chunk.ts'
import type { Message } from '../../src/protocol/message.ts'
import { expectValid } from '../approvals/support/expect-record.ts'
import { TestBridge, type TestBridgeOptions } from '../approvals/support/test-bridge.ts'
import { callPayment } from '../approvals/support/payments.ts'
import { textOf, toolParts } from '../support/chat-probe.ts'
import { ClientPage, versions } from './support/client-page.ts'

const SPOKEN: TestBridgeOptions = {
  live: (model) => ({
    model,
    runConfig: {
      responseModalities: [Modality.AUDIO],
      inputAudioTranscription: {},
      outputAudioTranscription: {},
    },
  }),
}

/** A second of a loud tone and a second of silence, at 16 kHz. */
function utterance(): Uint8Array<ArrayBuffer>[] {
  const samples = new Int16Array(32_000).map((_zero, index) =>
    index < 16_000 ? Math.round(8_000 * Math.sin(index / 8)) : 0,
  )
  const bytes = new Uint8Array(samples.buffer)
  return Array.from({ length: 20 }, (_none, index) =>
    bytes.slice(index * 3_200, (index + 1) * 3_200),
  )
}

/** Opens a chat whose reply has begun and does not end. */
async function openDuringReply(page: ClientPage): ReturnType<ClientPage['open']> {
  const chat = await page.open()
  void chat.send('[[say One.]][[wait never]]')
  await chat.untilShown('One.')
  return chat
}

describe.each(oneOf(versions, 'ai 6'))('$name', (version) => {
  test('[CL13] a turn that was decided elsewhere continues in the messages of an idle page', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version, live: { hold: false } })
    const chat = await page.open()
    const events: LiveEvent[] = []
    page.transport.watch('chat-1', (event) => events.push(event))
    await chat.send(`${callPayment(50)}[[then]][[say Paid.]]`)
    const [id = ''] = chat.asked
    await page.sse().decide({ approvalId: id, approved: true })
    await chat.untilShown('Paid.')
    expect(toolParts(chat.lastMessage)).toMatchObject([
      { state: 'output-available', approval: { id, approved: true } },
    ])
    expect(chat.messages).toHaveLength(2)
    expect(events).toContainEqual({ type: 'turn', messageId: chat.lastMessage?.id })
    expect(page.types).toEqual(['watch', 'send'])
    await expectValid(chat.messages)
    expect(await page.load('chat-1')).toEqual(JSON.parse(JSON.stringify(chat.messages)))
  })

  test('[CL13] a message that is sent during a reply is shown, and gets a reply', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    const first = chat.send('[[say One.]][[wait never]]')
    await chat.untilShown('One.')
    page.transport.sendText('chat-1', '[[say Two.]]')
    await chat.until(({ messages }) => messages.some((message) => textOf(message) === 'Two.'))
    await first
    expect(chat.messages.map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'user',
      'assistant',
    ])
    expect(chat.error).toBeUndefined()
  })

  test('[CL851] a text that a dead socket has accepted is sent over the next one, once', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await openDuringReply(page)
    const [socket] = page.sockets
    // Accepts everything, and sends nothing.
    if (socket) socket.send = () => undefined
    page.transport.sendText('chat-1', '[[say Two.]]')
    page.cut()
    await chat.until(({ messages }) => messages.some((message) => textOf(message) === 'Two.'))
    expect(testBridge.asked).toBe(2)
    expect((await page.load('chat-1')).map(textOf)).toContain('[[say Two.]]')
  })

  test('[CL851] a text that has arrived counts once, although the connection was lost before the server said so', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await openDuringReply(page)
    // The page receives nothing.
    page.sockets[0]?.removeAllListeners('message')
    page.transport.sendText('chat-1', '[[say Two.]]')
    await testBridge.untilAsked('Two.')
    page.cut()
    await chat.until(({ messages }) => messages.some((message) => textOf(message) === 'Two.'))
    await page.transport.ping()
    const users = (await page.load('chat-1')).filter(({ role }) => role === 'user')
    expect(users).toHaveLength(2)
    expect(testBridge.asked).toBe(2)
    // It was sent again, and the page shows it once.
    expect(page.types.filter((type) => type === 'text')).toHaveLength(2)
    expect(chat.messages.map(textOf).filter((text) => text === 'Two.')).toHaveLength(1)
  })

  test('[CL851] a text that the server refuses is an error of the chat, and is sent once', async () => {
    await using testBridge = await TestBridge.open({ limits: { maxTextLength: 100 } })
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await openDuringReply(page)
    const text = 'Stop! '.repeat(20)
    page.transport.sendText('chat-1', text)
    await chat.until(() => chat.status === 'error')
    expect(chat.error).toMatchObject({ code: 'too-large' })
    expect(page.types.filter((type) => type === 'send')).toHaveLength(2)
    expect(textOf(chat.lastMessage)).toBe(text)
  })

  test('[LV850] a text that is sent again while the first one is being handled counts once', async () => {
    await using testBridge = await TestBridge.open()
    await using page = new ClientPage({ url: testBridge.url, version })
    await using other = new ClientPage({ url: testBridge.url, version })
    page.transport.watch('chat-1')
    other.transport.watch('chat-1')
    await Promise.all([page.transport.ping(), other.transport.ping()])
    for (const { transport } of [page, other])
      transport.sendText('chat-1', '[[say Once.]]', 'text-1')
    await testBridge.untilAsked('Once.')
    await Promise.all([page.transport.ping(), other.transport.ping()])
    const users = (await page.load('chat-1')).filter(({ role }) => role === 'user')
    expect(users).toHaveLength(1)
  })

  test('[CL15] speech gets a spoken reply, and both are messages', async () => {
    await using testBridge = await TestBridge.open(SPOKEN)
    await using page = new ClientPage({ url: testBridge.url, version })
    const chat = await page.open()
    const events: LiveEvent[] = []
    page.transport.watch('chat-1', (event) => events.push(event), { audio: 'binary' })
    await page.transport.ping()
    testBridge.emulator.live.queueTranscript('[[say Good morning.]]')
    for (const piece of utterance()) expect(page.transport.sendAudio(piece)).toBe(true)
    await chat.until(() => events.some(({ type }) => type === 'user-message'))
    await chat.until(() => textOf(chat.messages[1]).includes('morning.'))
    expect(chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
    expect(textOf(chat.messages[0])).toBe('[[say Good morning.]]')
    const sound = events.flatMap((event) =>
      event.type === 'audio' ? [event.bytes.byteLength] : [],
    )
    expect(sound.reduce((sum, length) => sum + length, 0)).toBeGreaterThan(10_000)
    expect(events.map(({ type }) => type)).toContain('transcript')
    expect(JSON.stringify(chat.messages)).not.toContain('data-pcm')
  })

  test('[RE750] a chat that nobody listens to receives a spoken reply without its audio', async () => {
    await using testBridge = await TestBridge.open(SPOKEN)
    const received: string[] = []
    const observe = (event: WireEvent): void => {
      if (event.type === 'frame' && event.direction === 'in') received.push(JSON.stringify(event))
    }
    await using page = new ClientPage({ url: testBridge.url, version, live: { observe } })
    const chat = await page.open()
    await chat.send('[[say Good morning.]]')
    await chat.untilShown('Good morning.')
    expect(received.filter((frame) => frame.includes('data-pcm'))).toEqual([])
    page.transport.watch('chat-1', undefined, { audio: 'base64' })
    await chat.send('[[say Good evening.]]')
    await chat.untilShown('Good evening.')
    expect(received.some((frame) => frame.includes('data-pcm'))).toBe(true)
  })
})

test('[CL13] a partial transcript is shown before its reply, and replaced by the final one', async () => {
  const chat = { messages: [] as MessageView[] }
  const turn = { messageId: 'a1', userMessage: toMessage('Good'), continues: false }
  await showTurn(chat, { ...turn, chunks: answer() })
  expect(chat.messages.map(({ id }) => id)).toEqual(['u1', 'a1'])
  showUserMessage(chat, toMessage('Good morning.'))
  expect(chat.messages.map(({ id }) => id)).toEqual(['u1', 'a1'])
  expect(chat.messages[0]).toEqual(toMessage('Good morning.'))
})

test('[CL900] a turn that is read from its start keeps the output of this page', async () => {
  const located = { type: 'tool-locate', toolCallId: 'c1', state: 'output-available', output: 1 }
  const chat = { messages: [{ id: 'a1', role: 'assistant', parts: [located] }] as MessageView[] }
  await showTurn(chat, { messageId: 'a1', continues: false, chunks: locate() })
  expect(chat.messages[0]?.parts).toEqual([located])
})

function toMessage(text: string): Message {
  return { id: 'u1', role: 'user', parts: [{ type: 'text', text }] }
}

async function* answer(): AsyncGenerator<Chunk, void> {
  yield { type: 'start', messageId: 'a1' }
  yield { type: 'text-start', id: 't1' }
  yield { type: 'text-delta', id: 't1', delta: 'Hello.' }
}

async function* locate(): AsyncGenerator<Chunk, void> {
  yield { type: 'start', messageId: 'a1' }
  yield { type: 'tool-input-available', toolCallId: 'c1', toolName: 'locate', input: {} }
}
