import { existsSync } from 'node:fs'
import { parseArgs } from 'node:util'

import type { AuditCheck, AuditHead, AuditVerification } from '../approvals/approval-store.ts'
import type { AuditRecord } from '../approvals/audit-entry.ts'
import { type CommandOutput, runCommand } from '../shared/command.ts'
import { describeFault, hasTransition, verifyChain } from './audit-chain.ts'
import { deletePrincipalData, retentionOf, runRetention } from './remove-data.ts'
import type { AuditRow } from './rows.ts'
import { decodeAudit } from './rows.ts'
import { auditReader } from './sqlite/approval-sql.ts'
import { openExisting } from './sqlite/open-database.ts'
import { openSqliteStore } from './sqlite/sqlite-store.ts'
import type { Store } from './store.ts'
import { StoreError } from './store-error.ts'

/** Opens the database of a command: an existing SQLite file, or a URL of PostgreSQL. */
export async function openStore(database: string, schema: string | undefined): Promise<Store> {
  if (isPostgres(database)) {
    const { openPostgresStore } = await loadPostgres(() => import('./postgres/index.ts'))
    return openPostgresStore({
      connectionString: database,
      migrate: false,
      maxConnections: 2,
      ...(schema !== undefined && { schema }),
    })
  }
  if (!existsSync(database))
    throw new StoreError('unavailable', `The file ${database} does not exist.`)
  return openSqliteStore({ path: database })
}

function isPostgres(database: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(database)
}

/** Loads the store of PostgreSQL. The package `pg` is optional: the error says how to install it. */
export async function loadPostgres<Module>(load: () => Promise<Module>): Promise<Module> {
  try {
    return await load()
  } catch (cause) {
    if (!/'pg'/.test(String(cause))) throw cause
    throw new StoreError(
      'unavailable',
      'A PostgreSQL database needs the package pg. Install it: npm install pg',
      { cause },
    )
  }
}

/** Reads the option `--lease-ms`. */
export function readLease(text = '15000'): number {
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new Error('--lease-ms must be a number of milliseconds.')
}

const AUDIT_USAGE = `Usage:
  adk-stream-protocol audit verify <database> [--head <seq>:<hash>]
  adk-stream-protocol audit export <database> [filters]

<database> is a SQLite file or a URL of PostgreSQL. Servers may use it meanwhile; nothing is changed.

verify  checks that no entry of the audit record was changed or removed, and prints the head. Store the head
        outside the database and pass it to the next check. The check then also detects a record that was rewritten.
export  prints the audit record as JSON Lines, one entry per line, and checks it. The filters:
        --app <name>                      entries of one application
        --principal <id> --chat <id>      entries of the chats of a principal, or of one chat
        --approval <id>                   entries of one approval
        --from <time> --to <time>         entries at or after, and before: a date such as 2026-11-16, or ms since 1970
        --after <seq>                     entries after this one, to continue an earlier export

  --schema <name>    the schema of PostgreSQL

The exit code is 0 if the record is intact, 1 if it is not, and 2 if the command failed.`

/** Runs an audit command. Returns the exit code. */
export function runAuditCommand(args: string[], output: CommandOutput): Promise<number> {
  return runCommand({ usage: AUDIT_USAGE, args }, output, async () => {
    const options = AUDIT_OPTIONS
    const { positionals, values } = parseArgs({ args, allowPositionals: true, options })
    const [topic, command, path] = positionals
    const isKnown = command === 'verify' || command === 'export'
    if (topic !== 'audit' || path === undefined || !isKnown) return undefined
    const filters = readFilters(values)
    await using record = await openAudit(path, values.schema)
    // Awaited before the database is closed.
    return command === 'verify'
      ? await verify(record, values.head, output)
      : await exportAudit(record, filters, output)
  })
}

const AUDIT_OPTIONS = {
  head: { type: 'string' },
  app: { type: 'string' },
  principal: { type: 'string' },
  chat: { type: 'string' },
  approval: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  after: { type: 'string' },
  schema: { type: 'string' },
} as const

