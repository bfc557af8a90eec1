import type { Approval, ApprovalChat, ApprovalStateName } from '../../approvals/approval.ts'
import type {
  ApprovalFilter,
  ApprovalStore,
  AuditFilter,
  PendingQuota,
} from '../../approvals/approval-store.ts'
import type { AuditEntry, AuditEvent, AuditRecord } from '../../approvals/audit-entry.ts'
import { nextApproval, type Transition } from '../../approvals/next-approval.ts'
import { isRefusal } from '../../approvals/refusal.ts'
import { checkName } from '../session-key.ts'
import { decodeJson, encodeJson } from '../stored-json.ts'
import {
  type ApprovalRow,
  type ApprovalStatements,
  type AuditRow,
  DATABASE_CLOCK,
  prepareApprovalStatements,
  selectApprovals,
} from './approval-statements.ts'
import type { Connection, SqlValue, Statement } from './connection.ts'

/** Approvals in SQLite: every transition is one durable transaction with its audit entry. */
export class SqliteApprovalStore implements ApprovalStore {
  readonly #connection: Connection
  readonly #statements: ApprovalStatements
  readonly #lists = new Map<string, Statement<ApprovalRow>>()
  readonly #audits = new Map<string, Statement<AuditRow>>()

  /** `clock` is the SQL expression of the clock that counts, in ms. */
  constructor(connection: Connection, clock: string = DATABASE_CLOCK) {
    this.#connection = connection
    this.#statements = prepareApprovalStatements(connection, clock)
  }

  async now(): Promise<number> {
    return this.#now()
  }

  async insert(
    approval: Approval,
    entry: AuditEntry,
    quota: PendingQuota,
  ): ReturnType<ApprovalStore['insert']> {
    const { id, chat, toolCallId, deadline, version, state } = approval
    const columns = chatColumns(chat)
    const row = [
      ...columns,
      checkName('toolCallId', toolCallId),
      checkName('id', id),
      deadline,
      encodeAsked(approval),
      version,
      state.name,
      encodeMoved(approval),
    ]
    return this.#connection.write(() => {
      const [pending] = this.#statements.countPending.rows(...columns)
      const isFull =
        pending !== undefined &&
        (pending.of_chat >= quota.perChat || pending.of_principal >= quota.perPrincipal)
      if (this.#statements.get.rows(id).length > 0) return 'exists'
      if (this.#statements.findByCall.rows(...columns, toolCallId).length > 0) return 'exists'
      if (isFull) return 'too-many-pending'
      this.#statements.insert.run(...row)
      for (const name of deciderNames(approval)) this.#statements.insertDecider.run(id, name)
      this.#appendAudit(entry)
      return 'inserted'
    })
  }

  async get(id: string): Promise<Approval | undefined> {
    // Ids come from clients: one that cannot be stored is one that is not there.
    if (!isStorable(id)) return undefined
    return this.#statements.get.rows(id).map(decodeApproval)[0]
  }

  async findByCall(chat: ApprovalChat, toolCallId: string): Promise<Approval | undefined> {
    const key = [...chatColumns(chat), checkName('toolCallId', toolCallId)]
    return this.#statements.findByCall.rows(...key).map(decodeApproval)[0]
  }

  async replace(transition: Transition): Promise<boolean> {
    return this.#connection.write(() => this.#replace(transition))
  }

