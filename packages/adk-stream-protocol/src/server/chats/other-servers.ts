import type { LockName } from '../../locks/chat-locks.ts'
import type { AskServer, ServerRequestHandler, ServerRequest } from '../../relay/server-requests.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'
import type { Backend } from './backend.ts'

interface OtherServersOptions {
  readonly backend: { readonly get: () => Promise<Pick<Backend, 'ledger'>> }
  /** Returns undefined if the store has no signals: then servers cannot ask each other. */
  readonly ask: () => AskServer | undefined
}

/** Requests to the other servers on the same database. The locks of a chat say which of them has it. */
export class OtherServers {
  readonly #options: OtherServersOptions
  readonly #handlers: ServerRequestHandler[] = []

  constructor(options: OtherServersOptions) {
    this.#options = options
  }

  /** Handles the requests of other servers. */
  get handlers(): readonly ServerRequestHandler[] {
    return this.#handlers
  }

  handle(...handlers: readonly ServerRequestHandler[]): void {
    this.#handlers.push(...handlers)
  }

  /** Asks a server. Undefined if the store has no signals. */
  get ask(): AskServer | undefined {
    return this.#options.ask()
  }

  /** Asks the server that has a lock of a chat, until it replies or has lost the lock. Returns undefined if no other server has it. */
  async askOwner<Body, Reply>(
    chat: AppChatRef,
    lock: LockName,
    request: ServerRequest<Body, Reply>,
    body: Body,
  ): Promise<Reply | undefined> {
    const { locks } = (await this.#options.backend.get()).ledger
    for (;;) {
      const { ask } = this
      const owner = ask && (await locks.findOther(chat, lock))
      if (!owner) return undefined
      try {
        return await ask(owner.worker, request, body)
      } catch {
        // It may do what was asked until its lease has expired.
      }
    }
  }
}
