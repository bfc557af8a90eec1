import type { AdkUIMessage, WireEvent } from 'adk-stream-protocol/client'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

import { readPath } from '../src/page/inspector/approval-path.ts'
import { formatBytes, formatMs } from '../src/page/inspector/format-ms.ts'
import { startTrace, endTrace, traceChunk, type TurnTrace } from '../src/page/inspector/trace.ts'
import { findBlocker } from '../src/page/inspector/find-blocker.ts'
import { WireLog } from '../src/page/inspector/wire-log.ts'

type Chunk = Extract<WireEvent, { type: 'chunk' }>['chunk']

const BEGUN = {
  type: 'request',
  request: 'r1',
  chatId: 'c1',
  trigger: 'submit-message',
} as const satisfies WireEvent

function traceOf(chunks: readonly [at: number, chunk: Chunk][]): TurnTrace {
  const trace = startTrace(BEGUN, 1000)
  for (const [at, chunk] of chunks) traceChunk(trace, chunk, at)
  return trace
}

const historyOf = (times: Readonly<Record<string, number>>) =>
  Object.entries(times).map(([type, time]) => ({ type, at: time }))

const message = (...parts: object[]): AdkUIMessage =>
  // Parts as the bridge makes them; the test names only what is looked at.
  ({ id: 'm', role: 'assistant', parts }) as unknown as AdkUIMessage
const call = (state: string) => ({ type: 'tool-pay', toolCallId: 'k', state, input: {} })
const approval = (state: string) => ({
  type: 'data-approval',
  data: { approvalId: 'a', toolCallId: 'k', state, deadline: 99 },
})

describe('trace', () => {
  test('[IN1] deltas that follow each other are one line with their text and number', () => {
    const { entries, chunks } = traceOf([
      [1010, { type: 'text-start', id: 't' }],
      [1020, { type: 'text-delta', id: 't', delta: 'こん' }],
      [1030, { type: 'text-delta', id: 't', delta: 'にちは' }],
      [1040, { type: 'text-end', id: 't' }],
    ])
    expect(entries.map(({ type, count, at, lastAt }) => [type, count, at, lastAt])).toEqual([
      ['text-start', 1, 1010, 1010],
      ['text-delta', 2, 1020, 1030],
      ['text-end', 1, 1040, 1040],
    ])
    expect(entries[1]?.detail).toBe('こんにちは')
    expect(chunks).toBe(4)
  })

  test('[IN1] the first word is not a thought', () => {
    const trace = traceOf([
      [1010, { type: 'reasoning-delta', id: 'r', delta: 'hm' }],
      [1200, { type: 'text-delta', id: 't', delta: 'Yes' }],
    ])
    expect([trace.firstAt, trace.firstWordAt]).toEqual([1010, 1200])
  })

  test('[IN1] a call lasts until its result, and its wait until it is decided', () => {
    const trace = traceOf([
      [1010, { type: 'tool-input-start', toolCallId: 'k', toolName: 'pay' }],
      [1011, { type: 'tool-input-available', toolCallId: 'k', toolName: 'pay', input: {} }],
      [1012, { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'k' }],
      [
        3000,
        { type: 'data-approval', data: { approvalId: 'a', toolCallId: 'k', state: 'approved' } },
      ],
      [3100, { type: 'tool-output-available', toolCallId: 'k', output: {} }],
    ])
    expect(trace.spans).toEqual([
      { kind: 'call', id: 'k', label: 'pay', from: 1010, to: 3100 },
      { kind: 'approval', id: 'k', label: 'pay', from: 1012, to: 3000 },
    ])
  })

  test('[IN1] an answer that ends early closes what is open and says why', () => {
    const trace = traceOf([[1010, { type: 'text-start', id: 't' }]])
    endTrace(trace, 1500, 'disconnected')
    expect(trace.spans[0]?.to).toBe(1500)
    expect([trace.endedAt, trace.error]).toEqual([1500, 'disconnected'])
  })

  test('[IN3] an answer of any length keeps a bounded number of lines and of text', () => {
    const trace = startTrace(BEGUN, 0)
    for (let index = 0; index < 3000; index += 1) {
      traceChunk(trace, { type: 'start-step' }, index)
      traceChunk(trace, { type: 'text-delta', id: 't', delta: 'x'.repeat(5000) }, index)
    }
    expect(trace.entries).toHaveLength(500)
    expect(Math.max(...trace.entries.map(({ detail }) => detail.length))).toBeLessThan(10_000)
  })
})