async function verify(
  record: AuditReader,
  head: string | undefined,
  { print, printError }: CommandOutput,
): Promise<number> {
  const check = head === undefined ? {} : { head: readHead(head) }
  const { entries, head: newest, fault, removed } = await record.verify(check)
  if (fault) {
    printError(describeFault(fault))
    return 1
  }
  await print(`${entries} entries, all intact.`)
  if (removed) await print(`Retention has removed the entries up to ${removed.seq}.`)
  if (newest) await print(`head ${newest.seq}:${newest.hash}`)
  return 0
}

async function exportAudit(
  record: AuditReader,
  { after, accepts }: Filters,
  { print, printError }: CommandOutput,
): Promise<number> {
  for await (const entry of record.read(after))
    if (accepts(entry)) await print(JSON.stringify(entry))
  const { fault } = await record.verify({})
  if (fault) printError(describeFault(fault))
  return fault ? 1 : 0
}

/** The audit record of a database. */
interface AuditReader extends AsyncDisposable {
  readonly verify: (check: AuditCheck) => Promise<AuditVerification>
  /** Reads the entries after the one with this `seq`. */
  readonly read: (after: number) => AsyncIterable<AuditRecord>
}

/** Opens the record of a SQLite file that servers may use, without writing to it, or that of a PostgreSQL database. */
async function openAudit(database: string, schema: string | undefined): Promise<AuditReader> {
  if (isPostgres(database)) {
    const store = await openStore(database, schema)
    const { approvals } = store
    return {
      verify: async (check) =>
        (await approvals.verifyAudit?.(check)) ?? { entries: 0, head: undefined },
      read: (after) => approvals.audit({ after }),
      [Symbol.asyncDispose]: () => store.close(),
    }
  }
  const connection = await openExisting(database)
  return {
    verify: (check) => verifyChain(auditReader(connection), check),
    read: (after) => readRecord(connection, after),
    [Symbol.asyncDispose]: async () => connection.close(),
  }
}

async function* readRecord(
  connection: Awaited<ReturnType<typeof openExisting>>,
  after: number,
): AsyncGenerator<AuditRecord> {
  const page = connection.prepare<AuditRow & { readonly approval_id: string }>(
    'SELECT seq, approval_id, entry FROM approval_audit WHERE seq > ? ORDER BY seq LIMIT 200',
  )
  for (let rows = await page.select(after); rows.length > 0;) {
    for (const row of rows) if (hasTransition(row)) yield decodeAudit(row)
    rows = await page.select(rows.at(-1)?.seq ?? Infinity)
  }
}

interface Filters {
  readonly after: number
  readonly accepts: (record: AuditRecord) => boolean
}

function readFilters(values: { readonly [Name in keyof typeof AUDIT_OPTIONS]?: string }): Filters {
  const { app, principal, chat, approval } = values
  const from = readTime('from', values.from) ?? -Infinity
  const to = readTime('to', values.to) ?? Infinity
  const after = values.after === undefined ? 0 : Number(values.after)
  if (!Number.isSafeInteger(after) || after < 0)
    throw new Error('--after must be the `seq` of an entry.')
  return {
    after,
    accepts: (record) =>
      (app === undefined || record.chat.appName === app) &&
      (principal === undefined || record.chat.principalId === principal) &&
      (chat === undefined || record.chat.chatId === chat) &&
      (approval === undefined || record.approvalId === approval) &&
      record.at >= from &&
      record.at < to,
  }
}

function readTime(option: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const time = /^\d+$/.test(text) ? Number(text) : Date.parse(text)
  if (!Number.isNaN(time)) return time
  throw new Error(`--${option} must be a date such as 2026-11-16, or a number of ms since 1970.`)
}

function readHead(text: string): AuditHead {
  const [, seq, hash] = /^(\d+):([0-9a-f]{64})$/.exec(text) ?? []
  if (seq === undefined || hash === undefined) {
    throw new Error(
      '--head must be the head that an earlier check printed: a number, a colon and 64 hexadecimal digits.',
    )
  }
  return { seq: Number(seq), hash }
}

