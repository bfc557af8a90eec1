import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import { setImmediate } from 'node:timers/promises'

import * as fc from 'fast-check'
import { describe, expect, test, vi } from 'vitest'

import { listen } from '../../../../test/support/listen.ts'
import type { Chunk, AudioChunk } from '../../src/protocol/chunk.ts'
import { createOffer } from '../../src/protocol/call-offers.ts'
import { foldChunks } from '../../src/protocol/fold-chunks.ts'
import type { Sink } from '../../src/turns/log-reader.ts'
import { TurnLog } from '../../src/turns/turn-log.ts'

const LIMITS = { maxLag: 1_000, stallTimeoutMs: 60_000, maxReplay: 1_000_000 }
const delta = (text: string, id = 'text-1'): Chunk => ({ type: 'text-delta', id, delta: text })

/** A reader that accepts `credit` chunks before it is full. */
class Reader implements Sink {
  readonly chunks: Chunk[] = []
  ended = false
  abandoned = false
  credit: number

  constructor(credit = Number.POSITIVE_INFINITY) {
    this.credit = credit
  }

  write(json: string): boolean {
    this.chunks.push(JSON.parse(json) as Chunk)
    this.credit -= 1
    return this.credit > 0
  }

  end(): void {
    this.ended = true
  }

  abandon(): void {
    this.abandoned = true
  }

  get text(): string {
    return this.chunks.flatMap((chunk) => ('delta' in chunk ? [chunk.delta] : [])).join('')
  }
}

/** A reader that sends held chunks in one piece. */
class HoldingReader implements Sink {
  readonly pieces: string[] = []
  isFull = false
  #held: string | undefined

