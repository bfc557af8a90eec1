import Database from 'libsql'
import { Client } from 'pg'
import { describe, expect, test } from 'vitest'

import { Ledger } from '../../src/approvals/ledger.ts'
import { loadPostgres } from '../../src/store/commands.ts'
import { runDoctorCommand } from '../../src/store/doctor-command.ts'
import { runCli } from '../../src/use/run-cli.ts'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import {
  chat,
  hanako,
  managerStep,
  ownerStep,
  requestOf,
  taken,
  termsOf,
} from '../ledger/support/fixture.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { textEvent } from '../../src/store/contract/fixtures.ts'
import { type LeaseTimes, postgresLeaseTimes, sqliteLeaseTimes } from '../support/lease-times.ts'
import { createDatabase } from '../support/postgres.ts'

interface Subject extends AsyncDisposable {
  readonly address: string
  readonly store: Store
  readonly leases: LeaseTimes
  /** Changes the newest audit entry, past the store. */
  readonly tamper: () => Promise<unknown>
}

const FORGE = `UPDATE approval_audit SET entry = replace(entry, 'No.', 'Yes')`

const SUBJECTS: Record<string, () => Promise<Subject>> = {
  SQLite: async () => {
    const folder = await temporaryDirectory()
    const address = folder.file('s.db')
    const store = await openSqliteStore({ path: address })
    return {
      address,
      store,
      leases: sqliteLeaseTimes(address),
      tamper: async () => {
        const database = new Database(address)
        for (const { name } of database
          .prepare("SELECT name FROM sqlite_master WHERE type = 'trigger'")
          .all() as { name: string }[])
          database.exec(`DROP TRIGGER ${name}`)
        database.exec(FORGE)
        database.close()
      },
      [Symbol.asyncDispose]: async () => {
        await store.close()
        await folder[Symbol.asyncDispose]()
      },
    }
  },
  PostgreSQL: async () => {
    const database = await createDatabase()
    const store = await openPostgresStore({ connectionString: database.url, maxConnections: 2 })
    return {
      address: database.url,
      store,
      leases: postgresLeaseTimes({
        run: (sql) => database.run(`SET search_path TO adk_stream_protocol; ${sql}`),
      }),
      tamper: async () => {
        const client = new Client({ connectionString: database.url })
        await client.connect()
        await client.query(
          `SET search_path TO adk_stream_protocol; ALTER TABLE approval_audit DISABLE TRIGGER USER; ${FORGE}`,
        )
        await client.end()
      },
      [Symbol.asyncDispose]: async () => {
        await store.close()
        await database[Symbol.asyncDispose]()
      },
    }
  },
}

async function doctor(...args: string[]): Promise<{ code: number; text: string }> {
  const lines: string[] = []
  const push = (line: string): void => void lines.push(line)
  const code = await runDoctorCommand(['doctor', ...args], { print: push, printError: push })
  return { code, text: lines.join('\n') }
}

async function cli(...args: string[]): Promise<{ code: number; text: string }> {
  const lines: string[] = []
  const push = (line: string): void => void lines.push(line)
  const code = await runCli(args, { print: push, printError: push })
  return { code, text: lines.join('\n') }
}

test.each([
  [
    ['--help'],
    0,
    /^Usage: adk-stream-protocol <command>[\s\S]* doctor [\s\S]* audit [\s\S]* retention /,
  ],
  [['help'], 0, /^Usage: adk-stream-protocol <command>/],
  [['--version'], 0, /^\d+\.\d+\.\d+/],
  [['doctor', '--help'], 0, /^Usage:\n {2}adk-stream-protocol doctor/],
  [['audit', 'verify', '-h'], 0, /^Usage:\n {2}adk-stream-protocol audit/],
  [['delete-principal', '--help'], 0, /^Usage:\n {2}adk-stream-protocol retention/],
  [[], 2, /^Usage: adk-stream-protocol <command>/],
  [['docter', 'chats.db'], 2, /^There is no command `docter`\. Did you mean `doctor`\?\n/],
  [['check', '--help'], 0, /^Usage:\n {2}adk-stream-protocol check/],
  [['check', 'a', 'b'], 2, /^Usage:\n {2}adk-stream-protocol check/],
  [['check', 'nope'], 2, /^nope does not exist\.$/],
  [['check', '--conect'], 2, /Unknown option '--conect'/],
  [['toString'], 2, /^There is no command `toString`\.\n/],
  [['audit', 'verify'], 2, /^Usage:\n {2}adk-stream-protocol audit/],
])('[OB1144] the command line with %j', async (args, code, text) => {
  const printed = await cli(...args)
  expect(printed.code).toBe(code)
  expect(printed.text).toMatch(text)
})

