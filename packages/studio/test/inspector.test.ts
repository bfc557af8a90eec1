import type { Timeline, WireEvent } from 'adk-stream-protocol/client'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

import { type ApprovalEntry, readPath } from '../src/page/inspector/approval-picture.tsx'
import { listFacts } from '../src/page/inspector/entry-details.tsx'
import { describeWaiting, type Waiting } from '../src/page/inspector/waiting-note.tsx'
import { formatBytes, formatMs, formatTime } from '../src/page/inspector/format.ts'
import { startTrace, endTrace, traceChunk, type TurnTrace } from '../src/page/inspector/trace.ts'
import { en, type InspectorLabels, ja } from '../src/page/inspector/labels.ts'
import { createTimeScale, arrangeTimeline } from '../src/page/inspector/timeline-rows.ts'
import { WireLog } from '../src/page/inspector/wire-log.ts'

type Chunk = Extract<WireEvent, { type: 'chunk' }>['chunk']

const STARTED = {
  type: 'request',
  request: 'r1',
  chatId: 'c1',
  trigger: 'submit-message',
} as const satisfies WireEvent

const path = (facts: Partial<ApprovalEntry>) => readPath({ ...APPROVAL, ...facts })
const types = (facts: Partial<ApprovalEntry>) => path(facts).map(({ type }) => type)

function traceOf(chunks: readonly [at: number, chunk: Chunk][]): TurnTrace {
  const trace = startTrace(STARTED, 1000)
  for (const [at, chunk] of chunks) traceChunk(trace, chunk, at)
  return trace
}

const NOON = new Date(2026, 10, 17, 12, 0).getTime()

const CALL = { toolCallId: 'k', toolName: 'pay', args: {} }

const APPROVAL = {
  type: 'approval',
  id: 'approval:a',
  messageId: 'm',
  approvalId: 'a',
  toolCallId: 'k',
  toolName: 'pay',
  args: {},
  at: 0,
  state: 'requested',
  given: 0,
  needed: 1,
  votes: [],
} as const satisfies ApprovalEntry

