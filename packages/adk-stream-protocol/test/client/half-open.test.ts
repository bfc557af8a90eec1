import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { webSocketTransport } from '../../src/client/index.ts'
import type { WebSocketTransport } from '../../src/client/index.ts'
import type { SocketClass } from '../../src/client/socket/reconnecting-socket.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A socket whose network loses everything that is sent, unless the test responds. It does not close either. */
class SilentSocket extends EventTarget {
  static opened: SilentSocket[] = []
  binaryType = ''
  readyState = 0
  bufferedAmount = 0
  readonly sent: { readonly type: string; readonly [key: string]: unknown }[] = []

  constructor() {
    super()
    SilentSocket.opened.push(this)
    queueMicrotask(() => {
      this.readyState = 1
      this.dispatchEvent(new Event('open'))
    })
  }

  send(data: string | Uint8Array): void {
    if (typeof data === 'string') this.sent.push(JSON.parse(data) as (typeof this.sent)[number])
  }

  close(): void {
    this.readyState = 2
  }

  /** Delivers a frame of the server. */
  receive(frame: object): void {
    this.dispatchEvent(new MessageEvent('message', { data: JSON.stringify(frame) }))
  }
}

function open(onRefused?: (refusal: { frame: string; code: string }) => void): WebSocketTransport {
  SilentSocket.opened = []
  // The events of an `EventTarget` are those of a socket, in wider types.
  const webSocket = SilentSocket as unknown as SocketClass
  return webSocketTransport({
    url: 'ws://localhost/live',
    webSocket,
    ...(onRefused && { onRefused }),
  })
}

const DECISION = { chatId: 'chat-1', approvalId: 'a', approved: true }

test('[CL36] a decision on a half-open connection is sent again over another one', async () => {
  const transport = open()
  const decided = transport.decide(DECISION)
  await vi.advanceTimersByTimeAsync(30_000)
  const [first, second] = SilentSocket.opened
  expect(first?.sent.map(({ type }) => type)).toEqual(['decide', 'ping'])
  expect(second?.sent.map(({ type }) => type)).toEqual(['decide'])
  const decisionId = second?.sent[0]?.['decisionId']
  second?.receive({ type: 'decided', decisionId, ok: true, state: 'approved' })
  expect(await decided).toBe('approved')
  transport.close()
})

test('[CL36] a server that responds to pings keeps its connection, and is not pinged when nothing waits', async () => {
  const transport = open()
  const decided = transport.decide(DECISION)
  await vi.advanceTimersByTimeAsync(20_000)
  const [socket] = SilentSocket.opened
  socket?.receive({ type: 'pong' })
  await vi.advanceTimersByTimeAsync(10_000)
  const decisionId = socket?.sent[0]?.['decisionId']
  socket?.receive({ type: 'decided', decisionId, ok: true, state: 'approved' })
  await decided
  const before = socket?.sent.length
  await vi.advanceTimersByTimeAsync(600_000)
  expect(SilentSocket.opened).toHaveLength(1)
  expect(socket?.sent).toHaveLength(before ?? 0)
  transport.close()
})

test('[CL10] a stop on a half-open connection is sent again over another one, until a ping after it is answered', async () => {
  const transport = open()
  const stopping = new AbortController()
  const opened = transport.sendMessages({
    chatId: 'chat-1',
    trigger: 'submit-message',
    messageId: undefined,
    messages: [{ id: 'u1', role: 'user', parts: [{ type: 'text', text: 'Hello.' }] }],
    abortSignal: stopping.signal,
  })
  await vi.advanceTimersByTimeAsync(1)
  const [first] = SilentSocket.opened
  const requestId = first?.sent[0]?.['requestId']
  first?.receive({ type: 'start', requestId })
  await opened
  stopping.abort()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(first?.sent.slice(1, 3)).toMatchObject([{ type: 'abort', stop: true }, { type: 'ping' }])
  const [, second, third] = SilentSocket.opened
  const stop = { type: 'stop', id: 'chat-1', messageId: 'u1' }
  for (const { sent } of [second, third].flatMap((each) => each ?? []))
    expect(sent[0]).toEqual(stop)
  const nonce = third?.sent.findLast(({ type }) => type === 'ping')?.['nonce']
  third?.receive({ type: 'pong', nonce })
  await vi.advanceTimersByTimeAsync(600_000)
  expect(SilentSocket.opened).toHaveLength(3)
  transport.close()
})

test('[CL36] audio that the network cannot send is dropped', async () => {
  const transport = open()
  transport.watch('chat-1', undefined, { audio: 'binary' })
  await vi.advanceTimersByTimeAsync(1)
  expect(transport.sendAudio(new Uint8Array(640))).toBe(true)
  const [socket] = SilentSocket.opened
  if (socket) socket.bufferedAmount = 100_000
  expect(transport.sendAudio(new Uint8Array(640))).toBe(false)
  transport.close()
})

test('[CL37] a closed transport opens no socket for the end of audio', async () => {
  const transport = open()
  transport.watch('chat-1', ({ type }) => {
    if (type !== 'given-up') return
    transport.endAudio('chat-1')
    transport.interrupt('chat-1')
    transport.markActivity('chat-1', 'end')
    transport.sendAudio(new Uint8Array(640))
  })
  await vi.advanceTimersByTimeAsync(1)
  transport.close()
  await vi.advanceTimersByTimeAsync(60_000)
  expect(SilentSocket.opened).toHaveLength(1)
  expect(transport.connection).toEqual({ state: 'closed' })
})

test('[CL37] texts and pictures that could not be sent are reported', async () => {
  const refused: unknown[] = []
  const transport = open(({ frame, code }) => refused.push([frame, code]))
  transport.sendText('chat-1', 'Stop the transfer!')
  transport.sendImage('chat-1', 'AAAA', 'image/png')
  transport.close()
  await vi.advanceTimersByTimeAsync(0)
  expect(refused).toHaveLength(2)
  expect(refused).toContainEqual(['text', 'unavailable'])
  expect(refused).toContainEqual(['image', 'unavailable'])
})
