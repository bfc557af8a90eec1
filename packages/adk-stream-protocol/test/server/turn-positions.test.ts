import { createServer } from 'node:http'

import * as fc from 'fast-check'
import { expect, test } from 'vitest'

import { listen } from '../../../../test/support/listen.ts'
import type { Chunk } from '../../src/protocol/chunk.ts'
import { createOffer } from '../../src/protocol/call-offers.ts'
import { SSE_DONE } from '../../src/protocol/sse.ts'
import { readTurnPosition } from '../../src/protocol/turn-position.ts'
import { appendLines } from '../../src/relay/relay.ts'
import { SseResponse } from '../../src/server/http/sse-response.ts'
import { jsonCodec } from '../../src/server/sockets/frame-codec.ts'
import { ChunkPositions } from '../../src/turns/chunk-positions.ts'
import { START, type ReadFrom } from '../../src/turns/turn-log.ts'
import { Turn } from '../../src/turns/turn.ts'
import { joinDeltas, PositionClient } from '../support/position-client.ts'

const LIMITS = {
  maxLag: Number.POSITIVE_INFINITY,
  stallTimeoutMs: 60_000,
  maxReplay: 1_000_000,
}

/** A turn, and the copy of it on another server, which may know less. */
class CopiedTurn {
  readonly made: Chunk[] = []
  readonly turn = new Turn('m1', LIMITS, { graceMs: 60_000 })
  readonly copy = new Turn('m1', LIMITS, { id: this.turn.id, graceMs: 60_000 })
  #at = START

  append(chunk: Chunk): void {
    this.made.push(chunk)
    this.turn.log.append(chunk)
  }

  /** Writes what is new to the copy, as the relay does. */
  publish(): void {
    for (let found = this.turn.log.read(this.#at); found; found = this.turn.log.read(this.#at)) {
      this.#at = found.next
      appendLines(this.copy.log, [found.json])
    }
  }

  end(): void {
    this.turn.log.end()
    this.publish()
    this.copy.log.end()
  }
}

/** A client that is cut off and continues at its position, at either server. */
class MovingClient extends PositionClient {
  ended = false
  #attachment: ReturnType<Turn['attach']>
  #credit = Number.POSITIVE_INFINITY

  /** Returns whether the turn can be read from the position. */
  attach(turn: Turn, credit: number): boolean {
    this.#attachment?.detach('closed')
    this.#credit = credit
    const after = this.position === undefined ? undefined : readTurnPosition(this.position)
    const from: ReadFrom | undefined = after ? turn.findPosition(after) : 'start'
    if (!from) return false
    const positions = new ChunkPositions(turn, from)
    this.#attachment = turn.attach(
      {
        write: (json, entry) => {
          this.take(JSON.parse(json) as Chunk, positions.next(entry))
          this.#credit -= 1
          return this.#credit > 0
        },
        end: () => {
          this.ended = true
        },
        abandon: () => undefined,
      },
      from,
    )
    return this.#attachment !== undefined
  }

  drain(): void {
    this.#credit = Number.POSITIVE_INFINITY
    this.#attachment?.drained()
  }
}

const TEXT = fc.oneof(
  fc.constantFrom('支払いは', '完了しました。', '😀', '👨‍👩‍👧', '\ud83d', '\ude00', '\n\n', 'ok '),
  fc.string({ minLength: 1, unit: 'grapheme' }),
)
const PART = fc.constantFrom('t1', 't2')
const CHUNK: fc.Arbitrary<Chunk> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constantFrom('text-delta' as const, 'reasoning-delta' as const),
      id: PART,
      delta: TEXT,
    }),
  },
  fc.record({ type: fc.constant('text-start' as const), id: PART }),
  PART.map(createOffer),
  PART.map((toolCallId) => ({ type: 'tool-output-available' as const, toolCallId, output: '済' })),
  PART.map((approvalId) => ({
    type: 'tool-approval-request' as const,
    approvalId,
    toolCallId: approvalId,
  })),
)
const ACT = fc.oneof(
  { weight: 6, arbitrary: CHUNK.map((chunk) => ({ do: 'append' as const, chunk })) },
  fc.record({
    do: fc.constant('move' as const),
    isCopy: fc.boolean(),
    credit: fc.integer({ min: 1, max: 5 }),
  }),
  fc.constant({ do: 'drain' as const }),
  fc.constant({ do: 'publish' as const }),
)

