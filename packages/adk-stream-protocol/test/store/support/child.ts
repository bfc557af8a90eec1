import { once } from 'node:events'
import { createInterface } from 'node:readline'
import type { Session } from '@google/adk'
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts'
import { key, textEvent } from '../../../src/store/contract/fixtures.ts'

// A second process for the store's tests: `child.ts <program> <database file>`. It says `ready`, starts at the first
// line of its input, and reports on its output, one line each.

const CHATS = ['chat-1', 'chat-2', 'chat-3']

const programs: Record<string, (path: string) => Promise<void>> = {
  /** Appends events to several chats at once until it is killed, and reports each acknowledged one. */
  async append(path) {
    const store = await openSqliteStore({ path })
    const sessions = await Promise.all(
      CHATS.map((sessionId) => store.sessions.getOrCreateSession({ ...key, sessionId })),
    )
    for (let number = 1; ; number += 1) {
      const appendTo = async (session: Session): Promise<void> => {
        const event = textEvent(`event-${number}`)
        const { id } = session
        event.actions.stateDelta = { number, [`user:${id}`]: number, [`app:${id}`]: number }
        await store.sessions.appendEvent({ session, event })
        report(`${id} ${number}`)
      }
      await Promise.all(sessions.map(appendTo))
    }
  },

  /** Uses a database that may not exist yet, and does not close it. */
  async 'first-use'(path) {
    const store = await openSqliteStore({ path })
    const session = await store.sessions.getOrCreateSession({ ...key, state: { by: process.pid } })
    await store.sessions.appendEvent({ session, event: textEvent(`of-${process.pid}`) })
    const secret = await store.secret('signing')
    report(JSON.stringify({ by: session.state['by'], secret: secret.toString('hex') }))
  },
}

function report(line: string): void {
  process.stdout.write(`${line}\n`)
}

const [name = '', path = ''] = process.argv.slice(2)
const input = createInterface({ input: process.stdin })
report('ready')
await once(input, 'line')
input.close()
process.stdin.unref()
await programs[name]?.(path)
