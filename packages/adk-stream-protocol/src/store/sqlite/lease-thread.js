// Renews the leases of a process while its event loop is blocked, with database connections of its own. Plain JavaScript, because
// Node.js must be able to start the file as a thread both from `src` and from `dist`.
import { parentPort } from 'node:worker_threads'
import Database from 'libsql'

/**
 * @typedef {import('./leases.ts').LeaseThreadData} LeaseThreadData
 * @typedef {import('./leases.ts').LeaseThreadRequest} LeaseThreadRequest
 * @typedef {import('./leases.ts').LeaseThreadReply} LeaseThreadReply
 */

const [LOOP_RAN_AT, RENEWED_AT, BUSY] = [0, 1, 2]
const NS_PER_MS = 1_000_000n

/**
 * Starts to renew a lease. Returns a function that stops it.
 * @param {LeaseThreadData} data
 */
function startRenewal({ path, worker, leaseMs, maxBlockedMs, shared, tick: tickSql }) {
  const database = new Database(path, { timeout: Math.round(leaseMs / 4) })
  database.exec('PRAGMA synchronous = NORMAL')
  const tick = database.prepare(tickSql)
  const beat = database.prepare(`
    INSERT INTO workers (worker, beat_at) SELECT ?1, at FROM lease_clock WHERE true
    ON CONFLICT (worker) DO UPDATE SET beat_at = max(beat_at, excluded.beat_at)`)

  /** @param {number} index */
  const silenceMs = (index) =>
    Number((process.hrtime.bigint() - Atomics.load(shared, index)) / NS_PER_MS)

  // LG1020: the time since the last success does not count for leases if the database was locked since then.
  let isCutOff = false
  const renew = () => {
    if (Atomics.load(shared, BUSY) === 0n || silenceMs(RENEWED_AT) < leaseMs / 3) return
    // An event loop that is blocked forever must lose its lease.
    if (silenceMs(LOOP_RAN_AT) > maxBlockedMs) return
    try {
      database.exec('BEGIN IMMEDIATE')
      const now = process.hrtime.bigint()
      tick.run(Number(now) / 1e6, isCutOff ? 0 : leaseMs / 3)
      beat.run(worker)
      database.exec('COMMIT')
      Atomics.store(shared, RENEWED_AT, now)
      isCutOff = false
    } catch {
      isCutOff = true
      // The database is locked or closed. Several attempts fit into a lease, so the next one is early enough.
      if (database.inTransaction) database.exec('ROLLBACK')
    }
  }

  const timer = setInterval(renew, leaseMs / 8)
  return () => {
    clearInterval(timer)
    database.close()
  }
}

/** @type {Map<number, () => void>} */
const renewals = new Map()

/** @param {LeaseThreadRequest} request */
function handle(request) {
  if (request.type === 'end') parentPort?.close()
  else if (request.type === 'stop') {
    renewals.get(request.id)?.()
    renewals.delete(request.id)
    reply({ type: 'stopped', id: request.id })
  } else {
    try {
      renewals.set(request.id, startRenewal(request.data))
    } catch (error) {
      reply({ type: 'failed', id: request.id, error })
    }
  }
}

/** @param {LeaseThreadReply} message */
function reply(message) {
  // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread is no window
  parentPort?.postMessage(message)
}

parentPort?.on('message', handle)
