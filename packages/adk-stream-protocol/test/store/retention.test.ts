import { existsSync, readFileSync } from 'node:fs'
import Database from 'libsql'
import { describe, expect, test } from 'vitest'

import { Ledger } from '../../src/approvals/ledger.ts'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import {
  deletePrincipalData,
  removeOrphans,
  retentionOf,
  runRetention,
} from '../../src/store/remove-data.ts'
import { runAuditCommand, runRetentionCommand } from '../../src/store/commands.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import type { Store } from '../../src/store/store.ts'
import { chat, hanako, requestOf, taken } from '../ledger/support/fixture.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import { deltaEvent, textEvent } from '../../src/store/contract/fixtures.ts'
import { refusal } from './support/subjects.ts'
import { createDatabase } from '../support/postgres.ts'

/** Stores on one database with the clocks of the system. */
interface Subject extends AsyncDisposable {
  readonly address: string
  open(): Promise<Store>
  count(table: string): Promise<number>
  run(sql: string): Promise<unknown>
}

const SUBJECTS: Record<string, () => Promise<Subject>> = {
  sqlite: async () => {
    const folder = await temporaryDirectory()
    const path = folder.file('s.db')
    const stores: Store[] = []
    const use = async (work: (database: Database.Database) => unknown) => {
      const database = new Database(path, { timeout: 5_000 })
      try {
        return work(database)
      } finally {
        database.close()
      }
    }
    return {
      address: path,
      open: async () => {
        const store = await openSqliteStore({ path })
        stores.push(store)
        return store
      },
      count: async (table) =>
        (await use(
          (database) =>
            (database.prepare(`SELECT count(*) AS n FROM ${table}`).all() as { n: number }[])[0]?.n,
        )) as number,
      run: (sql) => use((database) => database.exec(sql)),
      [Symbol.asyncDispose]: async () => {
        await Promise.all(stores.map((store) => store.close()))
        await folder[Symbol.asyncDispose]()
      },
    }
  },
  postgres: async () => {
    const database = await createDatabase()
    const stores: Store[] = []
    const schema = 'adk_stream_protocol'
    return {
      address: database.url,
      open: async () => {
        const store = await openPostgresStore({
          connectionString: database.url,
          maxConnections: 4,
          reservedConnections: 2,
        })
        stores.push(store)
        return store
      },
      count: async (table) =>
        Number((await database.run(`SELECT count(*) AS n FROM ${schema}.${table}`))[0]?.['n']),
      run: (sql) => database.run(`SET search_path TO ${schema}; ${sql}; RESET search_path`),
      [Symbol.asyncDispose]: async () => {
        await Promise.all(stores.map((store) => store.close()))
        await database[Symbol.asyncDispose]()
      },
    }
  },
}

const LEASE = 15_000
const DAY = 86_400_000
/** Everything is older than this. */
const ANY_AGE = -60_000
const ALL = { chatsMs: ANY_AGE, auditMs: ANY_AGE, leaseMs: LEASE }

function refOf(chatId: string, principalId = 'hanako') {
  return { ...chat, principalId, chatId }
}

async function addChat(store: Store, chatId: string, principalId = 'hanako'): Promise<void> {
  const key = { appName: chat.appName, userId: principalId, sessionId: chatId }
  const session = await store.sessions.createSession(key)
  await store.sessions.appendEvent({ session, event: textEvent(`said in ${chatId}`) })
  await store.chats.note(refOf(chatId, principalId), { title: `of ${chatId}`, createdAt: 1 })
}

async function addApproval(store: Store, chatId: string, end: 'pending' | 'denied' = 'denied') {
  const ledger = new Ledger({ store: store.approvals, appName: chat.appName })
  const id = `approval in ${chatId}`
  const call = { id, chat: refOf(chatId), toolCallId: `call in ${chatId}` }
  taken(await ledger.request(requestOf(call)))
  if (end === 'pending') return ledger
  taken(await ledger.decide(id, { by: hanako, approved: false }))
  await ledger.markReported(refOf(chatId), [call.toolCallId])
  return ledger
}

async function chatsOf(store: Store, userId = 'hanako'): Promise<string[]> {
  const { sessions } = await store.sessions.listSessions({ appName: chat.appName, userId })
  return sessions.map(({ id }) => id).toSorted()
}