test('[OB1144] without the package pg, the command line says how to install it', async () => {
  const cause = Object.assign(new Error(`Cannot find package 'pg' imported from /x.js`), {
    code: 'ERR_MODULE_NOT_FOUND',
  })
  await expect(loadPostgres(() => Promise.reject(cause))).rejects.toThrow('npm install pg')
  const other = new Error('Something else')
  await expect(loadPostgres(() => Promise.reject(other))).rejects.toBe(other)
})

function open(store: Store, worker?: string): Ledger {
  const { appName } = chat
  return new Ledger({ store: store.approvals, appName, ...(worker !== undefined && { worker }) })
}

describe.each(Object.entries(SUBJECTS))('%s', (_name, create) => {
  test('[OB384] doctor reports a changed audit record with exit code 1, and `audit` verifies and exports it', async () => {
    await using subject = await create()
    const { store, address } = subject
    const ledger = open(store)
    taken(await ledger.request(requestOf()))
    taken(await ledger.decide('approval-1', { by: hanako, approved: false, reason: 'No.' }))
    expect(await doctor(address)).toMatchObject({ code: 0 })
    const intact = await cli('audit', 'verify', address)
    expect(intact.code).toBe(0)
    expect(intact.text).toMatch(/^2 entries, all intact/)
    const exported = await cli('audit', 'export', address, '--after', '1')
    expect(exported.code).toBe(0)
    expect(JSON.parse(exported.text)).toMatchObject({ event: { type: 'denied', reason: 'No.' } })

    await subject.tamper()
    const { code, text } = await doctor(address)
    expect(code).toBe(1)
    expect(text).toMatch(/^1 item needs an operator\.\n\nThe audit record was changed \(1\)/)
    const changed = await cli('audit', 'verify', address)
    expect(changed.code).toBe(1)
    expect(changed.text).toContain('was changed')
    expect(await cli('audit', 'export', address)).toMatchObject({ code: 1 })
  })

  test('[OB384] doctor names channels that cannot be reached', async () => {
    await using subject = await create()
    const { notices } = subject.store
    const from = (await notices?.position(chat.appName)) ?? 0
    const notice = { channel: 'ops', principalId: 'hanako', position: 1, asks: true, afterMs: 0 }
    const planned = ['a', 'b'].map((id) => ({ ...notice, id, approvalId: id, body: '{}' }))
    await notices?.plan(chat.appName, { from, to: from + 1, ended: [], notices: planned })
    await notices?.claim(chat.appName, { worker: 'w', channels: ['ops'], claimMs: 1_000, limit: 2 })
    const settled = { worker: 'w', answer: 'HTTP 500' }
    await notices?.settle(chat.appName, { ...settled, id: 'a', state: 'waiting', retryMs: 5_000 })
    expect(await doctor(subject.address)).toMatchObject({ code: 0 })
    await notices?.settle(chat.appName, { ...settled, id: 'b', state: 'failed' })
    const { code, text } = await doctor(subject.address)
    expect(code).toBe(1)
    expect(text).toContain(`${chat.appName}, channel ops: 1 notice, HTTP 500`)
  })

  test('[OB384] doctor names what waits, for whom, and what to do; nothing stuck is exit code 0', async () => {
    await using subject = await create()
    const { store, address } = subject
    expect(await doctor(address)).toEqual({ code: 0, text: 'Nothing waits.' })

    const ledger = open(store)
    const two = termsOf(ownerStep, managerStep)
    taken(await ledger.request(requestOf({ terms: { ...two, title: 'Payment' } })))
    taken(await ledger.decide('approval-1', { by: hanako, approved: true }))
    await store.browserCalls.add({ chat, messageId: 'm', toolCallId: 'locate-1' }, 60_000)
    const { code, text } = await doctor(address)
    expect(code).toBe(0)
    expect(text).toContain('Nothing needs an operator.')
    expect(text).toMatch(
      /Pending approvals \(1\)\n {2}chat chat-1 of hanako: Waiting for a second approver for Payment \(amount: 50, recipient: 花子\): 1 of 2 has approved \(hanako\); expires at .* UTC\. Who may approve: the role manager\. Approval approval-1\.\n {2}To do: a person who may approve/,
    )
    expect(text).toContain(
      'Tools that wait for a browser (1)\n  chat chat-1 of hanako: call locate-1',
    )
    expect((await doctor(address, '--app', 'other')).text).toBe('Nothing waits.')
  })

  test('[OB384] doctor finds calls that no server runs, and their servers; exit code 1', async () => {
    await using subject = await create()
    const { store, address } = subject
    const ledger = open(store)
    const run = async (name: string): Promise<void> => {
      const asked = taken(await ledger.request(requestOf({ id: name, toolCallId: `call ${name}` })))
      taken(await ledger.decide(name, { by: hanako, approved: true }))
      if (name !== 'waiting') taken(await ledger.claim(name, asked))
    }
    await run('waiting')
    await run('running')
    await ledger.locks.lock(chat)
    const fine = await doctor(address)
    expect(fine.code).toBe(0)
    expect(fine.text).toContain('Running calls (1)')
    expect(fine.text).toContain(`${ledger.worker}: lease renewed`)
    expect(fine.text).toMatch(/locks chat chat-1 of hanako for \d+ m?s/)

    // Since then, no server has run.
    await subject.leases.passUnwritten(3_600_000)
    const abandoned = await doctor(address)
    expect(abandoned.code).toBe(1)
    expect(abandoned.text).not.toContain('Running calls')

    // With a lease of 0 ms, every server counts as crashed.
    const late = await doctor(address, '--lease-ms', '0')
    expect(late.code).toBe(1)
    expect(late.text).toContain('2 items need an operator.')
    expect(late.text).toContain('Approved calls that no server has started (1)')
    expect(late.text).toContain('Calls whose server has crashed (1)')
    expect(late.text).toContain('Servers that have crashed and hold chat locks (1)')

    await new Ledger({ store: store.approvals, appName: chat.appName, leaseMs: 0 }).recover()
    const unknown = await doctor(address)
    expect(unknown.code).toBe(1)
    expect(unknown.text).toContain('Calls with an unknown outcome, last 24 hours (1)')
    expect(unknown.text).toContain('approval running')
  })

  test('[OB384] doctor explains one chat, without what was said', async () => {
    await using subject = await create()
    const { store, address } = subject
    const { appName, principalId, chatId } = chat
    const key = { appName, userId: principalId, sessionId: chatId }
    const session = await store.sessions.createSession(key)
    const event = textEvent('a secret')
    await store.sessions.appendEvent({ session, event: { ...event, author: 'user' } })
    taken(await open(store).request(requestOf({ messageId: event.invocationId })))
    const found = await doctor(address, '--chat', chatId)
    expect(found.code).toBe(0)
    expect(found.text).toMatch(/^chat chat-1 of hanako\nWaiting for hanako for process_payment/)
    expect(found.text).toMatch(/approval process_payment \(amount: 50, recipient: 花子\) requested/)
    expect(found.text).not.toContain('a secret')
    const { notices } = store
    const from = (await notices?.position(appName)) ?? 0
    const body = JSON.stringify({ type: 'approval.requested', to: 'ana' })
    const notice = { id: 'n', channel: 'ops', principalId, position: 1, asks: true, afterMs: 0 }
    const [asked] = await store.approvals.list({ states: ['requested'], limit: 1 })
    const notified = [{ ...notice, approvalId: asked?.id ?? '', body }]
    await notices?.plan(appName, { from, to: from + 1, ended: [], notices: notified })
    await notices?.claim(appName, { worker: 'w', channels: ['ops'], claimMs: 1_000, limit: 1 })
    await notices?.settle(appName, { id: 'n', worker: 'w', state: 'failed', answer: 'HTTP 500' })
    const told = await doctor(address, '--chat', chatId)
    expect(told.text).toMatch(/notice approval\.requested to ops \(ana\) failed: HTTP 500/)
    const other = await doctor(address, '--chat', 'other')
    expect(other).toMatchObject({ code: 2, text: expect.stringContaining('--principal') as string })
    const named = await doctor(address, '--chat', 'other', '--principal', 'taro', '--app', 'demo')
    expect(named.text).toContain('Idle: waiting for a message.\nThe chat does not exist.')
  })
})

test('[OB384] doctor prints its usage, and what is wrong, with exit code 2', async () => {
  expect(await doctor()).toMatchObject({
    code: 2,
    text: expect.stringContaining('Usage:') as string,
  })
  expect(await doctor('/nowhere/s.db')).toEqual({
    code: 2,
    text: 'The file /nowhere/s.db does not exist.',
  })
  expect((await doctor('x', '--colour')).code).toBe(2)
})
