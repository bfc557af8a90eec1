import type { BaseTool } from '@google/adk'

import type { Ledger } from '../../approvals/ledger.ts'
import type { CallKinds } from '../../calls/call-kind.ts'
import type { Substitutes } from '../../approvals/substitutes.ts'
import type { PriorDecisions } from '../../calls/prior-decisions.ts'
import type { AgentHost } from './host/agent-host.ts'
import type { CallRef } from './host/stored-calls.ts'
import type { ChatAgents } from './chat-agents.ts'
import type { ChatSessions } from './chat-sessions.ts'
import type { CheckPreview, MayEdit, RefreshApproval } from './host/policy-checks.ts'
import type { ChatStore, Store } from '../../store/store.ts'
import type { AppChatRef } from '../../shared/chat-ref.ts'
import type { TurnInfo } from '../settings/observers.ts'

/** The agents with their sessions, and the stores. */
export interface Backend {
  /** The agent of each chat. */
  readonly agents: ChatAgents
  /** Runs the agents. */
  readonly host: AgentHost
  /** The stored conversations. */
  readonly sessions: ChatSessions
  readonly ledger: Ledger
  /** What people are asked for, and what happens then. */
  readonly kinds: CallKinds
  /** Decisions of people for calls that follow. Undefined if no module adds any. */
  readonly prior: PriorDecisions | undefined
  /** Who decides in whose place. Undefined if no module lets anybody. */
  readonly substitutes: Substitutes | undefined
  readonly waitingCalls: WaitingCalls
  /** Titles and agents of chats. */
  readonly chats: ChatStore
  /** Finds a tool of the agent of a chat by its name. */
  readonly findTool: (chat: AppChatRef, toolName: string) => Promise<BaseTool | undefined>
  /** Whether a tool runs in the page. */
  readonly isPageTool: (toolName: string) => boolean
  /** Returns true if a person may approve a call with edited arguments alone (AP5). */
  readonly mayEdit: MayEdit
  /** Updates the hint of a pending approval from the policy, and makes its preview. */
  readonly refresh: RefreshApproval
  /** Makes the preview of a call again before it is approved. */
  readonly checkPreview: CheckPreview
  readonly appName: string
  /** The database of all of these. */
  readonly store: Store
}

/** Follows calls that wait for somebody outside this server. Modules implement it. */
export interface WaitingCalls {
  /** A turn has ended, and these calls wait: their ids, and the names of their tools. In a live session, `onHandedOver` follows them. */
  onWaiting(backend: Backend, turn: TurnInfo, calls: ReadonlyMap<string, string>): Promise<void>
  /** A live session has handed a call over to a client, which has so long to run it. Does nothing if it was handed over before. */
  onHandedOver(backend: Backend, call: CallRef, timeoutMs: number): Promise<void>
  /** Lists the calls of a chat that clients run now. */
  listHandedOver(backend: Backend, chat: AppChatRef, limit: number): Promise<string[]>
  /** The conversation has the results of these calls. */
  onDelivered(backend: Backend, chat: AppChatRef, toolCallIds: readonly string[]): Promise<void>
  /** The questions of these calls were cancelled, and nobody continues them. When it resolves, the chat may be deleted. */
  onCancelled(backend: Backend, chat: AppChatRef, calls: readonly CancelledCall[]): Promise<void>
  /** The chat is being deleted. */
  onChatDeleted(backend: Backend, chat: AppChatRef): Promise<void>
}

interface CancelledCall {
  readonly toolCallId: string
}

/** Opens something on first use. If that fails, the next use tries again. */
export class Lazy<Value> {
  readonly #open: () => Promise<Value>
  #opening: Promise<Value> | undefined
  #opened: Value | undefined

  constructor(open: () => Promise<Value>) {
    this.#open = open
  }

  async get(): Promise<Value> {
    this.#opening ??= this.#open()
    try {
      this.#opened = await this.#opening
      return this.#opened
    } catch (error) {
      this.#opening = undefined
      throw error
    }
  }

  /** Undefined until it is open. */
  get opened(): Value | undefined {
    return this.#opened
  }

  /** Returns it if it was used before. Does not open it. */
  async peek(): Promise<Value | undefined> {
    return this.#opening && this.get()
  }
}

export type LazyBackend = Lazy<Backend>

/** Returns the key of a chat in the ledger and in ADK. */
export function toAppChat(
  { appName }: Pick<Backend, 'appName'>,
  { principalId, chatId }: { readonly principalId: string; readonly chatId: string },
): AppChatRef {
  return { appName, principalId, chatId }
}
