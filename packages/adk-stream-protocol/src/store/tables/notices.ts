import type { FeatureReport, ReportOptions } from '../describe.ts'
import { formatTime } from '../describe.ts'
import { checkName } from '../keys.ts'
import { StoreError } from '../store-error.ts'
import type { FeatureDatabase, FeatureStatement, SharedFeature } from './feature-tables.ts'

/**
 * Stores what people are told about approvals, and how far the audit record was read for it. Every method is atomic. Any number of
 * processes may call them at the same time.
 */
export interface NoticeStore {
  /** Returns the `seq` of the newest audit entry that was planned. The first call starts at the end of the audit record. */
  position(appName: string): Promise<number>
  /**
   * Adds the notices for all audit entries between two positions, moves the position, and ends later requests of approvals that have
   * ended. Returns false, and changes nothing, if the position is not `from`: another process was faster.
   */
  plan(appName: string, planned: PlannedNotices): Promise<boolean>
  /** Returns the channels that were told of these approvals, or are being told. */
  listNotified(appName: string, approvalIds: readonly string[]): Promise<NotifiedChannel[]>
  /**
   * Gives notices that are due to one worker for `claimMs`. Notices of one approval to one channel are given in order, one at a time.
   * Principals take turns, so that many notices of one do not delay those of another.
   */
  claim(appName: string, claim: NoticeClaim): Promise<StoredNotice[]>
  /** Stores the result of an attempt. Ignored if the claim has expired and another worker has the notice. */
  settle(appName: string, settled: SettledNotice): Promise<void>
  /** Ends a channel and its notices: its receiver wants none. `address` identifies the receiver; another one is not affected. */
  disable(appName: string, channel: ChannelAddress & { readonly reason: string }): Promise<void>
  /** Returns the channels that {@link disable} has ended. */
  listDisabled(appName: string): Promise<ChannelAddress[]>
  /** Lists the notices of an approval, in the order in which they are due. */
  list(appName: string, approvalId: string): Promise<StoredNotice[]>
  /** Counts the notices of each channel that were tried and have not arrived, of the last day and of all applications. For `doctor`. */
  listUndelivered(): Promise<UndeliveredNotices[]>
  /** Removes notices that ended longer than `olderThanMs` ago. */
  removeOld(olderThanMs: number): Promise<void>
}

/** A channel and its receiver. */
export interface ChannelAddress {
  readonly channel: string
  readonly address: string
}

/** Notices of a channel that have not arrived. */
export interface UndeliveredNotices {
  readonly appName: string
  readonly channel: string
  /** `waiting`: they will be tried again. */
  readonly state: 'waiting' | 'failed'
  readonly count: number
  /** What the receiver answered, or the error of an attempt. */
  readonly answer: string
}

/** What follows from the audit entries between two positions. */
export interface PlannedNotices {
  readonly from: number
  readonly to: number
  readonly notices: readonly NewNotice[]
  /** Approvals that have ended. Requests to decide them that are not due are not sent. */
  readonly ended: readonly string[]
}

/** A notice to store. */
export interface NewNotice {
  /** Unique in the application, and the same if the same audit entry is planned again. */
  readonly id: string
  readonly channel: string
  readonly approvalId: string
  /** The owner of the chat. */
  readonly principalId: string
  /** The order of the notices of an approval. */
  readonly position: number
  /** Whether it asks for a decision. It is ended with the approval if it is not due. */
  readonly asks: boolean
  /** The time until it is due, in ms. */
  readonly afterMs: number
  /** What it says, as JSON. */
  readonly body: string
}

/** A channel that was told of an approval. */
export interface NotifiedChannel {
  readonly approvalId: string
  readonly channel: string
}

/** Asks for notices that are due. */
export interface NoticeClaim {
  readonly worker: string
  /** The channels that this process has. */
  readonly channels: readonly string[]
  readonly claimMs: number
  readonly limit: number
}

/** The state of a notice. `ended`: it was not sent, because the approval had ended. */
export type NoticeState = 'waiting' | 'sent' | 'failed' | 'ended'

