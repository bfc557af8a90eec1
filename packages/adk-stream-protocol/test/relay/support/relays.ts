import { Client, Pool } from 'pg'

import type { Relay } from '../../../src/relay/relay.ts'
import { TurnRelay, type TurnRelayOptions } from '../../../src/relay/turn-relay.ts'
import { Database, databaseClocks } from '../../../src/store/postgres/database.ts'
import { openPostgresStore } from '../../../src/store/postgres/index.ts'
import { postgresRelay } from '../../../src/store/postgres/postgres-relay.ts'
import { Turn } from '../../../src/turns/turn.ts'
import { createDatabase, type TestDatabase } from '../../support/postgres.ts'

export const CHAT = { appName: 'app', principalId: 'hanako', chatId: 'chat-1' }
const LIMITS = { maxLag: 1_000_000, stallTimeoutMs: 60_000, maxReplay: 1_000_000 }

/** Never polls: what happens within a test happens because of hints. */
const NEVER = { pollMs: 3_600_000, fastPollMs: 3_600_000 }

/** The default schema, so that tests can read the tables. */
export const SCHEMA = 'public'

/** A database with the tables of the relay. */
export async function createRelayDatabase(): Promise<TestDatabase> {
  const database = await createDatabase()
  const store = await openPostgresStore({
    connectionString: database.url,
    busyTimeoutMs: 60_000,
    schema: SCHEMA,
  })
  await store.close()
  return database
}

/** The relay of one server, with a pool of its own. */
export function openRelay(
  url: string,
  { listenUrl = url, probeMs = 60_000, timeoutMs = 30_000 } = {},
): Relay & AsyncDisposable {
  const pool = new Pool({ connectionString: url, max: 4, allowExitOnIdle: true })
  const relay = postgresRelay({
    database: new Database(pool, { busyTimeoutMs: 5_000, prepare: false }),
    schema: SCHEMA,
    clocks: databaseClocks(SCHEMA),
    createClient: () => new Client({ connectionString: listenUrl, application_name: 'listen' }),
    timing: { probeMs, timeoutMs },
  })
  return Object.assign(relay, { [Symbol.asyncDispose]: () => pool.end() })
}

export interface TestRelay extends AsyncDisposable {
  readonly turns: TurnRelay
  readonly relay: Relay
  readonly errors: unknown[]
}

/** A server's part in the relay, without a bridge around it. */
export async function startRelay(
  { url }: Pick<TestDatabase, 'url'>,
  worker: string,
  {
    listen,
    ...options
  }: Partial<TurnRelayOptions> & { listen?: Parameters<typeof openRelay>[1] } = {},
): Promise<TestRelay> {
  const relay = openRelay(url, listen)
  const errors: unknown[] = []
  const turns = new TurnRelay({
    relay,
    worker,
    ...LIMITS,
    leaseMs: 15_000,
    isAwaited: () => false,
    onTurnChange: () => undefined,
    onApprovals: () => undefined,
    handlers: [],
    onError: (error) => errors.push(error),
    ...options,
    timing: { ...NEVER, flushMs: 5, ...options.timing },
  })
  await turns.start()
  return {
    turns,
    relay,
    errors,
    async [Symbol.asyncDispose]() {
      await turns.close()
      await relay[Symbol.asyncDispose]()
    },
  }
}

/** A turn that has the chat lock and writes what the test passes to it. */
export function createTurn(messageId = 'message-1', disconnectGraceMs = 60_000): Turn {
  const turn = new Turn(messageId, LIMITS, { graceMs: disconnectGraceMs })
  turn.signal.addEventListener('abort', () => {
    turn.log.end()
    turn.settle()
  })
  return turn
}

/** What a reader of a turn received. */
export class Reading {
  readonly chunks: unknown[] = []
  end: 'open' | 'ended' | 'abandoned' = 'open'
  readonly leave: () => void

  constructor(turn: Turn, from: Parameters<Turn['attach']>[1] = 'start') {
    const reader = turn.attach(
      {
        write: (json) => this.chunks.push(JSON.parse(json)) > 0,
        end: () => {
          this.end = 'ended'
        },
        abandon: () => {
          this.end = 'abandoned'
        },
      },
      from,
    )
    this.leave = () => reader?.detach('closed')
  }

  get text(): string {
    return this.chunks.map((chunk) => (chunk as { delta?: string }).delta ?? '').join('')
  }
}

export function say(turn: Turn, delta: string): void {
  turn.log.append({ type: 'text-delta', id: 't1', delta })
}
