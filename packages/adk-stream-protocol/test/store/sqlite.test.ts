import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { createInterface } from 'node:readline'
import Database from 'libsql'
import { expect, test } from 'vitest'
import { bundleProgram } from '../../../../test/support/bundle-program.ts'
import { posixTest } from '../../../../test/support/posix-test.ts'
import { Connection } from '../../src/store/sqlite/connection.ts'
import { openDatabase } from '../../src/store/sqlite/open-database.ts'
import { FIRST_VERSION } from '../../src/store/schema-version.ts'
import { openSqliteStore } from '../../src/store/sqlite/sqlite-store.ts'
import { canReadChangeTags } from '../../src/store/store.ts'
import { temporaryDirectory } from '../../../../test/support/temporary-directory.ts'
import {
  chat,
  idsOf,
  key,
  lockOf,
  readSession,
  textEvent,
} from '../../src/store/contract/fixtures.ts'
import { refusal } from './support/subjects.ts'

test('[ST9] a second session with the same id is a conflict', async () => {
  await using store = await openSqliteStore({ path: ':memory:' })
  await store.sessions.createSession({ ...key, state: { a: 1 } })
  await expect(store.sessions.createSession(key)).rejects.toEqual(refusal('conflict'))
  expect((await readSession(store.sessions)).state).toEqual({ a: 1 })
})

test('[ST9] many concurrent first uses create one session', async () => {
  await using folder = await temporaryDirectory()
  await using one = await openSqliteStore({ path: folder.file('s.db') })
  await using two = await openSqliteStore({ path: folder.file('s.db') })
  const requests = Array.from({ length: 40 }, (_, by) => ({ ...key, state: { by } }))
  const sessions = await Promise.all(
    requests.map((request, index) => (index % 2 ? one : two).sessions.getOrCreateSession(request)),
  )
  expect(new Set(sessions.map((session) => session.state['by'])).size).toBe(1)
  expect((await one.sessions.listSessions(key)).totalItems).toBe(1)
})

test('[PO3] the tag of a session changes with its events, and the count with the changes of other processes', async () => {
  await using folder = await temporaryDirectory()
  await using one = await openSqliteStore({ path: folder.file('s.db') })
  await using two = await openSqliteStore({ path: folder.file('s.db') })
  const { sessions } = one
  if (!canReadChangeTags(sessions)) throw new Error('A SQLite store has change tags.')
  const seen: unknown[] = []
  const look = async (): Promise<void> => {
    const { appName, userId, sessionId } = key
    const tags = await sessions.readChangeTags({ appName, userIds: [userId, 'nobody'] })
    expect([...tags.keys()]).toEqual([userId])
    seen.push(`${await sessions.readChangeCount()} ${tags.get(userId)?.get(sessionId)}`)
  }
  const session = await two.sessions.createSession(key)
  await look()
  await two.sessions.appendEvent({ session, event: textEvent('one') })
  await look()
  await two.sessions.appendEvent({ session, event: textEvent('two') })
  await look()
  await two.sessions.rewind({ ...key, eventId: 'two' })
  await look()
  await two.sessions.deleteSession(key)
  await two.sessions.createSession(key)
  await look()
  expect(new Set(seen).size).toBe(5)
  const [counts, tags] = [0, 1].map((part) => seen.map((each) => String(each).split(' ')[part]))
  expect(new Set(counts).size).toBe(5)
  expect(new Set(tags).size).toBe(5)
})

test('[ST27] [ST31] two processes that concurrently open a new file share one session and one secret, and exit', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('deep/er/new.db')
  await using first = await startChild('first-use', path)
  await using second = await startChild('first-use', path)
  expect([await first.nextLine(), await second.nextLine()]).toEqual(['ready', 'ready'])
  first.go()
  second.go()
  expect(await first.nextLine()).toBe(await second.nextLine())
  // Neither closes its store.
  expect(await first.exitCode).toBe(0)
  expect(await second.exitCode).toBe(0)
  await using store = await openSqliteStore({ path })
  const ids = idsOf(await readSession(store.sessions))
  expect(ids.toSorted()).toEqual([`of-${first.pid}`, `of-${second.pid}`].toSorted())
})

