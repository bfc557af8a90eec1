import { appendFileSync, writeSync } from 'node:fs'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { ApprovalStore } from '../../../src/approvals/approval-store.ts'
import { Ledger } from '../../../src/approvals/ledger.ts'
import { isRefusal } from '../../../src/approvals/approval.ts'
import type { Connection } from '../../../src/store/sqlite/connection.ts'
import { openDatabase } from '../../../src/store/sqlite/open-database.ts'
import { SqliteApprovalStore } from '../../../src/store/sqlite/sqlite-approval-store.ts'
import { chat, hanako, requestOf, taken, termsOf } from './fixture.ts'

// A process of its own for the ledger's tests: `child <program> <database> <ids…>`. It reports on its output, one line
// each, and dies by SIGKILL at the point that `DIE_AT` names. It knows nothing of ADK, so that it starts quickly.

const programs: Record<string, (ledger: Ledger, ids: readonly string[]) => Promise<void>> = {
  /** Decides and claims every approval as fast as it can, and reports the results. */
  async race(ledger, ids) {
    report('ready')
    await once(createInterface({ input: process.stdin }), 'line')
    process.stdin.unref()
    for (const id of ids) {
      const approved = await ledger.decide(id, { by: hanako, approved: true })
      const denied = await ledger.decide(id, { by: hanako, approved: false })
      const claimed = await ledger.claim(id, callOf(id))
      const results = [approved, denied, claimed].map((result) =>
        isRefusal(result) ? result.refused : result.state.name,
      )
      report(JSON.stringify([id, ...results]))
    }
  },

  /** Takes every approval through all its states, and reports each acknowledged step. */
  async live(ledger, ids) {
    for (const id of ids) {
      step = 'request'
      const terms = { ...termsOf(), idempotent: process.env['IDEMPOTENT'] === 'true' }
      taken(await ledger.request({ ...requestOf(callOf(id)), id, terms }))
      report(`asked ${id}`)
      step = 'decide'
      taken(await ledger.decide(id, { by: hanako, approved: true }))
      report(`decided ${id}`)
      step = 'claim'
      taken(await ledger.claim(id, callOf(id)))
      report(`claimed ${id}`)
      dieAt('before the tool')
      appendFileSync(process.env['EFFECTS'] ?? '', `${id}\n`)
      dieAt('after the tool')
      step = 'succeed'
      taken(await ledger.succeed(id, { ok: true }))
      report(`succeeded ${id}`)
    }
  },
}

let step = ''

function callOf(id: string) {
  return { chat, toolCallId: `call of ${id}`, toolName: 'process_payment', args: { amount: 50 } }
}

/** Adds three points to every stored transition at which the process can be killed: before, during and after it. */
function mortal(connection: Connection): ApprovalStore {
  const prepare = connection.prepare.bind(connection)
  connection.prepare = <Row>(sql: string) => {
    const statement = prepare<Row>(sql)
    if (!sql.includes('INTO approval_audit')) return statement
    const run: typeof statement.run = (...values) => {
      dieAt(`in ${step}`)
      return statement.run(...values)
    }
    return { ...statement, run }
  }
  const store = new SqliteApprovalStore(connection)
  const [insert, replace] = [store.insert.bind(store), store.replace.bind(store)]
  store.insert = (...given) => between(() => insert(...given))
  store.replace = (transition) => between(() => replace(transition))
  return store
}

async function between<Result>(work: () => Promise<Result>): Promise<Result> {
  dieAt(`before ${step}`)
  const result = await work()
  dieAt(`after ${step}`)
  return result
}

function dieAt(point: string): void {
  if (process.env['DIE_AT'] !== point) return
  process.kill(process.pid, 'SIGKILL')
  // Nothing more may happen, even if the signal takes a moment.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}

function report(line: string): void {
  // Synchronous, so that a report before a kill arrives.
  writeSync(1, `${line}\n`)
}

const [program = '', path = '', ...ids] = process.argv.slice(2)
const ledger = new Ledger({ store: mortal(await openDatabase(path)), appName: chat.appName })
await ledger.heartbeat()
await programs[program]?.(ledger, ids)
