import { parseArgs } from 'node:util'

import type { AuditHead, AuditVerification } from '../../approvals/approval-store.ts'
import type { AuditRecord } from '../../approvals/audit-entry.ts'
import type { AuditRow } from '../rows.ts'
import { decodeAudit } from '../rows.ts'
import { hasTransition, verifyChain } from '../audit-chain.ts'
import { auditReader } from './approval-sql.ts'
import { openExisting } from './open-database.ts'

const USAGE = `Usage:
  adk-stream-protocol audit verify <database> [--head <seq>:<hash>]
  adk-stream-protocol audit export <database> [filters]

verify  checks that no entry of the audit record was changed or removed, and prints the head. Store the head
        outside the database and pass it to the next check. The check then also detects a record that was rewritten.
export  prints the audit record as JSON Lines, one entry per line, and checks it. The filters:
        --app <name>                      entries of one application
        --principal <id> --chat <id>      entries of the chats of a principal, or of one chat
        --approval <id>                   entries of one approval
        --from <time> --to <time>         entries at or after, and before: a date such as 2026-11-16, or ms since 1970
        --after <seq>                     entries after this one, to continue an earlier export

The exit code is 0 if the record is intact, 1 if it is not, and 2 if the command failed.

To remove old data, see: adk-stream-protocol retention
To see what waits and why: adk-stream-protocol doctor`

/** The output of a command. */
export interface CommandOutput {
  /** Resolves when the output accepts more text. */
  readonly print: (text: string) => void | Promise<void>
  readonly printError: (text: string) => void
}

/** Runs an audit command. Returns the exit code. */
export async function runAuditCommand(args: string[], output: CommandOutput): Promise<number> {
  try {
    const { positionals, values } = parseArgs({ args, allowPositionals: true, options: OPTIONS })
    const [topic, command, path] = positionals
    if (topic === 'audit' && path !== undefined) {
      if (command === 'verify') return await verify(path, values.head, output)
      if (command === 'export') return await exportAudit(path, readFilters(values), output)
    }
    output.printError(USAGE)
  } catch (error) {
    output.printError(error instanceof Error ? error.message : String(error))
  }
  return 2
}

const OPTIONS = {
  head: { type: 'string' },
  app: { type: 'string' },
  principal: { type: 'string' },
  chat: { type: 'string' },
  approval: { type: 'string' },
  from: { type: 'string' },
  to: { type: 'string' },
  after: { type: 'string' },
} as const

async function verify(
  path: string,
  head: string | undefined,
  { print, printError }: CommandOutput,
): Promise<number> {
  const check = head === undefined ? {} : { head: readHead(head) }
  const connection = await openExisting(path)
  try {
    const {
      entries,
      head: newest,
      fault,
      removed,
    } = await verifyChain(auditReader(connection), check)
    if (fault) {
      printError(describeFault(fault))
      return 1
    }
    await print(`${entries} entries, all intact.`)
    if (removed) await print(`Retention has removed the entries up to ${removed.seq}.`)
    if (newest) await print(`head ${newest.seq}:${newest.hash}`)
    return 0
  } finally {
    connection.close()
  }
}

async function exportAudit(
  path: string,
  { after, accepts }: Filters,
  { print, printError }: CommandOutput,
): Promise<number> {
  const connection = await openExisting(path)
  try {
    const page = connection.prepare<AuditRow & { readonly approval_id: string }>(
      'SELECT seq, approval_id, entry FROM approval_audit WHERE seq > ? ORDER BY seq LIMIT 200',
    )
    for (let rows = await page.select(after); rows.length > 0;) {
      for (const row of rows) {
        if (!hasTransition(row)) continue
        const record = decodeAudit(row)
        if (accepts(record)) await print(JSON.stringify(record))
      }
      rows = await page.select(rows.at(-1)?.seq ?? Infinity)
    }
    const { fault } = await verifyChain(auditReader(connection))
    if (fault) printError(describeFault(fault))
    return fault ? 1 : 0
  } finally {
    connection.close()
  }
}

interface Filters {
  readonly after: number
  readonly accepts: (record: AuditRecord) => boolean
}

function readFilters(values: { readonly [Name in keyof typeof OPTIONS]?: string }): Filters {
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

/** Returns a sentence that names the damaged entry. */
export function describeFault({ seq, reason }: NonNullable<AuditVerification['fault']>): string {
  if (reason === 'removed')
    return `Entry ${seq} was removed by retention, so its head cannot be checked any more. Use a newer head.`
  const what =
    reason === 'changed' ? `Entry ${seq} or one before it was changed` : `Entry ${seq} is missing`
  return `${what}. The audit record of approvals is not intact. Compare it with a backup.`
}