test('[ST625] the log is moved into the database file in the background, long before a commit would do it', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  const connection = await openDatabase(path)
  const limit = connection.prepare<{ wal_autocheckpoint: number }>('PRAGMA wal_autocheckpoint')
  expect(limit.rows()).toEqual([{ wal_autocheckpoint: 10_000 }])
  connection.close()
  await using store = await openSqliteStore({ path })
  const { size } = await stat(path)
  const session = await store.sessions.createSession(key)
  const parts = [{ text: 'word '.repeat(100) }]
  // Fewer pages than those after which SQLite itself would move the log at a commit.
  for (let index = 0; index < 220; index += 1) {
    const event = textEvent(`e-${index}`, { content: { role: 'model', parts } })
    await store.sessions.appendEvent({ session, event })
  }
  await expect.poll(async () => (await stat(path)).size).toBeGreaterThan(size + 50_000)
  expect(idsOf(await readSession(store.sessions))).toHaveLength(220)
})

test('[ST14] every acknowledged append survives a SIGKILL completely', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  await using child = await startChild('append', path)
  expect(await child.nextLine()).toBe('ready')
  child.go()
  const acknowledged = new Map<string, number>()
  const read = (line: string): void => {
    const [chatId = '', number] = line.split(' ')
    acknowledged.set(chatId, Number(number))
  }
  while ((acknowledged.get(key.sessionId) ?? 0) < 40) read(await child.nextLine())
  child.kill()
  await child.exitCode
  for (const line of child.unread()) read(line)
  await using store = await openSqliteStore({ path })
  expect(acknowledged.size).toBe(3)
  for (const [chatId, number] of acknowledged) {
    const session = await readSession(store.sessions, { ...key, sessionId: chatId })
    const stored = session.events.length
    expect(stored).toBeGreaterThanOrEqual(number)
    expect(idsOf(session)).toEqual(Array.from({ length: stored }, (_, n) => `event-${n + 1}`))
    const shared = { [`user:${chatId}`]: stored, [`app:${chatId}`]: stored }
    expect(session.state).toMatchObject({ number: stored, ...shared })
  }
  expect(new Database(path).pragma('integrity_check')).toEqual([{ integrity_check: 'ok' }])
})

test('[ST1860] chats that write at the same moment share a commit, which a store that closes does not drop', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  const store = await openSqliteStore({ path })
  const lock = (chatId: string) =>
    store.approvals.lockChat({ ...chat, chatId }, lockOf(chatId, 60_000))
  const numbers = Array.from({ length: 20 }, (_, number) => number)
  const readGrowth = async (work: () => Promise<unknown>): Promise<number> => {
    const { size } = await stat(`${path}-wal`)
    await work()
    return (await stat(`${path}-wal`)).size - size
  }
  const apart = await readGrowth(async () => {
    for (const number of numbers) await lock(`apart-${number}`)
  })
  const together = await readGrowth(() => Promise.all(numbers.map((n) => lock(`together-${n}`))))
  expect(together).toBeLessThan(apart / 3)
  const last = Promise.all([lock('last-1'), lock('last-2')])
  await store.close()
  expect(await last).toEqual([true, true])
})

test('[ST1860] other writes run at once, after those that wait to share a commit', async () => {
  const connection = await openDatabase(':memory:')
  const order: string[] = []
  const add = (name: string) => () => void order.push(name)
  const chats = ['first', 'second', 'third']
  const writes = chats.map((id) => connection.writeTogether(['app', 'user', id], add(id)))
  expect(order).toEqual(['first'])
  const slow = connection.write(() => {
    // Longer than queued writes run without yielding to the event loop.
    for (const until = performance.now() + 20; performance.now() < until;);
    order.push('slow')
  })
  const last = connection.write(add('last'), 'process-death')
  expect(order).toEqual([...chats, 'slow', 'last'])
  await Promise.all([...writes, slow, last])
  connection.close()
})