const RETENTION_USAGE = `Usage:
  adk-stream-protocol retention run <database> [--chats <age>] [--audit <age>] [--app <name>] [--dry-run]
  adk-stream-protocol delete-principal <database> <id> --audit keep|remove-contents [--app <name>]

<database> is a SQLite file or a URL of PostgreSQL. Servers may use it meanwhile.

retention run     removes chats that were not used for the age of --chats, and audit entries that are older than the age of
                  --audit, with their approvals. An age is a number with s, m, h or d, such as 365d. --dry-run only prints
                  what would be removed. Without --app, chats of all applications are removed.
delete-principal  deletes all chats and the user state of a principal. --audit keep leaves approvals and the audit record
                  unchanged; --audit remove-contents removes approvals and the contents of their audit entries. The default
                  of --app is adk-stream-protocol.

Both:
  --schema <name>    the schema of PostgreSQL
  --lease-ms <ms>    the limit leaseMs of the servers, if they do not use the default of 15000

The exit code is 0, or 2 if the command failed.`

const RETENTION_OPTIONS = {
  chats: { type: 'string' },
  audit: { type: 'string' },
  app: { type: 'string' },
  schema: { type: 'string' },
  'lease-ms': { type: 'string' },
  'dry-run': { type: 'boolean' },
} as const

/** How long `delete-principal` waits for running calls and turns, in ms. */
const WAIT_MS = 30_000

/** Runs a command that removes data. Returns the exit code. */
export function runRetentionCommand(args: string[], output: CommandOutput): Promise<number> {
  return runCommand({ usage: RETENTION_USAGE, args }, output, async () => {
    const options = RETENTION_OPTIONS
    const { positionals, values } = parseArgs({ args, allowPositionals: true, options })
    const [command, first, second] = positionals
    const { chats, audit, schema, app } = values
    const shared = {
      leaseMs: readLease(values['lease-ms']),
      ...(app !== undefined && { appName: app }),
    }
    if (command === 'retention' && first === 'run' && second !== undefined) {
      const limits = {
        ...shared,
        ...(chats !== undefined && { chatsMs: readAge('chats', chats) }),
        ...(audit !== undefined && { auditMs: readAge('audit', audit) }),
      }
      await using store = await openStore(second, schema)
      await output.print(await remove(store, limits, values['dry-run'] === true))
      return 0
    }
    const isChosen = audit === 'keep' || audit === 'remove-contents'
    if (command === 'delete-principal' && first !== undefined && second !== undefined && isChosen) {
      await using store = await openStore(first, schema)
      const owner = { appName: 'adk-stream-protocol', principalId: second, ...shared }
      const deleted = await deletePrincipalData(store, { ...owner, audit, waitMs: WAIT_MS })
      await output.print(`Deleted the principal and ${count(deleted, 'chat')}.`)
      return 0
    }
    return undefined
  })
}

type Limits = Parameters<typeof runRetention>[1]

async function remove(store: Store, limits: Limits, isDryRun: boolean): Promise<string> {
  const retention = retentionOf(store)
  if (!isDryRun) {
    const { chats, auditEntries, approvals } = await runRetention(retention, limits)
    return `Removed ${count(chats, 'chat')}, ${count(auditEntries, 'audit entry', 'audit entries')} and ${count(approvals, 'approval')}.`
  }
  const { chatsMs: unusedMs, auditMs, ...filter } = limits
  const unused =
    unusedMs === undefined
      ? []
      : await retention.listUnused({ ...filter, unusedMs, limit: 1_000_000 })
  const entries = auditMs === undefined ? 0 : await retention.countOldAudit(auditMs)
  return `Would remove ${count(unused.length, 'chat')} and ${count(entries, 'audit entry', 'audit entries')}.`
}

function count(number: number, one: string, several = `${one}s`): string {
  return `${number} ${number === 1 ? one : several}`
}

const UNITS: Readonly<Record<string, number>> = {
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
}

function readAge(option: string, text: string): number {
  const [, digits, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  const ms = Number(digits) * (UNITS[unit] ?? Number.NaN)
  if (!Number.isNaN(ms)) return ms
  throw new Error(`--${option} must be an age such as 365d or 12h.`)
}
