import { expect, test } from 'vitest'

import { defer } from '../../src/shared/async.ts'
import { TurnRegistry } from '../../src/turns/turn-registry.ts'

const CHAT = { principalId: 'hanako', chatId: 'chat-1' }

function openRegistry(): TurnRegistry {
  return new TurnRegistry({
    maxLag: 1_000_000,
    stallTimeoutMs: 60_000,
    maxReplay: 1_000_000,
    disconnectGraceMs: 60_000,
    whileRunning: 'refuse',
    maxTurns: 10,
    maxTurnsPerPrincipal: 10,
    maxQueued: 10,
    onChange: () => undefined,
    onLocked: () => undefined,
    stopElsewhere: async () => undefined,
    lockChat: async () => async () => undefined,
  })
}

test('[TU798] a stop stops the turn that waits for one that has ended and is not settled', async () => {
  const turns = openRegistry()
  const stored = defer()
  await turns.start(CHAT, 'message-1', {
    run: async ({ log }) => {
      log.end()
      await stored.promise
    },
  })
  const stopping = turns.stop(CHAT)
  const next = turns.start(CHAT, 'message-1', {
    waitForRunning: true,
    run: async ({ signal, log }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      log.end()
    },
  })
  stored.resolve()
  await stopping
  expect((await next).signal.aborted).toBe(true)
  expect(turns.busy).toBe(false)
})

test('[TU798] a stop does not stop the turn that waits for the one that it stops', async () => {
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
