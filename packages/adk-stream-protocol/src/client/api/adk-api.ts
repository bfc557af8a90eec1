import type { ChatSummary, ListEvent, FeedEvent } from '../../protocol/chat-summary.ts'
import type { ApprovalPage, ApprovalRecord, PendingApproval } from '../../protocol/server-views.ts'
import {
  isApprovalNow,
  isApprovalPage,
  isApprovalWithHistory,
  isChatList,
  isStoredChat,
} from '../../protocol/server-views.ts'
import type { AdkUIMessage } from '../adk-ui-message.ts'
import type { HttpOptions } from './http.ts'
import { Http } from './http.ts'
import { PageFeed } from './page-feed.ts'
import type { WatchListener, WatchOptions } from './watch-feed.ts'

/** What a person says to a call, from wherever. */
export interface DecisionGiven {
  readonly approved: boolean
  readonly reason?: string
  /** Arguments in place of those shown. */
  readonly args?: Readonly<Record<string, unknown>>
  /** The answer to a tool that asked with a payload. */
  readonly payload?: unknown
}

/** Which page of the approvals is read. */
export interface ApprovalPaging {
  readonly limit?: number
  readonly after?: string
}

/** A conversation as the server has it; `messages` leaves out the answer that is being written. */
export interface LoadedChat {
  readonly messages: AdkUIMessage[]
  readonly running: boolean
}

/** All that a page asks of the bridge besides answers: the list of chats, what waits for approval, the feeds that tell of both. */
export function adkApi(options: HttpOptions): AdkApi {
  return new AdkApi(new Http(options))
}

/** The requests of `adkApi()`. */
export class AdkApi {
  readonly #http: Http
  readonly #feed: PageFeed

  constructor(http: Http) {
    this.#http = http
    this.#feed = new PageFeed(http)
  }

  /** The person's chats, newest first. */
  async listChats(): Promise<ChatSummary[]> {
    return (await this.#http.read('/chats', isChatList)).chats
  }

  async renameChat(chatId: string, title: string): Promise<void> {
    await this.#http.send(chatPath(chatId), { method: 'PATCH', body: { title } })
  }

  async deleteChat(chatId: string): Promise<void> {
    await this.#http.send(chatPath(chatId), { method: 'DELETE' })
  }

  async loadChat(chatId: string): Promise<LoadedChat> {
    const { messages, running } = await this.#http.read(chatPath(chatId, 'messages'), isStoredChat)
    // The bridge's messages are those of the AI SDK (CH6); what a page relies on without looking was looked at.
    return { messages: messages as unknown as AdkUIMessage[], running }
  }

  /** Stops the answer that is being written, for every reader. */
  async stopChat(chatId: string): Promise<void> {
    await this.#http.send(chatPath(chatId, 'stop'), { method: 'POST' })
  }

  /** All that waits for this person, the oldest first; page by page where it is much. */
  async listApprovals(): Promise<PendingApproval[]> {
    const all: PendingApproval[] = []
    let after: string | undefined
    do {
      const page = await this.listApprovalsPage(after === undefined ? {} : { after })
      all.push(...page.approvals)
      after = page.next
    } while (after !== undefined)
    return all
  }

  /** A page of what waits for this person: at most `limit` (1 to 100, default 100), behind the page whose `next` is `after`. */
  listApprovalsPage({ limit, after }: ApprovalPaging = {}): Promise<ApprovalPage> {
    const query = new URLSearchParams({
      ...(limit !== undefined && { limit: String(limit) }),
      ...(after !== undefined && { after }),
    })
    return this.#http.read(query.size === 0 ? '/approvals' : `/approvals?${query}`, isApprovalPage)
  }

  readApproval(
    approvalId: string,
  ): Promise<{ approval: PendingApproval; history: ApprovalRecord[] }> {
    return this.#http.read(approvalPath(approvalId), isApprovalWithHistory)
  }

  /** Decides a call; resolves with the state that its approval is in then. */
  async decide(approvalId: string, decision: DecisionGiven): Promise<string> {
    const { approved, reason, args, payload } = decision
    const request = { method: 'POST' as const, body: { approved, reason, args, payload } }
    const { approval } = await this.#http.read(approvalPath(approvalId), isApprovalNow, request)
    return approval.state
  }

  /** Takes this person's vote back, while others have still to decide; resolves with the state of the approval. */
  async withdrawVote(approvalId: string): Promise<string> {
    const path = `${approvalPath(approvalId)}/vote`
    const { approval } = await this.#http.read(path, isApprovalNow, { method: 'DELETE' })
    return approval.state
  }

  /** Tells what happens in a chat, here or elsewhere. Opened again by itself; give back ends it. All who watch by one api share one connection. */
  watchChat(chatId: string, listener: WatchListener, options?: WatchOptions): () => void {
    const ofChat: WatchListener<FeedEvent> = (event) => {
      if (event.type === 'open' || event.type === 'lost') listener(event)
      else if (event.chatId === chatId) tellOfChat(event, listener)
    }
    return this.#feed.watch(ofChat, options)
  }

  /** Tells when `listChats` or `listApprovals` would answer otherwise. Opened again by itself; give back ends it. */
  watch(listener: WatchListener<ListEvent>, options?: WatchOptions): () => void {
    const ofLists: WatchListener<FeedEvent> = (event) => {
      if (event.type !== 'turn') listener(event)
    }
    return this.#feed.watch(ofLists, options)
  }
}

function tellOfChat(event: FeedEvent, listener: WatchListener): void {
  if (event.type === 'turn') listener({ type: 'turn', messageId: event.messageId })
  if (event.type === 'approval') {
    const { type, approvalId, state } = event
    listener({ type, approvalId, state })
  }
}

function chatPath(chatId: string, ...more: readonly string[]): string {
  return ['/chats', encodeURIComponent(chatId), ...more].join('/')
}

function approvalPath(approvalId: string): string {
  return `/approvals/${encodeURIComponent(approvalId)}`
}