  async list(filter: ApprovalFilter): Promise<Approval[]> {
    const { conditions, values } = listConditions(filter)
    const statement = memoize(this.#lists, conditions, () =>
      selectApprovals(this.#connection, `${conditions} ORDER BY seq LIMIT ?`),
    )
    return statement.rows(...values, filter.limit).map(decodeApproval)
  }

  async due(limit: number): Promise<Approval[]> {
    return this.#statements.due.rows(limit).map(decodeApproval)
  }

  async *audit(filter: AuditFilter): AsyncIterable<AuditRecord> {
    const { conditions, values } = auditConditions(filter)
    const statement = memoize(this.#audits, conditions, () =>
      this.#connection.prepare<AuditRow>(`
        SELECT seq, approval_id, version, app_name, principal_id, chat_id, at, event
        FROM approval_audit WHERE ${conditions} AND seq > ? ORDER BY seq LIMIT ?`),
    )
    let { after = 0, limit: left = Infinity } = filter
    while (left > 0) {
      const rows = statement.rows(...values, after, Math.min(left, AUDIT_PAGE))
      for (const row of rows) yield decodeAudit(row)
      if (rows.length < AUDIT_PAGE) return
      left -= rows.length
      after = rows.at(-1)?.seq ?? after
    }
  }

  async beat(worker: string): Promise<void> {
    checkName('worker', worker)
    this.#connection.write(() => {
      this.#statements.beat.run(worker)
      this.#statements.forgetWorkers.run()
    })
  }

  async stale(leaseMs: number): Promise<Approval[]> {
    return this.#statements.stale.rows(leaseMs).map(decodeApproval)
  }

  async lockChat(chat: ApprovalChat, worker: string, leaseMs: number): Promise<boolean> {
    const key = [...chatColumns(chat), checkName('worker', worker)]
    return this.#statements.lockChat.run(...key, leaseMs) === 1
  }

  async unlockChat(chat: ApprovalChat, worker: string): Promise<void> {
    this.#statements.unlockChat.run(...chatColumns(chat), checkName('worker', worker))
  }

  async deleteChat(chat: ApprovalChat, reason: string): Promise<Approval[]> {
    const key = chatColumns(chat)
    return this.#connection.write(() => {
      const open = this.#statements.findOpen.rows(...key).map(decodeApproval)
      return open.flatMap((approval) => {
        const result = nextApproval(approval, { type: 'cancel', reason }, this.#now())
        return !isRefusal(result) && this.#replace(result) ? [result.next] : []
      })
    })
  }

  #now(): number {
    return this.#statements.now.rows()[0]?.now ?? Number.NaN
  }

  #replace({ next, entry, before }: Transition): boolean {
    const { id, version, state } = next
    const [worker, startedAt] =
      state.name === 'executing' ? [checkName('worker', state.worker), state.at] : [null, null]
    const row = [id, version, state.name, worker, startedAt, encodeMoved(next), before ?? null]
    if (this.#statements.replace.run(...row) === 0) return false
    if (state.name !== 'requested') this.#statements.deleteDeciders.run(id)
    this.#appendAudit(entry)
    return true
  }

  #appendAudit({ approvalId, chat, version, at, event }: AuditEntry): void {
    const row = [...chatColumns(chat), approvalId, version, at, encodeJson(event)]
    this.#statements.appendAudit.run(...row)
  }
}

const AUDIT_PAGE = 500

function chatColumns({ appName, principalId, chatId }: ApprovalChat): string[] {
  return [
    checkName('appName', appName),
    checkName('principalId', principalId),
    checkName('chatId', chatId),
  ]
}

function isStorable(name: string): boolean {
  return !name.includes('\0') && name.isWellFormed()
}

type Asked = Pick<Approval, 'messageId' | 'toolName' | 'args' | 'digest' | 'terms' | 'requestedAt'>

type Moved = Pick<Approval, 'votes' | 'state'>

function encodeAsked(approval: Approval): string {
  const { messageId, toolName, args, digest, terms, requestedAt } = approval
  return encodeJson({ messageId, toolName, args, digest, terms, requestedAt } satisfies Asked)
}

function encodeMoved({ votes, state }: Approval): string {
  return encodeJson({ votes, state } satisfies Moved)
}

function decodeApproval(row: ApprovalRow): Approval {
  return {
    id: row.id,
    chat: { appName: row.app_name, principalId: row.principal_id, chatId: row.chat_id },
    toolCallId: row.tool_call_id,
    // Written by `encodeAsked`.
    ...(decodeJson(row.asked) as Asked),
    deadline: row.deadline,
    version: row.version,
    // Written by `encodeMoved`.
    ...(decodeJson(row.moved) as Moved),
  }
}

function decodeAudit(row: AuditRow): AuditRecord {
  return {
    seq: row.seq,
    approvalId: row.approval_id,
    chat: { appName: row.app_name, principalId: row.principal_id, chatId: row.chat_id },
    version: row.version,
    at: row.at,
    // Written by `#appendAudit`.
    event: decodeJson(row.event) as AuditEvent,
  }
}

/** Everyone whom some step names, principals and roles apart. */
function deciderNames({ terms }: Approval): Set<string> {
  return new Set(terms.chain.flatMap((step) => namesOf(step.principals, step.roles)))
}

function namesOf(principals: readonly string[], roles: readonly string[]): string[] {
  // As JSON, so that any name is text that a column gives back unchanged.
  return [
    ...principals.map((name) => JSON.stringify(['principal', name])),
    ...roles.map((name) => JSON.stringify(['role', name])),
  ]
}

interface Conditions {
  readonly conditions: string
  readonly values: SqlValue[]
}

function listConditions(filter: ApprovalFilter): Conditions {
  const { appName, principalId, chat, states, deciderOf, after } = filter
  return joinConditions([
    appName !== undefined && ['app_name = ?', checkName('appName', appName)],
    principalId !== undefined && ['principal_id = ?', checkName('principalId', principalId)],
    chat !== undefined && [CHAT, ...chatColumns(chat)],
    states !== undefined && [inStates(states)],
    deciderOf !== undefined && [
      `state = 'requested' AND seq IN (
        SELECT approval FROM approval_deciders WHERE name IN (SELECT value FROM json_each(?)))`,
      encodeJson(namesOf([deciderOf.id], deciderOf.roles)),
    ],
    after !== undefined &&
      isStorable(after) && ['seq > coalesce((SELECT seq FROM approvals WHERE id = ?), 0)', after],
  ])
}

function inStates(states: readonly ApprovalStateName[]): string {
  // Literals, because SQLite uses a partial index only for what it can read in the statement; and only our own.
  const literals = STATES.filter((name) => states.includes(name)).map((name) => `'${name}'`)
  return `state IN (${literals.join(', ')})`
}

const STATES = [
  'requested',
  'approved',
  'denied',
  'expired',
  'cancelled',
  'executing',
  'succeeded',
  'failed',
  'unknown',
] as const satisfies readonly ApprovalStateName[]

function auditConditions({ appName, approvalId, chat }: AuditFilter): Conditions {
  return joinConditions([
    appName !== undefined && ['app_name = ?', checkName('appName', appName)],
    approvalId !== undefined && ['approval_id = ?', checkName('approvalId', approvalId)],
    chat !== undefined && [CHAT, ...chatColumns(chat)],
  ])
}

const CHAT = 'app_name = ? AND principal_id = ? AND chat_id = ?'

function joinConditions(
  given: readonly (false | readonly [condition: string, ...values: string[]])[],
): Conditions {
  const kept = given.filter((condition) => condition !== false)
  return {
    conditions: kept.map(([condition]) => condition).join(' AND ') || 'TRUE',
    values: kept.flatMap(([, ...values]) => values),
  }
}

function memoize<Value>(known: Map<string, Value>, key: string, make: () => Value): Value {
  const value = known.get(key) ?? make()
  known.set(key, value)
  return value
}
