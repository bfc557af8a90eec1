import { writeSync } from 'node:fs'

import { Ledger } from '../../../src/approvals/ledger.ts'
import { Notifier } from '../../../src/modules/notify/notifier.ts'
import { webhook } from '../../../src/modules/notify/webhook.ts'
import { chat, requestOf } from '../../../src/store/contract/fixtures.ts'
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts'

// A process that requests an approval and tells a webhook: `child <database> <url> <secret> <step>`. It is killed at a step of the delivery.

const [path = '', url = '', secret = '', dieAt = ''] = process.argv.slice(2)

function die(step: string): void {
  if (step === dieAt) process.kill(process.pid, 'SIGKILL')
}

const store = await openSqliteStore({ path })
const { notices } = store
if (!notices) throw new Error('The store has no notices.')
await notices.position(chat.appName)
const onError = (error: unknown): void => void writeSync(2, `${String(error)}\n`)
const ledger = new Ledger({ store: store.approvals, appName: chat.appName, onError })
await ledger.request(requestOf({ id: 'approval-1' }))
const notifier = new Notifier({
  channels: { ops: webhook({ url, secret, allowPrivateNetwork: true }) },
  store: {
    ...notices,
    plan: async (...planned) => {
      die('before the plan is stored')
      const isPlanned = await notices.plan(...planned)
      die('after the plan is stored')
      return isPlanned
    },
    claim: async (...claim) => {
      const claimed = await notices.claim(...claim)
      if (claimed.length > 0) die('after the claim')
      return claimed
    },
    settle: async (...settled) => {
      die('before the result is stored')
      await notices.settle(...settled)
      die('after the result is stored')
    },
  },
  ledger,
  refresh: async (approval) => ({ approval, preview: { state: 'none' } }),
  worker: ledger.worker,
  claimMs: 500,
  onError,
})
notifier.wake()