describe('trace', () => {
  test('[IN1] consecutive deltas are one line with their text and number', () => {
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

  test('[IN1] the time to the first token ignores reasoning', () => {
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

  test('[IN1] a reply that ends early closes its open lines and gives the reason', () => {
    const trace = traceOf([[1010, { type: 'text-start', id: 't' }]])
    endTrace(trace, 1500, 'disconnected')
    expect(trace.spans[0]?.to).toBe(1500)
    expect([trace.endedAt, trace.error]).toEqual([1500, 'disconnected'])
  })

  test('[IN1] a call that waits when the reply ends is not shown as ended', () => {
    const trace = traceOf([
      [1010, { type: 'tool-input-available', toolCallId: 'k', toolName: 'pay', input: {} }],
      [1012, { type: 'tool-approval-request', approvalId: 'a', toolCallId: 'k' }],
    ])
    endTrace(trace, 1500)
    expect(trace.spans.map(({ to }) => to)).toEqual([undefined, undefined])
  })

  test('[IN3] a reply of any length keeps a bounded number of lines and characters', () => {
    const trace = startTrace(STARTED, 0)
    for (let index = 0; index < 3000; index += 1) {
      traceChunk(trace, { type: 'start-step' }, index)
      traceChunk(trace, { type: 'text-delta', id: 't', delta: 'x'.repeat(5000) }, index)
    }
    expect(trace.entries).toHaveLength(500)
    expect(Math.max(...trace.entries.map(({ detail }) => detail.length))).toBeLessThan(10_000)
  })
})

describe('approval path', () => {
  test('[IN2] an approval whose call has run shows every step with its duration', () => {
    const done = path({
      votes: [
        { by: 'ann', at: 1000 },
        { by: 'bob', at: 4000 },
      ],
      decision: { state: 'approved', at: 4000, by: 'bob' },
      startedAt: 4001,
      finishedAt: 4100,
      state: 'succeeded',
    })
    expect(done.map(({ type, tookMs, by }) => [type, tookMs, by])).toEqual([
      ['requested', undefined, undefined],
      ['voted', 1000, 'ann'],
      ['approved', 3000, 'bob'],
      ['started', 1, undefined],
      ['succeeded', 99, undefined],
    ])
  })

  test('[IN2] a pending approval shows the remaining steps, and a denied or ended one has none', () => {
    expect(types({})).toEqual(['requested', undefined, undefined, undefined])
    for (const state of ['denied', 'expired', 'cancelled'] as const)
      expect(types({ decision: { state, at: 9 }, state })).toEqual(['requested', state])
  })

  test('[IN2] one vote of several is not a decision, and can be withdrawn', () => {
    const stops = path({ votes: [{ by: 'ann', at: 5, withdrawnAt: 7 }], needed: 2 })
    expect(stops.map(({ stage, type }) => [stage, type])).toEqual([
      ['requested', 'requested'],
      ['decided', 'voted'],
      ['decided', 'withdrawn'],
      ['decided', undefined],
      ['started', undefined],
      ['ended', undefined],
    ])
  })

  test('[IN2] a time of another day has its day, also that of a deadline', () => {
    const deadline = Date.now() + 172_800_000
    for (const labels of [en, ja]) {
      const day = new Date(deadline).toLocaleDateString(labels.locale, { day: 'numeric' })
      const facts = (at: number) =>
        Object.fromEntries(listFacts({ ...APPROVAL, deadline: at }, labels, undefined))
      expect(facts(deadline)[labels.facts.expires]).toContain(day)
      expect(facts(deadline)[labels.facts.expires]).not.toBe(
        facts(Date.now())[labels.facts.expires],
      )
      expect(formatTime(NOON, labels, { now: NOON + 1 })).toBe(
        new Date(NOON).toLocaleTimeString(labels.locale, { timeStyle: 'medium' }),
      )
      expect(formatTime(NOON, labels, { now: NOON - 86_400_000 })).toContain('17')
    }
  })
})

describe('current wait', () => {
  const open = { state: 'open' } as const
  const NOW = new Date(2026, 10, 16, 9, 0).getTime()
  const call = { toolCallId: 'k', toolName: 'pay', args: {}, messageId: 'm', since: 0 }
  const pending = {
    for: 'approval',
    ...call,
    approvalId: 'a',
    deadline: new Date(2026, 10, 16, 17, 16).getTime(),
    given: 0,
    needed: 1,
    approvers: { principals: ['ann'], roles: ['approver'] },
    approvedBy: [],
    byReader: true,
    votedByReader: false,
  } as const satisfies Timeline['waits'][number]
  const voted = { ...pending, given: 1, needed: 2, byReader: false, votedByReader: true }

  test.each<[string, Partial<Waiting>, string, string]>([
    ['the person', {}, 'Idle: waiting for your message.', 'メッセージをお待ちしています。'],
    ['the model', { busy: true }, 'Waiting for the model.', 'モデルの応答を待っています。'],
    [
      'a decision of this person',
      { waits: [pending, pending] },
      'Waiting for your decision: $600.00 to Bob. Expires at 5:16 PM. 1 more in this chat.',
      'あなたの承認を待っています：$600.00 to Bob（期限 17:16）。ほかに1件あります。',
    ],
    [
      'a decision of other people',
      { waits: [{ ...pending, byReader: false }] },
      'Waiting for ann or approver to decide: $600.00 to Bob. Expires at 5:16 PM.',
      'ann・approver の承認を待っています：$600.00 to Bob（期限 17:16）',
    ],
    [
      'a second approver',
      { waits: [voted] },
      'Waiting for a second approver: $600.00 to Bob. 1 of 2 approved, including you. Expires at 5:16 PM.',
      '二人目の承認を待っています：$600.00 to Bob（2人中1人（あなた）が承認、期限 17:16）',
    ],
    [
      'the second vote, of this person',
      { waits: [{ ...voted, byReader: true, votedByReader: false }] },
      'Waiting for your approval: $600.00 to Bob. 1 of 2 approved. Expires at 5:16 PM.',
      'あなたの承認を待っています：$600.00 to Bob（2人中1人が承認、期限 17:16）',
    ],
    [
      'a decision until tomorrow',
      { waits: [{ ...pending, deadline: new Date(2026, 10, 17, 9, 2).getTime() }] },
      'Waiting for your decision: $600.00 to Bob. Expires at 9:02 AM on Tue, Nov 17.',
      'あなたの承認を待っています：$600.00 to Bob（期限 11月17日(火) 9:02）',
    ],
    [
      'a tool',
      { waits: [{ for: 'tool', ...call }] },
      'Waiting for a tool: $600.00 to Bob.',
      'ツールの結果を待っています：$600.00 to Bob',
    ],
    [
      'the connection',
      { connection: { state: 'lost', retryAt: NOW + 6_500 }, waits: [pending] },
      'Connection lost. Next attempt in 7 s.',
      '接続が切れました。7秒後に再接続します。',
    ],
  ])('[IN4] the sentence for a chat that waits for %s', (_name, state, english, japanese) => {
    const waiting = { connection: open, waits: [], busy: false, now: NOW, ...state }
    const sentence = (labels: InspectorLabels) =>
      // Some versions of ICU write a narrow space before PM.
      describeWaiting(waiting, labels, () => '$600.00 to Bob').sentence.replaceAll('\u202F', ' ')
    expect(sentence(en)).toBe(english)
    expect(sentence(ja)).toBe(japanese)
  })
})

describe('time axis', () => {
  test('[IN380] work is drawn to scale; long waits and pauses are shortened and marked', () => {
    const { position, breaks } = createTimeScale([
      { from: 0, to: 1_000, waiting: false },
      { from: 1_000, to: 46_000, waiting: true },
      { from: 46_000, to: 47_000, waiting: false },
      { from: 90_000, to: 91_000, waiting: false },
    ])
    const length = position(1_000) - position(0)
    expect(position(47_000) - position(46_000)).toBeCloseTo(length)
    expect(position(91_000)).toBeCloseTo(1)
    // The wait has a width, but far less than 45 times that of the work.
    expect((position(46_000) - position(1_000)) / length).toBeCloseTo(0.9)
    expect(breaks.map(({ ms }) => ms)).toEqual([45_000, 43_000])
  })

  test('[IN380] a short wait is drawn to scale, and an empty axis has no length', () => {
    const { position, breaks } = createTimeScale([
      { from: 0, to: 1_000, waiting: false },
      { from: 1_000, to: 1_200, waiting: true },
    ])
    expect([position(1_000), position(1_200), breaks]).toEqual([1_000 / 1_200, 1, []])
    expect(createTimeScale([]).position(5)).toBe(0)
  })

  test('[IN380] a wait reaches from the request to the decision, over the turns between', () => {
    const base = { messageId: 'm', at: 0 }
    const { turns } = arrangeTimeline(
      {
        entries: [
          { ...base, type: 'message', id: 'u', text: 'Pay' },
          { ...base, type: 'turn', id: 't', state: 'waiting' },
          { ...base, type: 'model', id: 'model', endedAt: 100 },
          { ...APPROVAL, at: 100, endedAt: 45_100 },
          { ...base, type: 'tool', id: 'tool', at: 45_110, ...CALL, state: 'running' },
          { ...base, type: 'interruption', id: 'i', at: 45_120 },
        ],
      },
      [{ ...startTrace(STARTED, 0), messageId: 'm', endedAt: 90 }],
      45_200,
    )
    expect(turns).toHaveLength(1)
    expect(turns[0]?.text).toBe('Pay')
    expect(turns[0]?.rows.map(({ lane, from, to, isOpen }) => [lane, from, to, isOpen])).toEqual([
      ['model', 0, 100, false],
      ['network', 0, 90, false],
      ['wait', 100, 45_100, false],
      ['tool', 45_110, 45_200, true],
      ['moment', 45_120, undefined, false],
    ])
  })

  test('[IN2] the facts of an approval name each vote, the decision, the person and the time', () => {
    const facts = listFacts(
      {
        ...APPROVAL,
        needed: 2,
        given: 2,
        votes: [
          { by: 'me', at: 0 },
          { by: 'browser-0123456789-abcdef', at: 1 },
        ],
        decision: { state: 'approved', at: 1, by: 'browser-0123456789-abcdef', reason: 'Fine.' },
      },
      en,
      'me',
    )
    const values = Object.fromEntries(facts.map(([name, value]) => [name, value.split(' · ')[0]]))
    expect(facts.filter(([name]) => name === 'Approved by')).toHaveLength(2)
    expect(facts[2]?.[1]).toMatch(/^you · /)
    expect(facts[3]?.[1]).toMatch(/^browser-…cdef · /)
    expect(values).toMatchObject({
      Approvals: '2 of 2 approved',
      Decision: 'approved',
      Reason: 'Fine.',
    })
  })
})

describe('wire log', () => {
  const frames: (() => void)[] = []
  beforeEach(() => {
    frames.length = 0
    vi.stubGlobal('requestAnimationFrame', (draw: () => void) => frames.push(draw))
  })
  afterEach(() => vi.unstubAllGlobals())

  test('[IN3] listeners are notified once per animation frame, however many events arrive', () => {
    const log = new WireLog()
    const listener = vi.fn<() => void>()
    log.subscribe(listener)
    log.observe(STARTED)
    for (let index = 0; index < 5000; index += 1)
      log.observe({
        type: 'chunk',
        request: 'r1',
        chatId: 'c1',
        chunk: { type: 'text-delta', id: 't', delta: 'x' },
      })
    expect(frames).toHaveLength(1)
    for (const draw of frames) draw()
    expect(listener).toHaveBeenCalledOnce()
    expect(log.view().turns[0]?.chunks).toBe(5000)
    expect(log.view()).toBe(log.view())
  })

  test('[IN3] the oldest frames and replies are dropped first', () => {
    const log = new WireLog()
    for (let index = 0; index < 1500; index += 1)
      log.observe({ type: 'frame', direction: 'in', frame: { type: 'pong', nonce: String(index) } })
    for (let index = 0; index < 30; index += 1) log.observe({ ...STARTED, request: `r${index}` })
    const { lines, turns } = log.view()
    expect([lines.length, turns.length]).toEqual([1000, 20])
    expect([lines.at(-1)?.type, turns.at(-1)?.request]).toEqual(['request', 'r29'])
  })

  test('[IN3] over HTTP, chunks are lines, and consecutive deltas are one', () => {
    const log = new WireLog()
    const stream = { request: 'r1', chatId: 'c1' }
    log.observe(STARTED, 'http')
    for (const delta of ['Hel', 'lo'])
      log.observe(
        { type: 'chunk', ...stream, chunk: { type: 'text-delta', id: 't', delta } },
        'http',
      )
    log.observe({ type: 'chunk', ...stream, chunk: { type: 'text-end', id: 't' } }, 'http')
    log.observe({ type: 'end', ...stream, error: 'lost' }, 'http')
    expect(log.view().lines.map(({ direction, type, count }) => [direction, type, count])).toEqual([
      ['out', 'request', 1],
      ['in', 'text-delta', 2],
      ['in', 'text-end', 1],
      ['in', 'end', 1],
    ])
    expect(log.view().lines[1]?.content).toMatchObject({ delta: 'Hello' })
  })

  test('[IN3] a decision outside the stream is a line, and so is its response', () => {
    const log = new WireLog()
    const respond = log.observeCall({
      method: 'POST',
      path: '/approvals/a',
      body: { approved: true },
    })
    respond(200)
    expect(log.view().lines.map(({ direction, type }) => [direction, type])).toEqual([
      ['out', 'POST /approvals/a'],
      ['in', '200 POST /approvals/a'],
    ])
  })

  test('[IN3] frames of both directions are shown, and audio is counted but not kept', () => {
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

test('[IN1] durations and sizes are formatted for people', () => {
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
