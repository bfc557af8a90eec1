import type { TurnUpdate } from '../../../src/relay/relay.ts'
import { StoreError } from '../../../src/store/store-error.ts'
import { openPostgresStore } from '../../../src/store/postgres/index.ts'
import type { Chunk } from '../../../src/protocol/index.ts'
import { foldChunks } from '../../../src/protocol/fold-chunks.ts'
import { makeFolder } from '../../faults/support/folder.ts'
import {
  openPaymentServer,
  type PaymentServer,
  type PaymentServerOptions,
} from '../../faults/support/payment-server.ts'
import { Person, readEffects } from '../../faults/support/person.ts'
import { defer } from '../../support/agents.ts'
import { PositionClient } from '../../support/position-client.ts'
import type { TestDatabase } from '../../support/postgres.ts'
import { openRelay, SCHEMA } from './relays.ts'

/** Two servers that share a database and a relay. */
export interface RelayPair extends AsyncDisposable {
  readonly one: PaymentServer
  readonly two: PaymentServer
  /** The same person at both. */
  readonly atOne: Person
  readonly atTwo: Person
  readonly relay: ReturnType<typeof openRelay>
  /** Delays the writes of the first server to the relay that match, or all, until it is disposed. */
  holdWrites(
    matches: (updates: readonly TurnUpdate[]) => boolean,
  ): Disposable & { holdAll: () => void }
  /** Lets the first server not renew or look at its leases, until it is disposed. */
  disconnect(): Disposable
  /** Lets the first server not lock a chat for a turn, until it is disposed. */
  failTurns(): Disposable
  effects(): ReturnType<typeof readEffects>
}

export async function openRelayPair(
  { url }: Pick<TestDatabase, 'url'>,
  chatId: string,
  options: Partial<PaymentServerOptions> = {},
): Promise<RelayPair> {
  const folder = await makeFolder()
  const relay = openRelay(url)
  const open = async () => {
    const store = await openPostgresStore({
      connectionString: url,
      schema: SCHEMA,
      busyTimeoutMs: 60_000,
    })
    const server = await openPaymentServer({
      effects: folder.effects,
      disconnectGraceMs: 60_000,
      limits: { leaseMs: 15_000, sweepMs: 20 },
      ...options,
      store,
    })
    return { store, server }
  }
  const [first, second] = [await open(), await open()]
  return {
    one: first.server,
    two: second.server,
    atOne: new Person(first.server.url, { chatId }),
    atTwo: new Person(second.server.url, { chatId }),
    relay,
    holdWrites: (matches) => {
      const held = defer()
      let holdsAll = false
      const { relay: ofOne } = first.store
      if (!ofOne) throw new Error('The store has no relay.')
      const write = ofOne.write.bind(ofOne)
      ofOne.write = async (updates, given) => {
        if (holdsAll || matches(updates)) await held.promise
        return write(updates, given)
      }
      const holdAll = (): void => {
        holdsAll = true
      }
      return { holdAll, [Symbol.dispose]: () => held.resolve() }
    },
    disconnect: () => {
      const { approvals } = first.store
      const heartbeat = approvals.heartbeat.bind(approvals)
      const findLockHolder = approvals.findLockHolder.bind(approvals)
      Object.assign(approvals, { heartbeat: failAway, findLockHolder: failAway })
      return { [Symbol.dispose]: () => Object.assign(approvals, { heartbeat, findLockHolder }) }
    },
    failTurns: () => {
      const { approvals } = first.store
      const lockChat = approvals.lockChat.bind(approvals)
      approvals.lockChat = async (chat, lock) => {
        if (chat.appName.includes('#')) return lockChat(chat, lock)
        throw new StoreError('unavailable', 'The database is away.')
      }
      return { [Symbol.dispose]: () => Object.assign(approvals, { lockChat }) }
    },
    effects: () => readEffects(folder.effects),
    async [Symbol.asyncDispose]() {
      for (const { server, store } of [first, second]) {
        await server[Symbol.asyncDispose]()
        await store.close()
      }
      await relay[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
}

function failAway(): Promise<never> {
  return Promise.reject(new Error('The database is away.'))
}

/** A client that reads a turn over SSE. */
export class Stream {
  readonly status: number
  readonly #client: PositionClient
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | undefined
  readonly done: Promise<void>
  #wake: () => void = () => undefined
  #hasEnded = false

  private constructor({ status, body }: Response, client = new PositionClient()) {
    this.status = status
    this.#client = client
    this.#reader = body?.getReader()
    this.done = this.#read()
  }

  /** Asks for the running turn of a chat, or for what the client has not received of it. The status is 204 if the server knows of none. */
  static async openOnce(
    { url, chatId, user }: Person,
    { signal, client }: { signal?: AbortSignal; client?: PositionClient } = {},
  ): Promise<Stream> {
    const init = { headers: { 'x-user': user }, ...(signal && { signal }) }
    const query = client?.position === undefined ? 'positions=true' : `after=${client.position}`
    const path = `/stream/${chatId}/stream${client ? `?${query}` : ''}`
    return new Stream(await fetch(`${url}${path}`, init), client)
  }

  /** Resumes the turn of a chat. On a busy machine a server may learn late of a turn that another one runs. */
  static async open(person: Person, client?: PositionClient): Promise<Stream> {
    for (;;) {
      const stream = await Stream.openOnce(person, client && { client })
      if (stream.status !== 204) return stream
    }
  }

  static read(response: Response): Stream {
    return new Stream(response)
  }

  /** Closes the connection. */
  leave(): void {
    void this.#reader?.cancel().catch(() => undefined)
  }

  get chunks(): readonly Chunk[] {
    return this.#client.chunks
  }

  get text(): string {
    return this.chunks.map((chunk) => (chunk.type === 'text-delta' ? chunk.delta : '')).join('')
  }

  get message() {
    const [start] = this.chunks
    return foldChunks(start?.type === 'start' ? start.messageId : '', this.chunks)
  }

  /** Resolves when more chunks were received, or at the end. */
  async next(): Promise<void> {
    const received = new Promise<void>((resolve) => {
      this.#wake = resolve
    })
    await Promise.race([received, this.done])
  }

  /** Resolves when this text was received. Throws if the stream ends without it. */
  async until(text: string): Promise<void> {
    while (!this.text.includes(text)) {
      if (this.#hasEnded) throw new Error(`The stream ended with “${this.text}”.`)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  async #read(): Promise<void> {
    let pending = ''
    const decoder = new TextDecoder()
    try {
      for (;;) {
        const read = await this.#reader?.read()
        if (!read || read.done) return
        pending += decoder.decode(read.value, { stream: true })
        const frames = pending.split('\n\n')
        pending = frames.pop() ?? ''
        for (const frame of frames) this.#client.takeEvent(frame)
        this.#wake()
      }
    } catch {
      // The client has left, or the server has died.
    } finally {
      this.#hasEnded = true
      this.#wake()
    }
  }
}
