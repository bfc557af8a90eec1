import type { FeatureReport, ReportOptions } from '../describe.ts'
import { formatTime } from '../describe.ts'
import { checkName } from '../keys.ts'
import { StoreError } from '../store-error.ts'
import type { Query } from './query.ts'

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

/** The statements of notices. Their first value is the name of the application. */
interface NoticeQueries {
  readonly position: Query<{ readonly seq: number }>
  readonly start: Query
  readonly plan: (
    appName: string,
    planned: Pick<PlannedNotices, 'from' | 'to'> & {
      readonly rows: string
      readonly ended: readonly string[]
    },
  ) => Promise<boolean>
  readonly listNotified: Query<{ readonly approval_id: string; readonly channel: string }>
  readonly claim: Query<NoticeRow>
  readonly settle: Query
  readonly disable: (appName: string, ...values: readonly string[]) => Promise<void>
  readonly listDisabled: Query<ChannelAddress>
  readonly list: Query<NoticeRow>
  readonly listUndelivered: Query<
    { readonly app_name: string } & Omit<UndeliveredNotices, 'appName'>
  >
  readonly removeOld: Query
}

export interface NoticeRow {
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

export function noticeStore(queries: NoticeQueries): NoticeStore {
  const position = async (appName: string): Promise<number> => {
    const [row] = await queries.position(checkName('appName', appName))
    if (row) return row.seq
    await queries.start(appName)
    return position(appName)
  }
  return {
    position,
    plan: (appName, { from, to, notices, ended }) =>
      queries.plan(appName, { from, to, ended, rows: JSON.stringify(notices.map(toRow)) }),
    async listNotified(appName, approvalIds) {
      const rows = await queries.listNotified(appName, approvalIds)
      return rows.map(({ approval_id: approvalId, channel }) => ({ approvalId, channel }))
    },
    async claim(appName, { worker, channels, claimMs, limit }) {
      return (await queries.claim(appName, worker, channels, claimMs, limit)).map(decode)
    },
    async settle(appName, { id, worker, state, retryMs = 0, answer, reference }) {
      const result = [state, retryMs, answer ?? null, reference ?? null]
      await queries.settle(appName, id, worker, ...result)
    },
    disable: (appName, { channel, address, reason }) =>
      queries.disable(appName, channel, address, reason),
    async listDisabled(appName) {
      return [...(await queries.listDisabled(appName))]
    },
    async list(appName, approvalId) {
      return (await queries.list(appName, checkName('approvalId', approvalId))).map(decode)
    },
    async listUndelivered() {
      const rows = await queries.listUndelivered()
      return rows.map(({ app_name: appName, ...undelivered }) => ({ appName, ...undelivered }))
    },
    async removeOld(olderThanMs) {
      await queries.removeOld(olderThanMs)
    },
  }
}

/** Returns a notice with the names of the columns. */
function toRow(notice: NewNotice): Readonly<Record<string, string | number>> {
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