test('[PO7] a client that is cut off any number of times, and continues here or at a copy that knows less, receives every chunk once', () => {
  fc.assert(
    fc.property(fc.array(ACT, { maxLength: 80 }), (acts) => {
      const copied = new CopiedTurn()
      const client = new MovingClient()
      let isRead = client.attach(copied.turn, Number.POSITIVE_INFINITY)
      for (const act of acts) {
        if (act.do === 'append') copied.append(act.chunk)
        else if (act.do === 'publish') copied.publish()
        else if (act.do === 'drain') client.drain()
        // Without a position, a client reads from the start and leaves out what was superseded.
        else if (client.position !== undefined)
          isRead &&= client.attach(act.isCopy ? copied.copy : copied.turn, act.credit)
      }
      expect(isRead).toBe(true)
      copied.end()
      client.drain()
      expect(joinDeltas(client.chunks)).toEqual(joinDeltas(copied.made))
      expect(client.ended).toBe(true)
    }),
    { numRuns: 500 },
  )
})

test('[PO7] a client that claims to have a whole text continues with the next entry', () => {
  const { turn } = new CopiedTurn()
  const client = new MovingClient()
  turn.log.append({ type: 'text-delta', id: 't1', delta: 'One ' })
  client.take({ type: 'text-start', id: 't1' }, `${turn.id}:0`)
  expect(client.attach(turn, 9)).toBe(true)
  turn.log.append({ type: 'text-delta', id: 't1', delta: 'two' })
  turn.log.append({ type: 'text-end', id: 't1' })
  expect(client.chunks.slice(1)).toEqual([{ type: 'text-end', id: 't1' }])
})

test('[PO8] a position that the log does not contain cannot be continued', () => {
  const { turn, copy } = new CopiedTurn()
  for (const log of [turn.log, copy.log]) {
    log.append({ type: 'start', messageId: 'm1' })
    log.append({ type: 'text-delta', id: 't1', delta: 'abc' })
  }
  const find = (of: Turn, entry: number, offset?: number): unknown =>
    of.findPosition({ turnId: turn.id, entry, ...(offset !== undefined && { offset }) })
  expect(find(turn, 1, 3)).toBeDefined()
  for (const [entry, offset] of [[2], [1, 4], [0, 0], [0, 1], [9, 1]] as const)
    expect(find(turn, entry, offset)).toBeUndefined()
  // A copy may know less than the client.
  expect(find(copy, 9, 1)).toBeDefined()
  expect(find(copy, 0, 1)).toBeUndefined()
  expect(turn.findPosition({ turnId: 'another', entry: 0 })).toBeUndefined()
})

test('[PO8] a turn that is too long to be replayed cannot be continued', () => {
  const turn = new Turn('m1', { ...LIMITS, maxReplay: 10 }, { graceMs: 60_000 })
  turn.attach({ write: () => true, end: () => undefined, abandon: () => undefined })
  turn.log.append({ type: 'text-delta', id: 't1', delta: 'A long text.' })
  expect(turn.findPosition({ turnId: turn.id, entry: 0, offset: 1 })).toBeUndefined()
})

test('[PO4] the end of a stream has the positions of the chat before and after the turn', async () => {
  const [known, unknown] = [createTurn(), createTurn()]
  const frames: string[] = []
  const write = (frame: string): boolean => frames.push(frame) > 0
  const server = createServer(({ url }, response) => {
    const turn = url === '/known' ? known : unknown
    const written = { end: SSE_DONE, positions: new ChunkPositions(turn, 'start') }
    const sink = new SseResponse(response, 60_000, written)
    turn.attach(sink)
    sink.start()
    const positions = new ChunkPositions(turn, 'start')
    turn.attach(jsonCodec.toSink('r1', { write, onEnd: () => undefined, positions }))
    expect(turn.wantsPosition).toBe(true)
    turn.startPosition = '2.e2'
    if (url === '/known') turn.endPosition = '5.e5'
    turn.log.end()
  })
  const url = `http://127.0.0.1:${await listen(server)}`
  expect(await (await fetch(`${url}/known`)).text()).toBe(
    ': keep-alive 60000\n\n' +
      `id: ${known.id}:0\ndata: {"type":"start","messageId":"m1"}\n\n` +
      'event: position\ndata: {"before":"2.e2","after":"5.e5"}\n\ndata: [DONE]\n\n',
  )
  expect(await (await fetch(`${url}/unknown`)).text()).not.toContain('event:')
  expect(frames).toEqual([
    `{"type":"chunk","requestId":"r1","sequence":0,"position":"${known.id}:0","chunk":{"type":"start","messageId":"m1"}}`,
    '{"type":"end","requestId":"r1","position":{"before":"2.e2","after":"5.e5"}}',
    `{"type":"chunk","requestId":"r1","sequence":0,"position":"${unknown.id}:0","chunk":{"type":"start","messageId":"m1"}}`,
    '{"type":"end","requestId":"r1"}',
  ])
  server.close()
})

function createTurn(): Turn {
  const turn = new Turn('m1', LIMITS, { graceMs: 0 })
  turn.log.append({ type: 'start', messageId: 'm1' })
  return turn
}
