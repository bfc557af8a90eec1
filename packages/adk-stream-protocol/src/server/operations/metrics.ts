import type {
  Attributes,
  BatchObservableCallback,
  Histogram,
  Meter,
  Observable,
} from '@opentelemetry/api'
import { metrics } from '@opentelemetry/api'

/** The numbers that are read when metrics are collected. */
export interface Levels {
  readonly turns: number
  readonly sockets: number
  readonly feeds: number
  /** The runs that stay open in their chats. */
  readonly openRuns: number
  /** Pending approvals of the application in the whole database. Undefined if they cannot be counted now. */
  readonly pendingApprovals: number | undefined
  /** The connection pool of the store, if it has one. */
  readonly pool:
    | {
        readonly used: number
        readonly idle: number
        readonly waiting: number
        readonly waitedMs?: number
      }
    | undefined
}

/** The name of a level, its unit and its description. */
export type LevelName = readonly [name: string, unit: string, description: string]

const METER = 'adk-stream-protocol'
const PREFIX = 'adk_stream_protocol'

/** Seconds. A model takes between a tenth of a second and a minute. */
const CHUNK_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60]
const TURN_SECONDS = [0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600]
/** Seconds. A person takes between a second and a day. */
const DECISION_SECONDS = [1, 2, 5, 15, 30, 60, 300, 900, 3_600, 14_400, 86_400]

/** Creates an OpenTelemetry histogram of times. */
export function createTimes(name: string, description: string, boundaries: number[]): Histogram {
  return metrics.getMeter(METER).createHistogram(`${PREFIX}.${name}`, {
    unit: 's',
    description,
    advice: { explicitBucketBoundaries: boundaries },
  })
}

/**
 * Creates the OpenTelemetry instruments of a bridge. Nothing is measured unless a meter provider was registered before the bridge was
 * created (OB300). They are updated once per turn or approval, never per chunk.
 */
export function createInstruments() {
  const meter = metrics.getMeter(METER)
  const counter = (name: string, unit: string, description: string) =>
    meter.createCounter(`${PREFIX}.${name}`, { unit, description })
  return {
    turnsEnded: counter('turn.ended', '{turn}', 'Turns that ended, by outcome.'),
    turnDuration: createTimes('turn.duration', 'How long turns ran.', TURN_SECONDS),
    firstChunk: createTimes(
      'turn.time_to_first_chunk',
      'From the start of a turn to the first chunk of the agent.',
      CHUNK_SECONDS,
    ),
    chunks: counter('turn.chunks', '{chunk}', 'Chunks of ended turns.'),
    toolsEnded: counter('tool.ended', '{call}', 'Tool calls that ended, by outcome.'),
    leasesLost: counter(
      'lease.lost',
      '{turn}',
      'Turns that another process took over because the lease of this one had expired.',
    ),
    approvalsRequested: counter('approval.requested', '{approval}', 'Requested approvals.'),
    approvalsEnded: counter(
      'approval.ended',
      '{approval}',
      'Approvals that were approved, denied, expired or cancelled.',
    ),
    decisionDuration: createTimes(
      'approval.time_to_decision',
      'From the request of an approval to its decision.',
      DECISION_SECONDS,
    ),
    callsRecovered: counter(
      'call.recovered',
      '{call}',
      'Approved calls of crashed processes that run again because they are idempotent.',
    ),
    refused: counter('request.refused', '{request}', 'Refused requests, by error code.'),
  }
}

/** Reads the levels of a bridge whenever metrics are collected. Returns a function that stops this. */
export function observeLevels(read: () => Promise<Levels>, openRuns: LevelName): () => void {
  const meter = metrics.getMeter(METER)
  const known = observed.get(meter)
  const readers = known ?? new Set()
  readers.add(read)
  if (!known) {
    observed.set(meter, readers)
    observeSum(meter, readers, openRuns)
  }
  return () => void readers.delete(read)
}

/** The bridges of this process that a meter observes. */
const observed = new WeakMap<Meter, Set<() => Promise<Levels>>>()

/** Observes the sum over all bridges of this process. With one callback per bridge, the last one would hide the others. */
function observeSum(
  meter: Meter,
  readers: ReadonlySet<() => Promise<Levels>>,
  openRuns: LevelName,
): void {
  const level = (...[name, unit, description]: LevelName) =>
    meter.createObservableUpDownCounter(`${PREFIX}.${name}`, { unit, description })
  const turns = level('turn.active', '{turn}', 'Running turns.')
  const sockets = level('socket.active', '{socket}', 'Open sockets.')
  const feeds = level('feed.active', '{feed}', 'Open event feeds.')
  const runs = level(...openRuns)
  const connections = level('db.connections', '{connection}', 'Connections to the database.')
  const waiting = level('db.waiting', '{request}', 'Requests that wait for a connection.')
  const waitTime = meter.createObservableCounter(`${PREFIX}.db.wait_time`, {
    unit: 's',
    description: 'Time that work has waited for a connection.',
  })
  // All processes of a database report the same number, so it must not be added up.
  const pending = meter.createObservableGauge(`${PREFIX}.approval.pending`, {
    unit: '{approval}',
    description: 'Pending approvals in the database, at most 10,000.',
  })
  const callback: BatchObservableCallback = async (result) => {
    const all = await Promise.all([...readers].map((readLevels) => readLevels()))
    const observe = (
      to: Observable,
      read: (levels: Levels) => number | undefined,
      attributes: Attributes = {},
    ) => {
      const values = all.map(read)
      const known = values.filter((value) => value !== undefined)
      if (known.length === 0 && values.length > 0) return
      const sum = known.reduce((total, value) => total + value, 0)
      result.observe(to, sum, attributes)
    }
    observe(turns, (levels) => levels.turns)
    observe(sockets, (levels) => levels.sockets)
    observe(feeds, (levels) => levels.feeds)
    observe(runs, (levels) => levels.openRuns)
    observe(pending, (levels) => levels.pendingApprovals)
    if (!all.some(({ pool }) => pool)) return
    observe(connections, ({ pool }) => pool?.used, { state: 'used' })
    observe(connections, ({ pool }) => pool?.idle, { state: 'idle' })
    observe(waiting, ({ pool }) => pool?.waiting)
    observe(waitTime, ({ pool }) => pool?.waitedMs && pool.waitedMs / 1_000)
  }
  const instruments = [turns, sockets, feeds, runs, connections, waiting, waitTime, pending]
  meter.addBatchObservableCallback(callback, instruments)
}