test('[ST180] two connections that concurrently set an agent get the same one', async () => {
  await using folder = await temporaryDirectory()
  await using one = await openSqliteStore({ path: folder.file('s.db') })
  await using two = await openSqliteStore({ path: folder.file('s.db') })
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, by) => (by % 2 ? one : two).chats.assignAgent(chat, `a${by}`)),
  )
  const [agent = ''] = answers
  expect(new Set(answers)).toEqual(new Set([agent]))
  await two.chats.forgetNote(chat)
  await two.chats.rename(chat, 'A name')
  expect((await one.chats.find(chat, ['chat-1'])).get('chat-1')).toEqual({ agent, name: 'A name' })
  await one.chats.drop(chat)
  expect(await two.chats.assignAgent(chat, 'other')).toBe('other')
})

test('[ST26] a secret is 32 random bytes, created once and kept', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  const store = await openSqliteStore({ path })
  const secret = await store.secret('a')
  expect(secret).toHaveLength(32)
  expect(await store.secret('a')).toEqual(secret)
  expect(await store.secret('b')).not.toEqual(secret)
  await store.close()
  await using again = await openSqliteStore({ path })
  expect(await again.secret('a')).toEqual(secret)
})

posixTest('[ST27] creates the file with its folder, readable by the owner only', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('a/b/日本語 c.db')
  await using store = await openSqliteStore({ path })
  await store.secret('a')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect((await stat(`${path}-wal`)).mode & 0o777).toBe(0o600)
})

test('[ST28] a file that is not a database is corrupt', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('notes.txt')
  await writeFile(path, 'These are notes, not a database. '.repeat(100))
  await expect(openSqliteStore({ path })).rejects.toEqual(refusal('corrupt'))
})

test('[ST28] a database of another program is rejected and stays unchanged', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('other.db')
  const other = new Database(path)
  other.exec('CREATE TABLE sessions (id TEXT)')
  other.close()
  const before = await readFile(path)
  await expect(openSqliteStore({ path })).rejects.toEqual(refusal('corrupt'))
  expect(await readFile(path)).toEqual(before)
})

test('[ST28] damaged stored JSON is reported as corrupt', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  await using store = await openSqliteStore({ path })
  const session = await store.sessions.createSession(key)
  await store.sessions.appendEvent({ session, event: textEvent('a') })
  const other = new Database(path)
  other.exec("UPDATE events SET data = '{'")
  other.close()
  await expect(store.sessions.getSession(key)).rejects.toEqual(refusal('corrupt'))
})

test('[ST341] a full disk and a database that may not be written are told apart, and nothing is stored', () => {
  const connection = new Connection(':memory:', 0)
  connection.exec('CREATE TABLE texts (text TEXT); PRAGMA max_page_count = 3')
  const fill = () => connection.exec('INSERT INTO texts VALUES (hex(zeroblob(100000)))')
  expect(fill).toThrow(refusal('full'))
  connection.exec('PRAGMA query_only = 1')
  expect(fill).toThrow(refusal('read-only'))
  expect(connection.prepare('SELECT * FROM texts').rows()).toEqual([])
  connection.close()
})

test('[ST28] a path that cannot be a file is unavailable, and one that cannot be a path is invalid', async () => {
  await using folder = await temporaryDirectory()
  await writeFile(folder.file('file'), '')
  const refused = {
    [folder.file('')]: 'unavailable',
    [folder.file('file/s.db')]: 'unavailable',
    'a\0b': 'invalid',
    '': 'invalid',
  } as const
  for (const [path, code] of Object.entries(refused)) {
    await expect(openSqliteStore({ path })).rejects.toEqual(refusal(code))
  }
})

