import { parseArgs } from 'node:util'

import { openStore, readLease } from './open-store.ts'
import { deletePrincipalData, retentionOf, runRetention } from './remove-data.ts'
import type { CommandOutput } from './sqlite/audit-command.ts'
import type { Store } from './store.ts'

const USAGE = `Usage:
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

const OPTIONS = {
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
export async function runRetentionCommand(args: string[], output: CommandOutput): Promise<number> {
  try {
    const { positionals, values } = parseArgs({ args, allowPositionals: true, options: OPTIONS })
    const [command, first, second] = positionals
    const leaseMs = readLease(values['lease-ms'])
    const shared = { leaseMs, ...(values.app !== undefined && { appName: values.app }) }
    if (command === 'retention' && first === 'run' && second !== undefined) {
      const limits = {
        ...shared,
        ...(values.chats !== undefined && { chatsMs: readAge('chats', values.chats) }),
        ...(values.audit !== undefined && { auditMs: readAge('audit', values.audit) }),
      }
      await using store = await openStore(second, values.schema)
      await output.print(await remove(store, limits, values['dry-run'] === true))
      return 0
    }
    const { audit } = values
    const isChosen = audit === 'keep' || audit === 'remove-contents'
    if (command === 'delete-principal' && first !== undefined && second !== undefined && isChosen) {
      await using store = await openStore(first, values.schema)
      const owner = { appName: 'adk-stream-protocol', principalId: second }
      const chats = await deletePrincipalData(store, {
        ...owner,
        ...shared,
        audit,
        waitMs: WAIT_MS,
      })
      await output.print(`Deleted the principal and ${count(chats, 'chat')}.`)
      return 0
    }
    output.printError(USAGE)
  } catch (error) {
    output.printError(error instanceof Error ? error.message : String(error))
  }
  return 2
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