describe.each(Object.entries(SUBJECTS))('%s', (name, create) => {
  test('[ST310] unused chats are removed completely; chats in use, and chats with open approvals, stay', async () => {
    await using subject = await create()
    const store = await subject.open()
    for (const id of ['old', 'locked', 'pending', 'running', 'unreported', 'waiting', 'crashed'])
      await addChat(store, id)
    await addApproval(store, 'old')
    const ledger = await addApproval(store, 'pending', 'pending')
    await ledger.locks.lock(refOf('locked'))
    const crashed = new Ledger({ store: store.approvals, appName: chat.appName, leaseMs: 1 })
    await store.approvals.lockChat(refOf('crashed'), {
      worker: crashed.worker,
      token: 'token',
      leaseMs: 1,
      background: false,
    })
    for (const id of ['running', 'unreported']) {
      const call = { chat: refOf(id), toolCallId: 'call' }
      taken(await ledger.request(requestOf({ ...call, id })))
      taken(await ledger.decide(id, { by: hanako, approved: true }))
      taken(await ledger.claim(id, { ...requestOf({ ...call, id }) }))
    }
    taken(await ledger.succeed('unreported', { paid: true }))
    await store.browserCalls.add(
      { chat: refOf('waiting'), messageId: 'm', toolCallId: 'c' },
      3_600_000,
    )
    await store.browserCalls.add({ chat: refOf('old'), messageId: 'm', toolCallId: 'c' }, 0)

    const retention = retentionOf(store)
    expect(await runRetention(retention, { chatsMs: DAY, leaseMs: LEASE })).toMatchObject({
      chats: 0,
    })
    expect(await runRetention(retention, { leaseMs: LEASE })).toEqual({
      chats: 0,
      auditEntries: 0,
      approvals: 0,
    })
    const kept = ['crashed', 'locked', 'pending', 'running', 'unreported', 'waiting']
    const { chats } = await runRetention(retention, { chatsMs: ANY_AGE, leaseMs: LEASE })
    expect(chats).toBe(1)
    expect(await chatsOf(store)).toEqual(kept)
    const known = await store.chats.find(chat, ['old', 'locked'])
    expect([...known.keys()]).toEqual(['locked'])
    expect(await subject.count('browser_calls')).toBe(1)
    expect(await subject.count('events')).toBe(kept.length)
    // The audit record was not limited.
    expect((await store.approvals.get('approval in old'))?.state.name).toBe('denied')

    // A lease that has expired does not count.
    expect(await retention.removeChat(refOf('crashed'), { leaseMs: -1 })).toBe(true)
    expect(await chatsOf(store)).not.toContain('crashed')
  })

  test('[ST310] a chat whose live session another process has open stays, until its lease expires', async () => {
    await using subject = await create()
    const [store, other] = [await subject.open(), await subject.open()]
    await addChat(store, 'talking')
    const lock = { worker: 'other', token: 'live', leaseMs: LEASE, background: true }
    const live = { ...refOf('talking'), appName: `${chat.appName}#live` }
    await other.approvals.lockChat(live, lock)
    const retention = retentionOf(store)
    expect(await retention.listUnused({ unusedMs: ANY_AGE, leaseMs: LEASE, limit: 9 })).toEqual([])
    expect(await runRetention(retention, ALL)).toMatchObject({ chats: 0 })
    expect(await retention.removeChat(refOf('talking'), { leaseMs: LEASE })).toBe(false)
    expect(await subject.count('chat_locks')).toBe(1)
    expect(await retention.removeChat(refOf('talking'), { leaseMs: -1 })).toBe(true)
    expect(await subject.count('chat_locks')).toBe(0)
    expect(await chatsOf(store)).toEqual([])
  })

  test('[ST342] entries of the chat list without a chat are removed by the second run that finds them', async () => {
    await using subject = await create()
    const store = await subject.open()
    const retention = retentionOf(store)
    const { appName } = chat
    await addChat(store, 'exists')
    // More than a page.
    const ids = Array.from({ length: 250 }, (_, index) => `orphan-${index}`)
    for (const id of ids) await store.chats.rename(refOf(id), 'A name')
    await store.chats.rename({ ...refOf('elsewhere'), appName: 'other' }, 'A name')
    await store.chats.assignAgent(refOf('starting'), 'assistant')
    const ledger = new Ledger({ store: store.approvals, appName })
    const token = (await ledger.locks.lock(refOf('starting'))) ?? ''
    const found = await removeOrphans(retention, { appName, found: new Set() })
    expect(found.size).toBe(250)
    // One of them gets its session meanwhile.
    await store.sessions.createSession({ appName, userId: 'hanako', sessionId: 'orphan-7' })
    expect(await removeOrphans(retention, { appName, found })).toEqual(new Set())
    const names = await store.chats.find(chat, [...ids, 'exists', 'starting'])
    expect([...names.keys()].toSorted()).toEqual(['exists', 'orphan-7', 'starting'])
    expect(await subject.count('chats')).toBe(4)
    await ledger.locks.unlock(refOf('starting'), token)
    expect((await removeOrphans(retention, { appName, found: new Set() })).size).toBe(1)
  })

  test('[ST311] the audit record can be verified after entries were removed, and a forged removal is detected', async () => {
    await using subject = await create()
    const store = await subject.open()
    const retention = retentionOf(store)
    for (const id of ['a', 'b', 'c']) await addApproval(store, id)
    const before = await store.approvals.verifyAudit?.()
    expect(before).toMatchObject({ entries: 6, head: { seq: 6 } })
    expect(await retention.countOldAudit(DAY)).toBe(0)
    expect(await retention.removeAudit({ olderThanMs: DAY, limit: 100 })).toBe(0)
    expect(await retention.removeAudit({ olderThanMs: ANY_AGE, limit: 4 })).toBe(4)
    const cut = await store.approvals.verifyAudit?.()
    // Entries 5 and 6, and the entry that records the removal.
    expect(cut).toMatchObject({ entries: 3, head: { seq: 7 }, removed: { seq: 4 } })
    expect(cut).not.toHaveProperty('fault')
    await addApproval(store, 'd')
    for (const check of [{}, { newest: 2 }, ...(before?.head ? [{ head: before.head }] : [])])
      expect(await store.approvals.verifyAudit?.(check)).not.toHaveProperty('fault')
    const early = { seq: 2, hash: 'a'.repeat(64) }
    expect(await store.approvals.verifyAudit?.({ head: early })).toMatchObject({
      fault: { seq: 2, reason: 'removed' },
    })

    await expect(subject.run('DELETE FROM approval_audit WHERE seq = 5')).rejects.toThrow(
      'append-only',
    )
    await expect(
      subject.run(`UPDATE approval_audit SET entry = '{}' WHERE seq = 5`),
    ).rejects.toThrow('append-only')
    await subject.run(`UPDATE approval_audit SET entry = '{"erased":true}' WHERE seq = 5`)
    expect(await store.approvals.verifyAudit?.()).toMatchObject({
      fault: { seq: 5, reason: 'changed' },
    })
    await subject.run(`UPDATE audit_cut SET seq = 6, hash = '${before?.head?.hash}'`)
    await subject.run('DELETE FROM approval_audit WHERE seq <= 6')
    expect(await store.approvals.verifyAudit?.()).toMatchObject({
      fault: { seq: 6, reason: 'missing' },
    })
  })

  test('[ST312] an approval is removed with its last audit entry, and a pending one can still be decided', async () => {
    await using subject = await create()
    const store = await subject.open()
    const ledger = await addApproval(store, 'waits', 'pending')
    await addApproval(store, 'done')
    const removed = await runRetention(retentionOf(store), ALL)
    expect(removed).toEqual({ chats: 0, auditEntries: 3, approvals: 1 })
    expect(await store.approvals.get('approval in done')).toBeUndefined()
    taken(await ledger.decide('approval in waits', { by: hanako, approved: false }))
    const entries = []
    for await (const entry of store.approvals.audit({})) entries.push(entry.event.type)
    expect(entries).toEqual(['denied'])
    expect(await store.approvals.verifyAudit?.()).not.toHaveProperty('fault')
    // Nothing but entries about removals is left: removing those would only add another one.
    await ledger.markReported(refOf('waits'), ['call in waits'])
    await runRetention(retentionOf(store), ALL)
    const left = await subject.count('approval_audit')
    expect(await runRetention(retentionOf(store), ALL)).toEqual({
      chats: 0,
      auditEntries: 0,
      approvals: 0,
    })
    expect(await subject.count('approval_audit')).toBe(left)
    expect(await subject.count('approvals')).toBe(0)
  })

  test('[ST310] turns that start while several processes remove their chats lose nothing', async () => {
    await using subject = await create()
    const [one, two, three] = [await subject.open(), await subject.open(), await subject.open()]
    const ids = Array.from({ length: 12 }, (_, index) => `chat-${index}`)
    for (const id of ids) await addChat(one, id)
    for (const id of ids) await addApproval(one, id)
    const ledger = new Ledger({ store: three.approvals, appName: chat.appName })
    const turns = ids.map(async (id) => {
      let token: string | undefined
      while (token === undefined) token = await ledger.locks.lock(refOf(id))
      const key = { appName: chat.appName, userId: 'hanako', sessionId: id }
      const session = await three.sessions.getOrCreateSession(key)
      for (const event of ['first', 'second'])
        await three.sessions.appendEvent({ session, event: textEvent(event) })
      // Still locked, so no sweep can remove what the turn has written.
      const stored = await three.sessions.getSession(key)
      return stored?.events.map((event) => event.id).slice(-2)
    })
    const sweeps = [one, two].map((store) => runRetention(retentionOf(store), ALL))
    expect(await Promise.all(turns)).toEqual(ids.map(() => ['first', 'second']))
    const removed = await Promise.all(sweeps)
    expect(removed.reduce((sum, { auditEntries }) => sum + auditEntries, 0)).toBeGreaterThanOrEqual(
      ids.length * 2,
    )
    expect(await chatsOf(one)).toEqual(ids.toSorted())
    expect(await one.approvals.verifyAudit?.()).not.toHaveProperty('fault')
  })

  test('[ST315] the data of a principal is deleted, with or without the contents of the audit record', async () => {
    await using subject = await create()
    const store = await subject.open()
    await addChat(store, 'taros', 'taro')
    for (const id of ['one', 'two']) await addChat(store, id)
    await addApproval(store, 'one')
    await addApproval(store, 'two', 'pending')
    const session = await store.sessions.getOrCreateSession({
      appName: chat.appName,
      userId: 'hanako',
      sessionId: 'one',
    })
    await store.sessions.appendEvent({ session, event: deltaEvent('x', { 'user:diet': 'vegan' }) })
    const deletion = { ...refOf(''), leaseMs: LEASE, waitMs: 0 }
    expect(await deletePrincipalData(store, { ...deletion, audit: 'keep' })).toBe(2)
    expect(await chatsOf(store)).toEqual([])
    expect(await chatsOf(store, 'taro')).toEqual(['taros'])
    expect((await store.approvals.get('approval in two'))?.state.name).toBe('cancelled')
    const fresh = await store.sessions.createSession({ appName: chat.appName, userId: 'hanako' })
    expect(fresh.state).toEqual({})
    const kept = await store.approvals.verifyAudit?.()
    expect(kept).toMatchObject({ entries: 4 })

    await deletePrincipalData(store, { ...deletion, audit: 'remove-contents' })
    expect(await subject.count('approvals')).toBe(0)
    const erased = await store.approvals.verifyAudit?.(kept?.head ? { head: kept.head } : {})
    expect(erased).toMatchObject({ entries: 5, head: { seq: 5 } })
    expect(erased).not.toHaveProperty('fault')
    await addApproval(store, 'later')
    expect(await store.approvals.verifyAudit?.()).not.toHaveProperty('fault')
    await retentionOf(store).removeAudit({ olderThanMs: ANY_AGE, limit: 3 })
    expect(await store.approvals.verifyAudit?.()).not.toHaveProperty('fault')
    if (name !== 'sqlite') return
    const files = ['', '-wal'].map((suffix) => subject.address + suffix).filter(existsSync)
    const bytes = Buffer.concat(files.map((file) => readFileSync(file)))
    for (const word of ['said in one', 'vegan', 'of two', 'approval in two","chat'])
      expect([word, bytes.includes(word)]).toEqual([word, false])
  })

  test('[ST316] deletion waits for a running call and reports it, and a decision at the same moment has one outcome', async () => {
    await using subject = await create()
    const [store, other] = [await subject.open(), await subject.open()]
    await addChat(store, 'one')
    const ledger = await addApproval(other, 'one', 'pending')
    const id = 'approval in one'
    const deletion = { ...refOf(''), leaseMs: LEASE, audit: 'remove-contents' } as const
    const call = requestOf({ id, chat: refOf('one'), toolCallId: 'call in one' })
    // The decision of another process comes first.
    taken(await ledger.decide(id, { by: hanako, approved: true }))
    taken(await ledger.claim(id, call))
    await expect(deletePrincipalData(store, { ...deletion, waitMs: 0 })).rejects.toEqual(
      refusal('busy'),
    )
    expect((await store.approvals.get(id))?.state.name).toBe('executing')
    expect(await chatsOf(store)).toEqual(['one'])
    const deleted = deletePrincipalData(store, { ...deletion, waitMs: 30_000 })
    taken(await ledger.succeed(id, { paid: true }))
    expect(await deleted).toBe(1)
    expect(await chatsOf(store)).toEqual([])

    // Both at once: the call is cancelled, or it is approved and then cancelled before it starts.
    await addChat(store, 'two')
    await addApproval(other, 'two', 'pending')
    const second = 'approval in two'
    const [decision] = await Promise.allSettled([
      ledger.decide(second, { by: hanako, approved: true }),
      deletePrincipalData(store, { ...deletion, waitMs: 30_000 }),
    ])
    expect(decision.status).toBe('fulfilled')
    expect(await ledger.claim(second, { ...call, toolCallId: 'call in two' })).toHaveProperty(
      'refused',
    )
    expect(await chatsOf(store)).toEqual([])
    expect(await store.approvals.verifyAudit?.()).not.toHaveProperty('fault')
  })

  test('[ST317] commands remove old data and a principal', async () => {
    await using subject = await create()
    const store = await subject.open()
    await addChat(store, 'one')
    await addApproval(store, 'one')
    await new Promise((resolve) => setTimeout(resolve, 5))
    const run = ['retention', 'run', subject.address, '--chats', '0s', '--audit', '0s']
    expect(await command(...run, '--dry-run')).toEqual([
      0,
      'Would remove 1 chat and 2 audit entries.',
    ])
    expect(await command(...run)).toEqual([0, 'Removed 1 chat, 2 audit entries and 1 approval.'])
    await addChat(store, 'two')
    const principal = ['delete-principal', subject.address, 'hanako', '--app', 'demo']
    expect((await command(...principal))[0]).toBe(2)
    expect(await command(...principal, '--audit', 'keep')).toEqual([
      0,
      'Deleted the principal and 1 chat.',
    ])
    expect(await command('retention', 'run', subject.address, '--chats', 'soon')).toEqual([
      2,
      '--chats must be an age such as 365d or 12h.',
    ])
    expect((await command('retention', 'run', 'none.db', '--chats', '1d'))[0]).toBe(2)
    if (name !== 'sqlite') return
    const output: string[] = []
    const print = (line: string) => void output.push(line)
    for (const audit of ['verify', 'export'])
      expect(
        await runAuditCommand(['audit', audit, subject.address], { print, printError: print }),
      ).toBe(0)
    expect(output.join('\n')).toContain('Retention has removed the entries up to 2.')
  })

  test('[ST318] with retention, the tables stay small however many chats and approvals there were', async () => {
    await using subject = await create()
    const store = await subject.open()
    const tables = ['sessions', 'events', 'chats', 'approvals', 'approval_audit', 'chat_locks']
    const sizes: number[][] = []
    for (let round = 0; round < 3; round += 1) {
      for (let index = 0; index < 8; index += 1) {
        const id = `chat-${round}-${index}`
        await addChat(store, id)
        await addApproval(store, id)
      }
      await runRetention(retentionOf(store), ALL)
      sizes.push(await Promise.all(tables.map((table) => subject.count(table))))
    }
    // One entry records the last removal.
    expect(sizes).toEqual(sizes.map(() => [0, 0, 0, 0, 1, 0]))
    expect(await store.approvals.verifyAudit?.()).not.toHaveProperty('fault')
  })
})

async function command(...args: string[]): Promise<[number, string]> {
  const output: string[] = []
  const print = (line: string) => void output.push(line)
  const code = await runRetentionCommand(args, { print, printError: print })
  return [code, output.join('\n')]
}
