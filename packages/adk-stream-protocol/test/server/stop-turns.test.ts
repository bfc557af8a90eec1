import { createEvent, type Event } from '@google/adk'
import { expect, test } from 'vitest'

import { onRequest, STOP_CHAT } from '../../src/relay/server-requests.ts'
import { Ledger } from '../../src/approvals/ledger.ts'
import type { Translation } from '../../src/agent/translate/translation.ts'
import type { Chunk } from '../../src/protocol/chunk.ts'
import { RelayedTurns } from '../../src/server/chats/turns/relayed-turns.ts'
import { defer } from '../../src/shared/async.ts'
import { openSqliteStore } from '../../src/store/index.ts'
import { runTurn } from '../../src/turns/run-turn.ts'
import { TurnRegistry } from '../../src/turns/turn-registry.ts'
import { Turn } from '../../src/turns/turn.ts'

const CHAT = { principalId: 'hanako', chatId: 'chat-1' }

function openRegistry(): TurnRegistry {
  const limits = { maxLag: 1_000_000, stallTimeoutMs: 60_000, maxReplay: 1_000_000 }
  return new TurnRegistry({
    ...limits,
    disconnectGraceMs: 60_000,
    whileRunning: 'refuse',
    maxTurns: 10,
    maxTurnsPerPrincipal: 10,
    maxQueued: 10,
    onChange: () => undefined,
    others: new RelayedTurns({ limits, onError: ignore }),
    lockChat: async () => async () => undefined,
  })
}

test.each([
  ['that names no message stops', undefined, true],
  ['that names its message stops', 'message-1', true],
  ['[TU1580] that names another message does not stop', 'message-0', false],
])(
  '[TU797] a stop %s the turn that waits for one that has ended and is not settled',
  async (_name, named, isStopped) => {
    const turns = openRegistry()
    const stored = defer()
    await turns.start(CHAT, 'message-1', {
      run: async ({ log }) => {
        log.end()
        await stored.promise
      },
    })
    const stopping = turns.stop(CHAT, named)
    const end = defer()
    const next = turns.start(CHAT, 'message-1', {
      waitForRunning: true,
      run: async ({ signal, log }) => {
        signal.addEventListener('abort', () => end.resolve())
        await end.promise
        log.end()
      },
    })
    stored.resolve()
    await stopping
    expect((await next).signal.aborted).toBe(isStopped)
    expect(turns.busy).toBe(!isStopped)
    end.resolve()
  },
)

test('[TU797] a stop does not stop the turn that waits for the one that it stops', async () => {
  const turns = openRegistry()
  await turns.start(CHAT, 'message-1', {
    run: async ({ signal, log }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      log.end()
    },
  })
  const next = turns.start(CHAT, 'message-2', { waitForRunning: true, run: async () => undefined })
  await turns.stop(CHAT)
  expect((await next).signal.aborted).toBe(false)
})

test('[TU901] a message that is sent again before its turn could be prepared starts another turn if the first one fails', async () => {
  const turns = openRegistry()
  const stored = defer()
  const repliesTo = { id: 'message-1', content: 'Hello.' }
  const prepare = (): Promise<void> => stored.promise
  const first = turns.start(CHAT, 'reply-1', { repliesTo, prepare, run: endAtOnce })
  const second = turns.start(CHAT, 'reply-2', { repliesTo, run: endAtOnce })
  stored.reject(new Error('The database is not available.'))
  await expect(first).rejects.toThrow('The database is not available.')
  expect((await second).messageId).toBe('reply-2')
})

async function endAtOnce({ log }: Turn): Promise<void> {
  log.end()
}

function ignore(): void {}

test('[TU797] [RL880] a stop at a third server also stops the turn of a second one that waits for a turn of the first one that has ended', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  const { signals, approvals } = store
  if (!signals) throw new Error('The store has no signals.')
  const open = (worker: string, stopHere: () => Promise<boolean>) => {
    const ledger = new Ledger({ store: approvals, appName: 'demo', worker })
    const limits = { maxLag: 1, stallTimeoutMs: 1, maxReplay: 1 }
    const elsewhere = new RelayedTurns({ limits, onError: ignore })
    const sessions = { keepStreamed: async () => undefined }
    elsewhere.start(
      { signals },
      { ledger, sessions },
      {
        handlers: [onRequest(STOP_CHAT, stopHere)],
        isAsked: () => true,
        isAwaited: () => true,
        onTurnChange: ignore,
        onApprovals: ignore,
      },
    )
    return { ledger, elsewhere, [Symbol.asyncDispose]: () => elsewhere.close() }
  }
  const key = { appName: 'demo', ...CHAT }
  const stopped: string[] = []
  // Its turn has ended, and the chat is free when it is settled.
  await using first = open('first', async () => {
    stopped.push('first')
    await first.ledger.locks.unlock(key, firstLock ?? '')
    return false
  })
  await using second = open('second', async () => stopped.push('second') > 0)
  await using third = open('third', async () => false)
  const firstLock = await first.ledger.locks.lock(key)
  // The second server tries to lock the chat at an interval. It does so after the third one has found the chat free.
  let looks = 0
  const listLockedByOthers = approvals.listLockedByOthers.bind(approvals)
  approvals.listLockedByOthers = async (request) => {
    looks += 1
    if (looks === 3) await second.ledger.locks.lock(key)
    return listLockedByOthers(request)
  }
  await third.elsewhere.stop(CHAT)
  expect(stopped).toEqual(['first', 'second'])
})

test('[CV2] a stored message that is only streamed again does not count as running', async () => {
  const turns = openRegistry()
  const end = defer()
  const run = { run: async () => end.promise }
  await turns.start(CHAT, 'message-1', { ...run, isReplay: true })
  await turns.start({ ...CHAT, chatId: 'chat-2' }, 'message-2', run)
  expect(turns.running(CHAT)).toBeUndefined()
  expect(turns.running({ ...CHAT, chatId: 'chat-2' })?.messageId).toBe('message-2')
  end.resolve()
})

test.each([
  ['that was complete before is not shown as stopped', [{ text: 'Done.' }], false],
  ['that waits is', [{ functionCall: { id: 'call', name: 'ask', args: {} } }], true],
])('[TU1800] a message with nothing more to stream %s', async (_name, parts, isStopped) => {
  const limits = { maxLag: 1_000_000, stallTimeoutMs: 60_000, maxReplay: 1_000_000 }
  const run = async (events: readonly Event[], from?: Translation) => {
    const turn = new Turn('reply', limits, { graceMs: 60_000 })
    const chunks: Chunk[] = []
    if (from) turn.stop()
    const onChunk = (chunk: Chunk): void => void chunks.push(chunk)
    const options = { exposeState: () => false, onChunk, onError: ignore, ...(from && { from }) }
    const { state } = await runTurn(turn, iterate(events), options)
    return { state, chunks }
  }
  const stored = createEvent({
    author: 'assistant',
    invocationId: 'e-1',
    content: { role: 'model', parts },
    longRunningToolIds: ['call'],
  })
  const { state: from } = await run([stored])
  const { chunks } = await run([], from)
  expect(chunks.some(({ type }) => type === 'abort')).toBe(isStopped)
  const finish = chunks.find((chunk) => chunk.type === 'finish')
  expect(finish?.messageMetadata?.stopped === true).toBe(isStopped)
})

async function* iterate(events: readonly Event[]): AsyncGenerator<Event> {
  yield* events
}
