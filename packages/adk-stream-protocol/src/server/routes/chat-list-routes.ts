import { toLine } from '../../agent/history/chat-title.ts'
import type { PageEvent } from '../../protocol/chat-summary.ts'
import { ChatChange } from '../../protocol/chat-change.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { ListEvents } from '../../turns/list-events.ts'
import type { Turns } from '../../turns/turns.ts'
import type { BackendOnDemand } from '../chats/backend.ts'
import { toApprovalChat } from '../chats/backend.ts'
import { readJson } from './chat-routes.ts'
import { listChats, renameChat } from './chat-list.ts'
import type { Reply } from '../http/exchange.ts'
import { reply } from '../http/exchange.ts'
import type { Feeds } from '../feeds/feeds.ts'
import type { BridgeLimits } from '../options.ts'
import type { Route, Visit } from '../http/route.ts'

export interface ListDeskOptions {
  readonly backend: BackendOnDemand
  readonly turns: Turns
  readonly lists: ListEvents
  readonly feeds: Feeds
  readonly limits: BridgeLimits
}

/** What can be done with the list of a principal's chats. */
export class ListDesk {
  readonly #options: ListDeskOptions

  constructor(options: ListDeskOptions) {
    this.#options = options
  }

  readonly routes: readonly Route[] = [
    { method: 'GET', path: '/chats', handle: (visit) => this.#list(visit) },
    { method: 'PATCH', path: '/chats/:id', handle: (visit) => this.#rename(visit) },
    { method: 'GET', path: '/events', handle: (visit) => this.#watch(visit) },
  ]

  async #list({ principal: { id: principalId } }: Visit): Promise<Reply> {
    const { backend, turns, limits } = this.#options
    const chats = await listChats(await backend.get(), principalId, {
      limits,
      isRunning: (chatId) => turns.running({ principalId, chatId }) !== undefined,
    })
    return reply(200, { chats })
  }

  async #rename({ principal, id: chatId, exchange }: Visit): Promise<Reply> {
    const { backend, limits, lists } = this.#options
    const body = ChatChange.safeParse(await readJson(exchange, limits))
    const title = toLine(body.data?.title ?? '')
    if (title === '') throw new ProtocolError('bad-request', { message: BAD_BODY })
    const opened = await backend.get()
    const chat = toApprovalChat(opened, { principalId: principal.id, chatId })
    if (!(await renameChat(opened, chat, title))) throw new ProtocolError('unknown-chat')
    lists.chatChanged(chat)
    return reply(204)
  }

  async #watch(visit: Visit): Promise<Reply> {
    const { backend, lists, feeds } = this.#options
    // What other servers decide is told from where the record stands now.
    await backend.get()
    const feed = feeds.open<PageEvent>(visit, (reader, tell) => lists.watch(reader, tell))
    return { type: 'feed', feed, headers: {} }
  }
}

const BAD_BODY = 'Send { "title": 1 to 200 characters }.'