  write(json: string): boolean {
    const { delta: text } = JSON.parse(json) as { delta: string }
    if (this.#held === undefined) this.pieces.push(text)
    else this.#held += text
    return true
  }

  hold(): void {
    this.#held = ''
  }

  flush(): boolean {
    this.pieces.push(this.#held ?? '')
    this.#held = undefined
    return !this.isFull
  }

  end(): void {}

  abandon(): void {}
}

describe('reading', () => {
  test('[TU1] a reader at the end of the log gets every chunk unchanged', () => {
    const log = new TurnLog(LIMITS)
    const reader = new Reader()
    log.attach(reader)
    for (const chunk of [delta('a'), delta('b')]) log.append(chunk)
    log.end()
    expect(reader.chunks).toEqual([delta('a'), delta('b')])
    expect(reader.ended).toBe(true)
  })

  test('[TU730] chunks that are appended together reach a sink that holds them in one piece, and others one by one', () => {
    const log = new TurnLog(LIMITS)
    const [plain, holding] = [new Reader(), new HoldingReader()]
    log.attach(plain)
    const reader = log.attach(holding)
    const append = (...ids: string[]): void =>
      log.appendTogether(() => {
        for (const id of ids) log.append(delta(id, id))
      })
    append('a', 'b')
    holding.isFull = true
    append('c', 'd')
    append('e', 'f')
    expect(holding.pieces).toEqual(['ab', 'cd'])
    holding.isFull = false
    reader?.drained()
    append('g', 'h')
    log.end()
    expect(holding.pieces).toEqual(['ab', 'cd', 'e', 'f', 'gh'])
    expect(plain.text).toBe('abcdefgh')
  })

  test('[TU1] a late reader gets consecutive deltas joined, and the rest as it is written', () => {
    const log = new TurnLog(LIMITS)
    for (const chunk of [delta('a'), delta('b'), delta('x', 'text-2')]) log.append(chunk)
    const reader = new Reader()
    log.attach(reader)
    log.append(delta('y', 'text-2'))
    expect(reader.chunks).toEqual([delta('ab'), delta('x', 'text-2'), delta('y', 'text-2')])
  })

  test('[TU1] a reader of an ended turn gets all chunks and the end', () => {
    const log = new TurnLog(LIMITS)
    log.append(delta('a'))
    log.end()
    const reader = new Reader()
    log.attach(reader)
    expect(reader).toMatchObject({ text: 'a', ended: true })
  })

  test('[TU1] every reader ends with the same message, however it stalls and drains', () => {
    const act = fc.oneof(
      fc.record({ do: fc.constant('text' as const), text: fc.string({ minLength: 1 }) }),
      fc.record({ do: fc.constant('part' as const) }),
      fc.record({ do: fc.constant('attach' as const), credit: fc.integer({ min: 1, max: 4 }) }),
      fc.record({ do: fc.constant('drain' as const), credit: fc.integer({ min: 1, max: 9 }) }),
    )
    fc.assert(
      fc.property(fc.array(act, { maxLength: 200 }), (acts) => {
        const log = new TurnLog({ ...LIMITS, maxLag: Number.POSITIVE_INFINITY })
        const readers: { reader: Reader; attachment: ReturnType<TurnLog['attach']> }[] = []
        const made: Chunk[] = []
        let part = 1
        const append = (chunk: Chunk) => {
          made.push(chunk)
          log.append(chunk)
        }
        append({ type: 'text-start', id: 'text-1' })
        for (const step of acts) {
          if (step.do === 'text') append(delta(step.text, `text-${part}`))
          else if (step.do === 'part') append({ type: 'text-start', id: `text-${++part}` })
          else if (step.do === 'attach') {
            const reader = new Reader(step.credit)
            readers.push({ reader, attachment: log.attach(reader) })
          } else
            for (const { reader, attachment } of readers) {
              reader.credit = step.credit
              attachment?.drained()
            }
        }
        log.end()
        for (const { reader, attachment } of readers) {
          reader.credit = Number.POSITIVE_INFINITY
          attachment?.drained()
          expect(reader.ended).toBe(true)
          expect(foldChunks('m', reader.chunks)).toEqual(foldChunks('m', made))
        }
      }),
      { numRuns: 300 },
    )
  })

  test('[TU1] joined deltas never split a surrogate pair', () => {
    const log = new TurnLog(LIMITS)
    const text = `a${'😀'.repeat(20_000)}`
    log.append(delta(text))
    const reader = new Reader()
    log.attach(reader)
    expect(reader.chunks.length).toBeGreaterThan(1)
    expect(reader.text).toBe(text)
    for (const chunk of reader.chunks)
      expect('delta' in chunk && chunk.delta.isWellFormed()).toBe(true)
  })
})

describe('pressure', () => {
  test('[TU3] a turn whose only reader is full is congested until it drains', async () => {
    const log = new TurnLog(LIMITS)
    const reader = new Reader(1)
    const attachment = log.attach(reader)
    while (!log.congested) log.append(delta('x'.repeat(1_000)))
    let room = false
    const waiting = log.room().then(() => (room = true))
    await setImmediate()
    expect(room).toBe(false)
    reader.credit = Number.POSITIVE_INFINITY
    attachment?.drained()
    await waiting
    expect(log.congested).toBe(false)
  })

  test('[TU3] a turn without readers is not congested', () => {
    const log = new TurnLog(LIMITS)
    log.append(delta('x'.repeat(500_000)))
    expect(log.congested).toBe(false)
  })

  test('[RL30] a log that was abandoned before a reader attached does not keep the reader waiting', () => {
    const log = new TurnLog(LIMITS)
    log.append(delta('x'))
    log.abandon()
    const late = new Reader()
    expect(log.attach(late)).toBeUndefined()
    expect(late.abandoned).toBe(true)
  })

  test('[TU4] a slow reader does not delay another one, and is detached', () => {
    const log = new TurnLog(LIMITS)
    const [slow, fast] = [new Reader(1), new Reader()]
    log.attach(slow)
    log.attach(fast)
    for (let index = 0; index < 100; index += 1) log.append(delta('x'.repeat(100)))
    expect(slow.abandoned).toBe(true)
    expect(fast.text).toHaveLength(10_000)
    expect(log.congested).toBe(false)
  })

  test('[TU4] a reader that accepts nothing for the stall time is detached', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const log = new TurnLog(LIMITS)
      const reader = new Reader(1)
      log.attach(reader)
      log.append(delta('x'))
      vi.advanceTimersByTime(LIMITS.stallTimeoutMs - 1)
      await setImmediate()
      expect(reader.abandoned).toBe(false)
      vi.advanceTimersByTime(1)
      await setImmediate()
      expect(reader.abandoned).toBe(true)
      expect(log.watched).toBe(false)
    } finally {
      vi.useRealTimers()
    }
  })

  test('[TU4] a reader that has read while the process was paused stays', async () => {
    const server = createServer((socket) => socket.end('read'))
    const socket = connect(await listen(server), '127.0.0.1').pause()
    await Promise.all([once(socket, 'connect'), once(server, 'connection')])
    const log = new TurnLog({ ...LIMITS, stallTimeoutMs: 20 })
    const reader = new Reader(1)
    const attached = log.attach(reader)
    log.append(delta('x'))
    const read = once(socket, 'end')
    socket.once('data', () => {
      reader.credit = Number.POSITIVE_INFINITY
      attached?.drained()
    })
    socket.resume()
    // The event loop is blocked for longer than the stall time. What the client has sent is read afterwards.
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
    await read
    await setImmediate()
    expect(reader.abandoned).toBe(false)
    server.close()
  })

  test('[TU3] a turn too long to be replayed continues for its reader, also after a stall', () => {
    const log = new TurnLog({ ...LIMITS, maxReplay: 5_000 })
    const reader = new Reader()
    const attachment = log.attach(reader)
    let expected = ''
    for (let index = 0; index < 200; index += 1) {
      const text = `${index} `.repeat(20)
      expected += text
      if (index === 150) reader.credit = 1
      log.append(delta(text))
      if (index === 170) {
        reader.credit = Number.POSITIVE_INFINITY
        attachment?.drained()
      }
    }
    log.end()
    expect(reader).toMatchObject({ text: expected, ended: true })
    expect(log.replayable).toBe(false)
    expect(log.attach(new Reader())).toBeUndefined()
  })
})

const piece = (content: string): AudioChunk => ({
  type: 'data-pcm',
  data: { content, sampleRate: 24_000, channels: 1, bitDepth: 16 },
  transient: true,
})

test('[BT10] a reader from the start gets the offers of open calls only', () => {
  const log = new TurnLog(LIMITS)
  const offers = ['call-1', 'call-2'].map(createOffer)
  const first = new Reader()
  log.attach(first)
  for (const offer of offers) log.append(offer)
  log.append({ type: 'tool-output-available', toolCallId: 'call-1', output: null })
  const again = new Reader()
  log.attach(again)
  expect(first.chunks).toHaveLength(3)
  expect(again.chunks.filter(({ type }) => type === 'data-browser-call')).toEqual([offers[1]])
})

test('[LV4] audio from before the first reader is sent to that reader, and to no later one', () => {
  const log = new TurnLog(LIMITS)
  const receiveAudio = (): string[] => {
    const received: string[] = []
    const reader = new Reader()
    log.attach({
      write: (json) => reader.write(json),
      end: () => reader.end(),
      abandon: () => reader.abandon(),
      pass: ({ data }) => void received.push(data.content),
    })
    return received
  }
  log.pass(piece('one'))
  const first = receiveAudio()
  log.pass(piece('two'))
  const later = receiveAudio()
  log.pass(piece('three'))
  expect(first).toEqual(['one', 'two', 'three'])
  expect(later).toEqual(['three'])
})
