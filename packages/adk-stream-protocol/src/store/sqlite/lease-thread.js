// What signs for a process while its event loop is blocked: a thread with a connection of its own. A file of its own in plain
// JavaScript, because a thread is started by the address of a file that Node.js can run as it stands, in `src` as in `dist`.
import { parentPort, workerData } from 'node:worker_threads'
import Database from 'libsql'

/** @typedef {import('./lease-thread-host.ts').LeaseThreadData} LeaseThreadData */

const { path, worker, leaseMs, maxBlockedMs, shared } = /** @type {LeaseThreadData} */ (workerData)

const [MOVED_AT, BEAT_AT, BUSY] = [0, 1, 2]
const NS_PER_MS = 1_000_000n

const database = new Database(path, { timeout: Math.round(leaseMs / 4) })
database.exec('PRAGMA synchronous = NORMAL')
const beat = database.prepare(`
  INSERT INTO workers (worker, beat_at) VALUES (?1, ?2)
  ON CONFLICT (worker) DO UPDATE SET beat_at = max(beat_at, excluded.beat_at)`)

/** @param {number} index */
function silenceMs(index) {
  return Number((process.hrtime.bigint() - Atomics.load(shared, index)) / NS_PER_MS)
}

function sign() {
  if (Atomics.load(shared, BUSY) === 0n || silenceMs(BEAT_AT) < leaseMs / 3) return
  // An event loop that never comes back must not keep what it holds for ever.
  if (silenceMs(MOVED_AT) > maxBlockedMs) return
  try {
    database.exec('BEGIN IMMEDIATE')
    const now = process.hrtime.bigint()
    beat.run(worker, Number(now) / 1e6)
    database.exec('COMMIT')
    Atomics.store(shared, BEAT_AT, now)
  } catch {
    // The database is locked, or gone. The next time is soon enough: several fit into a lease.
    if (database.inTransaction) database.exec('ROLLBACK')
  }
}

const timer = setInterval(sign, leaseMs / 8)

parentPort?.once('message', () => {
  clearInterval(timer)
  database.close()
})
