import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import Database from 'libsql'
import { expect, test } from 'vitest'

import { bundleProgram } from '../../../../test/support/bundle-program.ts'
import type { AuditEntry } from '../../src/approvals/audit-entry.ts'
import { Ledger } from '../../src/approvals/ledger.ts'
import { runAuditCommand } from '../../src/store/commands.ts'
import { DATABASE_CLOCK, prepareApprovalStatements } from '../../src/store/sqlite/approval-sql.ts'
import { Connection } from '../../src/store/sqlite/connection.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { hanako, requestOf, taken } from '../ledger/support/fixture.ts'
import {
  type TemporaryDirectory,
  temporaryDirectory,
} from '../../../../test/support/temporary-directory.ts'
import { refusal } from './support/subjects.ts'
import { serve } from '../support/serve.ts'

/** A database with six entries in its audit record. */
async function writeRecord(folder: TemporaryDirectory): Promise<string> {
  const path = folder.file('s.db')
  await using store = await openSqliteStore({ path })
  const ledger = new Ledger({ store: store.approvals, appName: 'demo' })
  for (const id of ['a', 'b', 'c']) {
    taken(await ledger.request(requestOf({ id, toolCallId: `call-${id}` })))
    taken(await ledger.decide(id, { by: hanako, approved: id !== 'b' }))
  }
  return path
}

/** Changes a record, as anyone with write access to the file can. */
function tamper(path: string, sql: string): void {
  const database = new Database(path)
  for (const trigger of ['stays', 'is_final', 'is_appended'])
    database.exec(`DROP TRIGGER IF EXISTS approval_audit_${trigger}`)
  database.exec(sql)
  database.close()
}

const FORGERIES = [
  [
    'an entry is changed',
    `UPDATE approval_audit SET entry = replace(entry, 'hanako', 'mallory') WHERE seq = 4`,
    4,
    'changed',
  ],
  [
    'an entry is replaced',
    `INSERT OR REPLACE INTO approval_audit SELECT seq, approval_id, version, '{}', hash FROM approval_audit WHERE seq = 2`,
    2,
    'changed',
  ],
  ['the first entry is removed', 'DELETE FROM approval_audit WHERE seq = 1', 2, 'changed'],
  ['an entry is removed', 'DELETE FROM approval_audit WHERE seq = 3', 4, 'changed'],
  ['the newest entry is removed', 'DELETE FROM approval_audit WHERE seq = 6', 6, 'missing'],
  ['all entries are removed', 'DELETE FROM approval_audit', 1, 'missing'],
  ['an entry is added', `INSERT INTO approval_audit VALUES (7, 'd', 0, '{}', 'abc')`, 7, 'changed'],
  ['a hash is removed', `UPDATE approval_audit SET hash = '' WHERE seq = 5`, 5, 'changed'],
] as const

test.each(FORGERIES)('[LG91] verification detects that %s', async (_what, sql, seq, reason) => {
  await using folder = await temporaryDirectory()
  const path = await writeRecord(folder)
  tamper(path, sql)
  await using store = await openSqliteStore({ path })
  expect(await store.approvals.verifyAudit?.()).toMatchObject({ fault: { seq, reason } })
})

test('[LG91] an intact record verifies completely and in part, and must contain a known head', async () => {
  await using folder = await temporaryDirectory()
  await using store = await openSqliteStore({ path: await writeRecord(folder) })
  const whole = await store.approvals.verifyAudit?.()
  expect(whole).toMatchObject({ entries: 6, head: { seq: 6 } })
  expect(whole?.head?.hash).toMatch(/^[0-9a-f]{64}$/)
  expect(await store.approvals.verifyAudit?.({ newest: 2 })).toEqual({ ...whole, entries: 2 })
  const head = { seq: 4, hash: 'of another record' }
  expect(await store.approvals.verifyAudit?.({ head })).toMatchObject({ fault: { seq: 4 } })
  const later = { seq: 9, hash: 'of entries that are gone' }
  expect(await store.approvals.verifyAudit?.({ head: later })).toMatchObject({
    fault: { seq: 7, reason: 'missing' },
  })
})

test('[LG91] entries of two processes, and after a transaction that failed, form one record', async () => {
  await using folder = await temporaryDirectory()
  const path = await writeRecord(folder)
  await using other = await openSqliteStore({ path })
  const ledger = new Ledger({ store: other.approvals, appName: 'demo' })
  const connection = new Connection(path, 1_000)
  const { appendAudit } = prepareApprovalStatements(connection, DATABASE_CLOCK)
  const { chat } = requestOf()
  const entryOf = (version: number): AuditEntry => ({
    approvalId: 'direct',
    chat,
    version,
    at: version,
    event: { type: 'expired' },
  })
  await connection.write(() => appendAudit([entryOf(0), entryOf(1)]))
  const failed = connection.write(() => {
    appendAudit([entryOf(2)])
    throw new Error('no commit')
  })
  await expect(failed).rejects.toThrow('The database is not available')
  taken(await ledger.request(requestOf({ id: 'd', toolCallId: 'call-d' })))
  await connection.write(() => appendAudit([entryOf(3)]))
  taken(await ledger.decide('d', { by: hanako, approved: true }))
  connection.close()
  const verified = await other.approvals.verifyAudit?.()
  expect(verified).toMatchObject({ entries: 11, head: { seq: 11 } })
  expect(verified).not.toHaveProperty('fault')
})