describe('approval path', () => {
  test('[IN2] an approval that was carried out has been everywhere', () => {
    const path = readPath(
      historyOf({ requested: 0, approved: 4000, started: 4001, succeeded: 4100 }),
    )
    expect(path.map(({ type, tookMs }) => [type, tookMs])).toEqual([
      ['requested', undefined],
      ['approved', 4000],
      ['started', 1],
      ['succeeded', 99],
    ])
  })

  test('[IN2] what waits shows what is ahead, what was refused goes nowhere', () => {
    expect(readPath(historyOf({ requested: 0 })).map(({ type }) => type)).toEqual([
      'requested',
      undefined,
      undefined,
      undefined,
    ])
    for (const end of ['denied', 'expired', 'cancelled'])
      expect(readPath(historyOf({ requested: 0, [end]: 9 })).map(({ type }) => type)).toEqual([
        'requested',
        end,
      ])
  })

  test('[IN2] a vote of several is not yet a decision', () => {
    expect(readPath(historyOf({ requested: 0, voted: 5 }))[1]).toEqual({ stage: 'decided' })
  })
})

describe('why it waits', () => {
  const open = { state: 'open' } as const

  test.each([
    ['the person', { messages: [], busy: false, connection: open }, undefined],
    ['the model', { messages: [], busy: true, connection: open }, { for: 'model' }],
    [
      'a tool',
      { messages: [message(call('input-available'))], busy: true, connection: open },
      { for: 'tool', toolName: 'pay' },
    ],
    [
      'a decision',
      {
        messages: [message(call('approval-requested'), approval('requested')), message()],
        busy: true,
        connection: open,
      },
      { for: 'decision', toolName: 'pay', deadline: 99 },
    ],
    [
      'a native approval without terms',
      { messages: [message(call('approval-requested'))], busy: false, connection: open },
      { for: 'decision', toolName: 'pay' },
    ],
    [
      'what was decided elsewhere',
      {
        messages: [message(call('approval-requested'), approval('approved'))],
        busy: true,
        connection: open,
      },
      { for: 'model' },
    ],
    [
      'the connection',
      {
        messages: [message(call('approval-requested'))],
        busy: true,
        connection: { state: 'lost', retryAt: 7 } as const,
      },
      { for: 'connection', retryAt: 7 },
    ],
  ])('[IN4] it waits for %s', (_name, situation, expected) => {
    expect(findBlocker(situation)).toEqual(expected)
  })
})

describe('wire log', () => {
  const frames: (() => void)[] = []
  beforeEach(() => {
    frames.length = 0
    vi.stubGlobal('requestAnimationFrame', (draw: () => void) => frames.push(draw))
  })
  afterEach(() => vi.unstubAllGlobals())

  test('[IN3] those who look are told once a frame, however much has passed', () => {
    const log = new WireLog()
    const told = vi.fn<() => void>()
    log.subscribe(told)
    log.observe(BEGUN)
    for (let index = 0; index < 5000; index += 1)
      log.observe({
        type: 'chunk',
        request: 'r1',
        chatId: 'c1',
        chunk: { type: 'text-delta', id: 't', delta: 'x' },
      })
    expect(frames).toHaveLength(1)
    for (const draw of frames) draw()
    expect(told).toHaveBeenCalledOnce()
    expect(log.view().turns[0]?.chunks).toBe(5000)
    expect(log.view()).toBe(log.view())
  })

  test('[IN3] the oldest frames and answers go first', () => {
    const log = new WireLog()
    for (let index = 0; index < 1500; index += 1)
      log.observe({ type: 'frame', direction: 'in', frame: { type: 'pong', nonce: String(index) } })
    for (let index = 0; index < 30; index += 1) log.observe({ ...BEGUN, request: `r${index}` })
    const { lines, turns } = log.view()
    expect([lines.length, turns.length]).toEqual([1000, 20])
    expect([lines.at(-1)?.type, turns.at(-1)?.request]).toEqual(['request', 'r29'])
  })

  test('[IN3] both directions are shown, and sound is counted, not kept', () => {
    const log = new WireLog()
    log.observe({ type: 'frame', direction: 'out', frame: { type: 'ping' } })
    log.observe({ type: 'frame', direction: 'in', frame: { type: 'pong' } })
    log.observe({ type: 'sound', direction: 'out', bytes: 640 })
    log.observe({ type: 'sound', direction: 'in', bytes: 960 })
    log.observe({ type: 'sound', direction: 'in', bytes: 960 })
    const { lines, sound } = log.view()
    expect(lines.map(({ direction, type }) => [direction, type])).toEqual([
      ['out', 'ping'],
      ['in', 'pong'],
    ])
    expect(sound).toEqual({ in: 1920, out: 640 })
  })
})

test('[IN1] durations and sizes are written for people', () => {
  expect([formatMs(84.6), formatMs(1240), formatMs(125_000)]).toEqual([
    '85 ms',
    '1.24 s',
    '2 min 5 s',
  ])
  expect([formatBytes(12), formatBytes(2048), formatBytes(3 * 1024 * 1024)]).toEqual([
    '12 B',
    '2.0 KiB',
    '3.0 MiB',
  ])
})