/** A stored notice. */
export interface StoredNotice {
  readonly id: string
  readonly channel: string
  readonly approvalId: string
  readonly body: string
  readonly state: NoticeState
  /** How often it was tried. */
  readonly attempts: number
  /** When it is due, or when it ended, in ms. */
  readonly at: number
  /** What the receiver answered, or the error of the last attempt. */
  readonly answer?: string
  /** How the channel refers to the newest message that it sent about this approval. */
  readonly reference?: string
}

/** The result of an attempt. */
export interface SettledNotice {
  readonly id: string
  readonly worker: string
  readonly state: NoticeState
  /** For `waiting`: the time until the next attempt, in ms. */
  readonly retryMs?: number
  readonly answer?: string
  readonly reference?: string
}

interface NoticeRow {
  readonly notice_id: string
  readonly channel: string
  readonly approval_id: string
  readonly body: string
  readonly state: string
  readonly attempts: number
  readonly due_at: number
  readonly answer: string | null
  readonly reference: string | null
}

export const NOTICES: SharedFeature<NoticeStore> = { owned: ['notices'], open }

/**
 * How many of the oldest and of the newest notices that can be sent take turns by person: a claim does not sort all of them, and a person who
 * is told of few calls does not wait for the many of another one. A claim still passes over those that wait for an earlier notice.
 */
const TAKING_TURNS = 400

const COLUMNS = 'notice_id, channel, approval_id, body, state, attempts, due_at, answer, reference'