test('[LG92] a bridge reports a changed record and continues, or rejects all requests', async () => {
  await using folder = await temporaryDirectory()
  const path = await writeRecord(folder)
  tamper(path, FORGERIES[0][1])
  await using store = await openSqliteStore({ path })
  await using server = await serve({ store })
  expect((await server.browser().say('[[say Hello.]]')).status).toBe(200)
  await expect.poll(() => server.errors).toEqual([refusal('tampered')])
  expect(await (await fetch(`${server.url}/ready`)).json()).toEqual({
    status: 'ready',
    warnings: ['audit'],
  })

  await using strict = await serve({ store, whenTampered: 'refuse' })
  expect((await strict.browser().say('[[say Hello.]]')).status).toBe(503)
  expect((await fetch(`${strict.url}/ready`)).status).toBe(503)
})

test('[LG91] the command verifies a record, prints the head, and exports the record', async () => {
  await using folder = await temporaryDirectory()
  const path = await writeRecord(folder)
  const verified = await run('verify', path)
  expect(verified).toMatchObject({ code: 0, errors: '' })
  expect(verified.output).toMatch(/^6 entries, all intact\.\nhead 6:[0-9a-f]{64}$/)
  const head = verified.output.split(' ').at(-1) ?? ''
  expect(await run('verify', path, '--head', head)).toMatchObject({ code: 0 })
  const exported = await run('export', path)
  const entries = exported.output.split('\n').map((line) => JSON.parse(line) as { seq: number })
  expect(entries.map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6])
  expect(entries[0]).toMatchObject({ approvalId: 'a', event: { type: 'requested' } })

  tamper(path, FORGERIES[0][1])
  expect(await run('verify', path)).toMatchObject({ code: 1, output: '' })
  for (const args of [
    ['verify', folder.file('none.db')],
    ['verify', path, '--head', 'x'],
    ['other', path],
    ['verify'],
  ])
    expect(await run(...args)).toMatchObject({ code: 2, output: '' })
})

test('[AP222] the command exports the entries that its filters select, and reports a changed record', async () => {
  await using folder = await temporaryDirectory()
  const path = await writeRecord(folder)
  const seqs = async (...args: string[]) => {
    const { code, output } = await run('export', path, ...args)
    expect(code).toBe(0)
    return output
      .split('\n')
      .flatMap((line) => (line === '' ? [] : [(JSON.parse(line) as { seq: number }).seq]))
  }
  expect(await seqs()).toEqual([1, 2, 3, 4, 5, 6])
  expect(await seqs('--approval', 'b')).toEqual([3, 4])
  expect(await seqs('--after', '4')).toEqual([5, 6])
  expect(await seqs('--app', 'demo', '--principal', 'hanako', '--approval', 'a')).toEqual([1, 2])
  expect(await seqs('--app', 'other')).toEqual([])
  expect(await seqs('--chat', 'other')).toEqual([])
  expect(await seqs('--from', '2020-01-01', '--to', String(Date.now() + 60_000))).toHaveLength(6)
  expect(await seqs('--to', '2020-01-01T00:00:00Z')).toEqual([])
  for (const args of [
    ['--from', 'noon'],
    ['--after', 'x'],
    ['--colour', 'red'],
  ])
    expect(await run('export', path, ...args)).toMatchObject({ code: 2, output: '' })

  tamper(path, FORGERIES[0][1])
  const { code, output, errors } = await run('export', path, '--approval', 'b')
  expect(code).toBe(1)
  expect(output.split('\n')).toHaveLength(2)
  expect(errors).toContain('Entry 4')
})

async function run(...args: string[]) {
  const output: string[] = []
  const errors: string[] = []
  const code = await runAuditCommand(['audit', ...args], {
    print: (line) => void output.push(line),
    printError: (line) => void errors.push(line),
  })
  return { code, output: output.join('\n'), errors: errors.join('\n') }
}

test('[LG91] the command is a program of the package', async () => {
  const cli = await bundleProgram(new URL('../../src/use/cli.ts', import.meta.url))
  const ran = promisify(execFile)(process.execPath, [cli, 'audit', 'verify', ':none'])
  await expect(ran).rejects.toMatchObject({ code: 2, stderr: 'The file :none does not exist.\n' })
})
