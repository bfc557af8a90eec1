import { expect, test } from 'vitest'

import type { LogEntry } from '../../src/server/operations/operations.ts'
import { openPostgresStore } from '../../src/store/postgres/index.ts'
import { createDatabase, type TestDatabase } from '../support/postgres.ts'
import { serve, type TestServer } from '../support/serve.ts'

const SCHEMA = 'adk_stream_protocol'

/** Opens the database once, so that its tables exist. */
async function createTables({ url }: TestDatabase): Promise<void> {
  await (await openPostgresStore({ connectionString: url })).close()
}

function changeUrl({ url }: TestDatabase, edit: (url: URL) => void): string {
  const changed = new URL(url)
  edit(changed)
  return changed.href
}

/** Serves a store that may be unusable. */
function serveStore(store: ReturnType<typeof openPostgresStore>, log: LogEntry[] = []) {
  return serve({
    store,
    authenticate: () => ({ id: 'hanako' }),
    limits: { sweepMs: 20 },
    log: (entry) => log.push(entry),
  })
}

/** What a client and a probe receive. */
async function readReports(server: TestServer) {
  return {
    sent: await readResponse(await server.browser().say('[[say Hello.]]')),
    ready: await readResponse(await fetch(`${server.url}/ready`)),
  }
}

async function readResponse(response: Response) {
  const body: unknown = await response.json()
  return { status: response.status, retryAfter: response.headers.get('retry-after'), body }
}

const LASTING = [
  {
    reason: 'misconfigured',
    advice: 'Check the connection string',
    prepare: (database: TestDatabase) =>
      openPostgresStore({ connectionString: changeUrl(database, (url) => (url.password = 'no')) }),
  },
  {
    reason: 'older-schema',
    advice: 'Run the migrations',
    prepare: ({ url }: TestDatabase) =>
      openPostgresStore({ connectionString: url, migrate: false }),
  },
  {
    reason: 'newer-schema',
    advice: 'Start the newer version',
    prepare: async (database: TestDatabase) => {
      await createTables(database)
      await database.run(`UPDATE ${SCHEMA}.schema_version SET version = 999, minimum = 999`)
      return openPostgresStore({ connectionString: database.url })
    },
  },
  {
    reason: 'read-only',
    advice: 'Connect to the primary server',
    prepare: async (database: TestDatabase) => {
      await createTables(database)
      const settings = '-c default_transaction_read_only=on'
      const connectionString = changeUrl(database, (url) =>
        url.searchParams.set('options', settings),
      )
      return openPostgresStore({ connectionString })
    },
  },
] as const

test.each(LASTING)(
  '[ST340] [OB340] [HO340] a store that is $reason is reported once, with what to do, and without a hint to try again',
  async ({ reason, advice, prepare }) => {
    await using database = await createDatabase()
    const opened = prepare(database)
    const log: LogEntry[] = []
    const server = await serveStore(opened, log)
    try {
      const { sent, ready } = await readReports(server)
      expect(sent).toMatchObject({ status: 503, retryAfter: null })
      expect(sent.body).toMatchObject({ error: { code: 'store-failed' } })
      expect(ready).toMatchObject({ status: 503, retryAfter: null })
      expect(ready.body).toMatchObject({
        status: 'not-ready',
        check: 'store',
        reason,
        error: { code: 'store-failed' },
      })
      await readReports(server)
      expect(server.errors).toEqual([expect.objectContaining({ code: reason })])
      const entries = log.filter(({ event }) => event.startsWith('store.'))
      expect(entries.map(({ code }) => code)).toEqual([reason])
      expect(entries[0]?.message).toContain(advice)
    } finally {
      await server[Symbol.asyncDispose]()
      await (await opened.catch(() => undefined))?.close()
    }
  },
)

test('[ST340] an address without a server is reported with a hint to try again', async () => {
  const connectionString = 'postgres://a:b@127.0.0.1:1/none'
  await using server = await serveStore(openPostgresStore({ connectionString, busyTimeoutMs: 50 }))
  const { sent, ready } = await readReports(server)
  expect(sent).toMatchObject({ status: 503, retryAfter: '5' })
  expect(sent.body).toMatchObject({ error: { code: 'unavailable', retryAfterSeconds: 5 } })
  expect(ready).toMatchObject({ status: 503, retryAfter: '5', body: { reason: 'unavailable' } })
})

test('[ST340] [HO340] a full disk refuses what would be written, loses nothing, and works when it has space', async () => {
  await using database = await createDatabase()
  await using store = await openPostgresStore({ connectionString: database.url })
  await using server = await serveStore(Promise.resolve(store))
  const browser = server.browser()
  expect(await (await browser.say('[[say First.]]')).text()).toContain('[DONE]')
  await database.run(`
    CREATE FUNCTION fill() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$;
    CREATE TRIGGER fill BEFORE INSERT ON ${SCHEMA}.events EXECUTE FUNCTION fill();
  `)
  const stream = await (await browser.say('[[say Second.]]')).text()
  expect(stream).toContain('"store-failed"')
  expect(stream).not.toContain('Second.')
  const ready = await fetch(`${server.url}/ready`)
  expect(await ready.json()).toMatchObject({ check: 'store', reason: 'full' })
  await database.run(`DROP TRIGGER fill ON ${SCHEMA}.events`)
  expect(await (await browser.say('[[say Third.]]')).text()).toContain('[DONE]')
  const { messages } = await browser.messages()
  expect(JSON.stringify(messages)).toMatch(/First\..*Third\./)
  await server.bridge.close()
})