function open(database: FeatureDatabase): NoticeStore {
  const { clock, read, write, writeDurably } = database
  const findPosition = read<{ readonly seq: number }>(
    'SELECT seq FROM $schema.notice_positions WHERE app_name = $1',
  )
  const start = writeDurably(`
    INSERT INTO $schema.notice_positions (app_name, seq) SELECT $1, coalesce(max(seq), 0) FROM $schema.approval_audit
    WHERE true ON CONFLICT DO NOTHING`)
  const listNotified = read<{ readonly approval_id: string; readonly channel: string }>(`
    SELECT DISTINCT approval_id, channel FROM $schema.notices
    WHERE app_name = $1 AND approval_id = ANY ($2::text[])
      AND asks = 1 AND state <> 'ended' AND (attempts > 0 OR due_at <= ${clock})
    ORDER BY approval_id, channel`)
  const findDue = read(`
    SELECT 1 AS found FROM $schema.notices WHERE app_name = $1 AND state = 'waiting' AND due_at <= ${clock} LIMIT 1`)
  const listReady = (order: 'ASC' | 'DESC'): string => `
    SELECT * FROM (
      SELECT notice_id, principal_id, due_at, position FROM $schema.notices AS due
      WHERE app_name = $1 AND state = 'waiting' AND due_at <= ${clock} AND claimed_until <= ${clock}
        AND channel = ANY ($3::text[])
        AND NOT EXISTS (
          SELECT 1 FROM $schema.notices AS earlier
          WHERE earlier.app_name = $1 AND earlier.approval_id = due.approval_id AND earlier.channel = due.channel
            AND earlier.position < due.position AND earlier.state = 'waiting'
            AND (earlier.attempts > 0 OR earlier.due_at <= ${clock})
        )
      ORDER BY due_at ${order} LIMIT ${TAKING_TURNS}
    ) AS ${order === 'ASC' ? 'oldest' : 'newest'}`
  // Of two workers that find the same notice, the later one waits for the row, and then finds it claimed.
  const claim = write<NoticeRow>(`
    UPDATE $schema.notices SET worker = $2, claimed_until = ${clock} + $4::double precision, attempts = attempts + 1
    WHERE app_name = $1 AND state = 'waiting' AND claimed_until <= ${clock} AND notice_id IN (
      SELECT notice_id FROM (
        SELECT notice_id, due_at, row_number() OVER (PARTITION BY principal_id ORDER BY due_at, position) AS turn
        FROM (${listReady('ASC')} UNION ${listReady('DESC')}) AS candidates
      ) AS ready ORDER BY turn, due_at LIMIT $5
    )
    RETURNING ${COLUMNS}`)
  const settle = writeDurably(`
    UPDATE $schema.notices SET state = $4, due_at = ${clock} + $5::double precision, claimed_until = 0, answer = $6,
      reference = coalesce($7, reference)
    WHERE app_name = $1 AND notice_id = $2 AND worker = $3 AND state = 'waiting'`)
  const listDisabled = read<ChannelAddress>(
    'SELECT channel, address FROM $schema.notice_channels WHERE app_name = $1',
  )
  const list = read<NoticeRow>(`
    SELECT ${COLUMNS} FROM $schema.notices WHERE app_name = $1 AND approval_id = $2 ORDER BY due_at, position, channel`)
  const listUndelivered = read<
    { readonly app_name: string } & Omit<UndeliveredNotices, 'appName'>
  >(`
    SELECT app_name, channel, state, count(*)::integer AS count, max(answer) AS answer FROM $schema.notices
    WHERE answer IS NOT NULL AND (state = 'waiting' OR state = 'failed' AND due_at > ${clock} - 86400000)
    GROUP BY app_name, channel, state ORDER BY app_name, channel, state`)
  const removeOld = write(`
    DELETE FROM $schema.notices WHERE state <> 'waiting' AND due_at <= ${clock} - $1::double precision`)
  const position = async (appName: string): Promise<number> => {
    const [row] = await findPosition(checkName('appName', appName))
    if (row) return row.seq
    await start(appName)
    return position(appName)
  }
  return {
    position,
    plan: (appName, planned) =>
      database.transaction(toPlanStatements(database, appName, planned), {
        sql: 'SELECT 1 FROM $schema.notice_positions WHERE app_name = $1 AND seq = $2',
        values: [appName, planned.to],
        needsRows: true,
      }),
    async listNotified(appName, approvalIds) {
      const rows = await listNotified(appName, approvalIds)
      return rows.map(({ approval_id: approvalId, channel }) => ({ approvalId, channel }))
    },
    async claim(appName, { worker, channels, claimMs, limit }) {
      // Usually nothing is due, and this query takes no lock.
      if ((await findDue(appName)).length === 0) return []
      return (await claim(appName, worker, channels, claimMs, limit)).map(decode)
    },
    async settle(appName, { id, worker, state, retryMs = 0, answer, reference }) {
      const result = [state, retryMs, answer ?? null, reference ?? null]
      await settle(appName, id, worker, ...result)
    },
    async disable(appName, { channel, address, reason }) {
      const sql = `
        INSERT INTO $schema.notice_channels (app_name, channel, address, reason) VALUES ($1, $2, $3, $4)
        ON CONFLICT DO NOTHING`
      const fail = `
        UPDATE $schema.notices SET state = 'failed', due_at = ${clock}, answer = $3
        WHERE app_name = $1 AND channel = $2 AND state = 'waiting'`
      await database.transaction([
        { sql, values: [appName, channel, address, reason] },
        { sql: fail, values: [appName, channel, reason] },
      ])
    },
    async listDisabled(appName) {
      return [...(await listDisabled(appName))]
    },
    list: async (appName, approvalId) =>
      (await list(appName, checkName('approvalId', approvalId))).map(decode),
    async listUndelivered() {
      const rows = await listUndelivered()
      return rows.map(({ app_name: appName, ...undelivered }) => ({ appName, ...undelivered }))
    },
    async removeOld(olderThanMs) {
      await removeOld(olderThanMs)
    },
  }
}

