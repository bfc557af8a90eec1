import { spawn } from 'node:child_process'
import { once } from 'node:events'

import { expect } from 'vitest'

import { bundleProgram } from '../../../../test/support/bundle-program.ts'
import { shareOf } from '../../../../test/support/long-run.ts'
import { posixTest } from '../../../../test/support/posix-test.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { Ledger } from '../../src/approvals/ledger.ts'
import { Notifier } from '../../src/modules/notify/notifier.ts'
import { webhook } from '../../src/modules/notify/webhook.ts'
import { chat } from '../../src/store/contract/fixtures.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { SECRET, startReceiver } from './support/receiver.ts'

const WHILE_READING = 'while the receiver reads'

/** The steps, and how often the receiver is told at least, by the killed process and the next one. */
posixTest.each(
  shareOf<[step: string, count: number]>(
    [
      ['before the plan is stored', 1],
      ['after the plan is stored', 1],
      ['after the claim', 1],
      [WHILE_READING, 2],
      ['before the result is stored', 2],
      ['after the result is stored', 1],
    ],
    { group: 1, groups: 2 },
  ),
)(
  '[NT1563] a notice of a process that is killed %s arrives, each time with the same id',
  async (step, count) => {
    await using folder = await temporaryDirectory()
    const path = folder.file('chats.db')
    const program = await bundleProgram(new URL('support/child.ts', import.meta.url))
    let kill: (() => void) | undefined
    await using receiver = await startReceiver(() => {
      if (step !== WHILE_READING || !kill) return { status: 204 }
      kill()
      kill = undefined
      return undefined
    })
    const child = spawn(process.execPath, [program, path, receiver.url, SECRET, step], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    kill = () => void child.kill('SIGKILL')
    expect(await once(child, 'exit')).toEqual([null, 'SIGKILL'])
    kill = undefined
    const store = await openSqliteStore({ path })
    const errors: unknown[] = []
    const onError = (error: unknown): void => void errors.push(error)
    const ledger = new Ledger({ store: store.approvals, appName: chat.appName, onError })
    const { notices } = store
    if (!notices) throw new Error('The store has no notices.')
    const notifier = new Notifier({
      channels: { ops: webhook({ url: receiver.url, secret: SECRET, allowPrivateNetwork: true }) },
      store: notices,
      ledger,
      refresh: async (approval) => ({ approval, preview: { state: 'none' } }),
      worker: ledger.worker,
      onError,
    })
    try {
      await expect
        .poll(
          async () => {
            notifier.wake()
            return (await notices.list(chat.appName, 'approval-1')).map(({ state }) => state)
          },
          { timeout: 20_000 },
        )
        .toEqual(['sent'])
      // On a slow machine, the first process itself sends it again.
      expect(receiver.received.length).toBeGreaterThanOrEqual(count)
      expect(new Set(receiver.types())).toEqual(new Set(['approval.requested']))
      expect(new Set(receiver.received.map(({ id }) => id)).size).toBe(1)
      expect(errors).toEqual([])
    } finally {
      await notifier.close()
      await ledger.close()
      await store.close()
    }
  },
)
