import { randomUUID } from 'node:crypto'

import { type Emulator, startEmulator } from 'gemini-emulator'

import type { PaymentServerOptions } from '../../faults/support/payment-server.ts'
import { textOf } from '../../support/chat-probe.ts'
import { SocketClient } from '../../sockets/support/socket-client.ts'
import type { TestDatabase } from '../../support/postgres.ts'
import { openRelayPair, type RelayPair } from './servers.ts'

export const HEADERS = { 'x-user': 'hanako' }
export const LIVE_MODEL = 'gemini-3.1-flash-live-preview'

/** Two servers with live sessions of one model. */
export interface LivePair extends RelayPair {
  readonly chatId: string
  readonly emulator: Emulator
  readonly model: ModelSockets
  /** A client at a server, in the chat of the pair. */
  join(at: 'one' | 'two', audio?: 'binary'): Promise<LiveClient>
  /** The number of assistant messages that contain a text. */
  count(text: string): Promise<number>
}

export async function openLivePair(
  database: Pick<TestDatabase, 'url'>,
  name: string,
  options: Partial<PaymentServerOptions> = {},
): Promise<LivePair> {
  // A repeated test does not find the chat of its first attempt.
  const chatId = `${name}-${randomUUID()}`
  const emulator = await startEmulator()
  const model = new ModelSockets(emulator)
  const pair = await openRelayPair(database, chatId, {
    liveModel: LIVE_MODEL,
    modelUrl: emulator.baseUrl,
    ...options,
  })
  return {
    ...pair,
    chatId,
    emulator,
    model,
    count: async (text) =>
      (await pair.atTwo.messages()).filter(
        (message) => message.role === 'assistant' && textOf(message).includes(text),
      ).length,
    join: (at, audio) => LiveClient.join(pair[at].url, chatId, audio),
    async [Symbol.asyncDispose]() {
      await pair[Symbol.asyncDispose]()
      model.stop()
      await emulator.close()
    },
  }
}

/** Counts the connections that are open whenever one is added. */
export class ModelSockets {
  readonly #emulator: Emulator
  readonly #stopped = new AbortController()
  most = 0

  constructor(emulator: Emulator) {
    this.#emulator = emulator
    void this.#count()
  }

  get open(): number {
    return this.#emulator.live.sessions.filter(({ closed }) => closed === undefined).length
  }

  /** The handles with which the connections so far were resumed, `undefined` for a fresh one. */
  get handles(): (string | undefined)[] {
    return this.#emulator.live.sessions.map(({ setup }) => setup?.sessionResumption?.handle)
  }

  stop(): void {
    this.#stopped.abort()
  }

  async #count(): Promise<void> {
    try {
      for (;;) {
        await this.#emulator.live.nextSession(this.#stopped.signal)
        this.most = Math.max(this.most, this.open)
      }
    } catch {
      // The test is over.
    }
  }
}

/** A client in one live chat. */
export class LiveClient implements AsyncDisposable {
  readonly socket: SocketClient
  readonly #chatId: string
  #requests = 0

  private constructor(socket: SocketClient, chatId: string) {
    this.socket = socket
    this.#chatId = chatId
  }

  static async join(
    url: string,
    chatId: string,
    audio?: 'binary',
    headers: Record<string, string> = HEADERS,
  ): Promise<LiveClient> {
    const socket = await SocketClient.open(url, { headers })
    socket.send({ type: 'watch', id: chatId, ...(audio && { audio }) })
    await socket.sync()
    return new LiveClient(socket, chatId)
  }

  /** Says something, and resolves with the text of the reply when it has ended. */
  async say(text: string): Promise<string> {
    return this.whole(this.begin(text))
  }

  begin(text: string): string {
    this.#requests += 1
    const requestId = `r${this.#requests}`
    this.socket.say(text, requestId, this.#chatId)
    return requestId
  }

  async whole(requestId: string): Promise<string> {
    const last = await this.socket.next(
      (frame) => frame.requestId === requestId && ['end', 'error'].includes(frame.type),
    )
    if (last.type === 'error') throw new Error(`The reply failed: ${JSON.stringify(last)}`)
    return this.socket.text(requestId)
  }

  /** Resolves when a turn that this client did not request has ended with a text. An earlier turn may end without one. */
  async hears(text: string): Promise<void> {
    const { socket } = this
    await socket.next(
      ({ type, requestId }) =>
        type === 'end' &&
        socket.of(requestId ?? '').some((frame) => frame.type === 'turn') &&
        socket.text(requestId).includes(text),
    )
  }

  /** Resolves when the live session has this status. */
  async status(status: string): Promise<void> {
    await this.socket.next((frame) => frame.type === 'status' && frame['status'] === status)
  }

  /** The texts of the turns that this client did not request, so far. */
  get turns(): string[] {
    return this.socket.frames.flatMap(({ type, requestId }) =>
      type === 'turn' ? [this.socket.text(requestId)] : [],
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.socket[Symbol.asyncDispose]()
  }
}