/** Returns the statements that add what was planned, if no other process has moved the position. */
function toPlanStatements(
  { clock, jsonTable }: FeatureDatabase,
  appName: string,
  { from, to, notices, ended }: PlannedNotices,
): FeatureStatement[] {
  const move = `UPDATE $schema.notice_positions SET seq = $3 WHERE app_name = $1 AND seq = $2 RETURNING 1`
  const add = `
    INSERT INTO $schema.notices (app_name, principal_id, notice_id, channel, approval_id, position, asks, body, state,
      due_at, attempts, claimed_until)
    SELECT $1, principal_id, notice_id, channel, approval_id, position, asks, body, 'waiting', ${clock} + after_ms, 0, 0
    FROM ${jsonTable('$2', PLANNED)} WHERE true ON CONFLICT DO NOTHING`
  const end = `
    UPDATE $schema.notices SET state = 'ended', due_at = ${clock}
    WHERE app_name = $1 AND approval_id = ANY ($2::text[]) AND asks = 1 AND state = 'waiting' AND attempts = 0
      AND due_at > ${clock}`
  return [
    { sql: move, values: [appName, from, to], needsRows: true },
    { sql: add, values: [appName, JSON.stringify(notices.map(toRow))] },
    { sql: end, values: [appName, ended] },
  ]
}

const PLANNED = {
  principal_id: 'text',
  notice_id: 'text',
  channel: 'text',
  approval_id: 'text',
  position: 'double precision',
  asks: 'integer',
  body: 'text',
  after_ms: 'double precision',
} as const

/** Returns a notice with the names of the columns. */
function toRow(notice: NewNotice): Readonly<Record<keyof typeof PLANNED, string | number>> {
  return {
    notice_id: checkName('id', notice.id),
    channel: checkName('channel', notice.channel),
    approval_id: notice.approvalId,
    principal_id: notice.principalId,
    position: notice.position,
    asks: notice.asks ? 1 : 0,
    after_ms: notice.afterMs,
    body: checkName('body', notice.body),
  }
}

function decode(row: NoticeRow): StoredNotice {
  return {
    id: row.notice_id,
    channel: row.channel,
    approvalId: row.approval_id,
    body: row.body,
    state: readState(row.state),
    attempts: row.attempts,
    at: row.due_at,
    ...(row.answer !== null && { answer: row.answer }),
    ...(row.reference !== null && { reference: row.reference }),
  }
}

function readState(state: string): NoticeState {
  if (state === 'waiting' || state === 'sent' || state === 'failed' || state === 'ended')
    return state
  throw new StoreError('corrupt', `A notice has the unknown state ${state}.`)
}

/** Returns what `doctor` prints about notices. */
export async function reportNotices(
  store: NoticeStore,
  { appName }: ReportOptions,
): Promise<FeatureReport> {
  const all = await store.listUndelivered()
  const listOf = (state: UndeliveredNotices['state']): string[] =>
    all
      .filter((each) => each.state === state && (appName === undefined || each.appName === appName))
      .map(describeUndelivered)
  return {
    sections: [
      {
        title: 'Channels of notify that do not answer, and are tried again',
        lines: listOf('waiting'),
      },
      {
        title: 'Channels of notify that could not be reached, last 24 hours',
        lines: listOf('failed'),
        todo: 'check the receiver and its address. The people of this channel may not know of their approvals.',
        isProblem: true,
      },
    ],
    describeApproval: async (...approval) => (await store.list(...approval)).map(describeNotice),
  }
}

function describeUndelivered({ appName, channel, count, answer }: UndeliveredNotices): string {
  return `${appName}, channel ${channel}: ${count} ${count === 1 ? 'notice' : 'notices'}, ${answer}`
}

/** Says who was told, when, and whether it arrived. What a receiver answered may be an error. */
function describeNotice({ channel, body, state, at, attempts, answer }: StoredNotice): string {
  // The bridge wrote it.
  const { type, to } = JSON.parse(body) as { readonly type: string; readonly to?: string }
  const receiver = to === undefined ? channel : `${channel} (${to})`
  const tried = attempts > 1 ? `, ${attempts} attempts` : ''
  const why = state === 'sent' || answer === undefined ? '' : `: ${answer}`
  return `${formatTime(at)} notice ${type} to ${receiver} ${state}${tried}${why}`
}
