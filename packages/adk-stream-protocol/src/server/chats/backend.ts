import type { BaseTool } from '@google/adk'

import type { ApprovalChat } from '../../approvals/approval.ts'
import type { Ledger } from '../../approvals/ledger.ts'
import type { AgentHost } from './agent-host.ts'
import type { ChatAgents } from './chat-agents.ts'
import type { MayEdit, RefreshHint } from './policy-checks.ts'
import type { BrowserCallStore } from '../../store/browser-call-store.ts'
import type { ChatStore } from '../../store/chat-store.ts'
import { openSqliteStore } from '../../store/sqlite/sqlite-store.ts'
import type { Store } from '../../store/store.ts'

/** What stands behind the desks: the agents with their sessions, and the ledger. */
export interface Backend {
  /** Which agent each chat has. */
  readonly agents: ChatAgents
  readonly host: AgentHost
  readonly ledger: Ledger
  /** Calls that wait for clients. */
  readonly browserCalls: BrowserCallStore
  /** What is known of chats without reading them. */
  readonly chats: ChatStore
  /** Finds a tool of the agent of a chat by its name. */
  readonly findTool: (chat: ApprovalChat, toolName: string) => Promise<BaseTool | undefined>
  /** Tells whether whoever decides a call may change it so, without anybody else (LG9). */
  readonly mayEdit: MayEdit
  /** Gives a pending approval the hint that the policy gives now. */
  readonly refreshHint: RefreshHint
  readonly appName: string
}

/** A backend that is opened when something needs it; one that could not be opened is tried again by the next request. */
export class LazyBackend {
  readonly #open: () => Promise<Backend>
  #opening: Promise<Backend> | undefined
  #opened: Backend | undefined

  constructor(open: () => Promise<Backend>) {
    this.#open = open
  }

  async get(): Promise<Backend> {
    this.#opening ??= this.#open()
    try {
      this.#opened = await this.#opening
      return this.#opened
    } catch (error) {
      this.#opening = undefined
      throw error
    }
  }

  /** The backend, once it is open. */
  get opened(): Backend | undefined {
    return this.#opened
  }

  /** The backend if something has needed it so far. */
  async peek(): Promise<Backend | undefined> {
    return this.#opening && this.get()
  }
}

/** A chat as the ledger and ADK name it. */
export function toApprovalChat(
  { appName }: Pick<Backend, 'appName'>,
  { principalId, chatId }: { readonly principalId: string; readonly chatId: string },
): ApprovalChat {
  return { appName, principalId, chatId }
}

/** The store of the host, or one of our own that is opened when something needs it. */
export class LazyStore {
  readonly #given: Store | Promise<Store> | undefined
  #own: Promise<Store> | undefined

  constructor(given: Store | Promise<Store> | undefined) {
    this.#given = given
    // Whether it could be opened is for the first request to find out.
    if (given instanceof Promise) given.catch(() => undefined)
  }

  async open(): Promise<Store> {
    if (this.#given) return this.#given
    this.#own ??= openSqliteStore({ path: ':memory:' })
    return this.#own
  }

  async close(): Promise<void> {
    const own = await this.#own
    await own?.close()
  }
}