test('[ST28] a database with a newer schema is rejected', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  await (await openSqliteStore({ path })).close()
  const other = new Database(path)
  other.exec('UPDATE schema_version SET version = 999')
  other.close()
  await expect(openSqliteStore({ path })).rejects.toEqual(refusal('newer-schema'))
})

test.each([14, FIRST_VERSION - 1])(
  '[ST28] a database of the unreleased version %i is rejected and left unchanged, and the error says what to do',
  async (version) => {
    await using folder = await temporaryDirectory()
    const path = folder.file('s.db')
    await (await openSqliteStore({ path })).close()
    const other = new Database(path)
    other.exec(`UPDATE schema_version SET version = ${version}; DROP TABLE browser_calls`)
    other.close()
    const error: unknown = await openSqliteStore({ path }).catch((thrown: unknown) => thrown)
    expect(error).toEqual(refusal('older-schema'))
    expect(String(error)).toContain(
      `The database ${path} was created by an unreleased version of this library, and cannot be migrated. Delete the file, or continue to use the version that created it.`,
    )
    const kept = new Database(path)
    const tables = kept.prepare("SELECT name FROM sqlite_schema WHERE name = 'browser_calls'").all()
    expect([tables, kept.prepare('SELECT version FROM schema_version').all()]).toEqual([
      [],
      [{ version }],
    ])
    kept.close()
  },
)

test('[ST31] after close, which may be called twice, every call fails with closed', async () => {
  await using folder = await temporaryDirectory()
  const store = await openSqliteStore({ path: folder.file('s.db') })
  const session = await store.sessions.createSession(key)
  await store.close()
  await store.close()
  const event = textEvent('a')
  const uses = [
    () => store.sessions.createSession(key),
    () => store.sessions.getSession(key),
    () => store.sessions.getOrCreateSession(key),
    () => store.sessions.listSessions(key),
    () => store.sessions.deleteSession(key),
    () => store.sessions.appendEvent({ session, event }),
    () => store.sessions.rewind({ ...key, eventId: 'a' }),
    () => store.secret('a'),
  ]
  for (const use of uses) await expect(use()).rejects.toEqual(refusal('closed'))
})

test('[ST31] a closed store leaves all data in one file', async () => {
  await using folder = await temporaryDirectory()
  const path = folder.file('s.db')
  const store = await openSqliteStore({ path })
  const session = await store.sessions.createSession(key)
  await store.sessions.appendEvent({ session, event: textEvent('a') })
  await store.close()
  const copy = folder.file('copy.db')
  await writeFile(copy, await readFile(path))
  await using copied = await openSqliteStore({ path: copy })
  expect(idsOf(await readSession(copied.sessions))).toEqual(['a'])
})

class Child implements AsyncDisposable {
  readonly exitCode: Promise<number | null>
  readonly #process: ChildProcess
  readonly #lines: string[] = []
  #wake = () => {}

  constructor(child: ChildProcess) {
    this.#process = child
    this.exitCode = once(child, 'close').then(([code]) => code as number | null)
    if (child.stdout === null) throw new Error('the child has no output')
    createInterface({ input: child.stdout }).on('line', (line) => {
      this.#lines.push(line)
      this.#wake()
    })
    child.once('close', () => this.#wake())
  }

  get pid(): number | undefined {
    return this.#process.pid
  }

  go(): void {
    this.#process.stdin?.end('go\n')
  }

  kill(): void {
    this.#process.kill('SIGKILL')
  }

  unread(): string[] {
    return this.#lines
  }

  async nextLine(): Promise<string> {
    for (;;) {
      const line = this.#lines.shift()
      if (line !== undefined) return line
      if (this.#process.exitCode !== null)
        throw new Error(`the child ended with ${this.#process.exitCode}`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill()
    await this.exitCode
  }
}

async function startChild(program: string, path: string): Promise<Child> {
  const script = await bundleProgram(new URL('support/child.ts', import.meta.url))
  const command = [script, program, path]
  return new Child(spawn(process.execPath, command, { stdio: ['pipe', 'pipe', 'inherit'] }))
}
