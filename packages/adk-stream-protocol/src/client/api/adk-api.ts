import {
  type ChatSummary,
  type ListEvent,
  type FeedEvent,
  type ApprovalPage,
  type ApprovalRecord,
  type PendingApproval,
  type CreatedLink,
  type EditPreview,
  type LinkedApproval,
  isApprovalNow,
  isApprovalPage,
  isApprovalWithHistory,
  isChatList,
  isCreatedLink,
  isDecidedTogether,
  isEditPreview,
  isLinkDecided,
  isLinkedApproval,
  isOpenedLink,
  isStoredChat,
} from '../../protocol/server-views.ts'
import {
  type SignedInService,
  isStartedSignIn,
  isRevocation,
  isSignInList,
} from '../../protocol/sign-in-terms.ts'
import { type ModelCall, type Timeline, isModelCall, isTimeline } from '../../protocol/timeline.ts'
import type { DelegationLists, ShownDelegation } from '../../protocol/delegations.ts'
import {
  isDelegationLists,
  isEndedDelegation,
  isGivenDelegation,
} from '../../protocol/delegations.ts'
import type { ShownGrant } from '../../protocol/grants.ts'
import { isNoticeList, type ShownNotice } from '../../protocol/notices.ts'
import { isGrantList, isRevokedGrant } from '../../protocol/grants.ts'
import type { AdkError } from '../adk-error.ts'
import type { AdkUIMessage } from '../adk-ui-message.ts'
import { type Backoff, withDefaults } from '../../shared/backoff.ts'
import { isBrowserOffline } from '../connection/connection-state.ts'
import { type RefusedDecision, type WaitingDecisions, DecisionOutbox } from './decision-outbox.ts'
import { type Http, type HttpOptions, createHttp, toAdkError } from './http.ts'
import type { Identified } from '../connection/principal-tag.ts'
import { type WatchListener, type WatchOptions, PageFeed } from './watch-feed.ts'
import type { DecisionGiven } from '../connection/transport.ts'

/**
 * How a decision is sent.
 *
 * @inline
 */
export interface DecideOptions {
  /**
   * Whether a decision that does not reach the server is kept in the memory of the page, and sent when the server can be reached.
   * `waitingDecisions` has it until then, and `cancelDecision` takes it back. Default false: the promise is rejected.
   */
  readonly keep?: boolean | undefined
}

/**
 * How a person signs in to a service.
 *
 * @inline
 */
export interface SignInRequest {
  /** The key, for a service with API keys. */
  readonly apiKey?: string
  /** Lets the person choose an account at an OAuth provider. */
  readonly prompt?: 'login' | 'select_account'
}

/**
 * The page of pending approvals to read.
 *
 * @inline
 */
export interface ApprovalPaging {
  readonly limit?: number
  readonly after?: string
}

/**
 * Which approvals to read: those that meet all given conditions.
 *
 * @inline
 */
export interface ApprovalQuery extends ApprovalPaging {
  /** `decided`: all that are not pending. Default `all`. */
  readonly state?: 'all' | 'decided' | readonly string[]
  readonly toolName?: string
  /** The id of the principal in whose chat the call was made. */
  readonly requester?: string
}

/**
 * The page of a timeline to read.
 *
 * @inline
 */
export interface TimelinePaging {
  readonly limit?: number
  readonly before?: string
}

/** A stored conversation, from `loadChat()` of `adkApi()`. `messages` leaves out the turn that is running. */
export interface LoadedChat {
  readonly messages: AdkUIMessage[]
  readonly running: boolean
  /** The position up to which `messages` are complete. */
  readonly position: string
  /** The position after which `messages` have changed. Absent if they are the whole conversation. */
  readonly after?: string | undefined
}

/**
 * Which messages to load.
 *
 * @inline
 */
export interface LoadOptions {
  /** The position up to which the page has the messages. Loads only those that may have changed since. Default: loads all. */
  readonly after?: string | undefined
}

/** Creates the API of the bridge: the list of chats, the pending approvals, and the feeds that report changes of both. */
export function adkApi(options: HttpOptions): AdkApi {
  return new AdkApi(createHttp(options))
}

/** What a transport knows about the connection. */
interface ApiConnection {
  readonly backoff?: Backoff | undefined
  readonly isLost?: () => boolean
}

/** The API of the bridge, created by `adkApi()`. */
export class AdkApi implements Identified {
  readonly #http: Http
  readonly #feed: PageFeed
  /** @internal */
  readonly outbox: DecisionOutbox

  constructor(http: Http, { backoff, isLost }: ApiConnection = {}) {
    this.#http = http
    this.#feed = new PageFeed(http)
    this.outbox = new DecisionOutbox({
      decide: (approvalId, decision, by) => this.#decide(approvalId, decision, by),
      readPrincipal: () => this.principal,
      readApproval: (approvalId) => this.readApproval(approvalId),
      isOffline: () => isBrowserOffline() || this.#feed.isLost || isLost?.() === true,
      backoff: withDefaults(backoff),
    })
  }

  /** The tag of the person who is signed in, as far as responses of the server have shown it. It names nobody. */
  get principal(): string | undefined {
    return this.#http.principal.current
  }

  /** Calls the listener when `principal` changes. Returns a function that unsubscribes. */
  onPrincipal(listener: () => void): () => void {
    return this.#http.principal.subscribe(listener)
  }

  /** Lists the user's chats, newest first. */
  async listChats(): Promise<ChatSummary[]> {
    return (await this.#http.read('/chats', isChatList)).chats
  }

  async renameChat(chatId: string, title: string): Promise<void> {
    await this.#http.send(chatPath(chatId), { method: 'PATCH', body: { title } })
  }

  async deleteChat(chatId: string): Promise<void> {
    await this.#http.send(chatPath(chatId), { method: 'DELETE' })
  }

  async loadChat(chatId: string, { after }: LoadOptions = {}): Promise<LoadedChat> {
    const path = `${chatPath(chatId, 'messages')}${toQuery({ after })}`
    const stored = await this.#http.read(path, isStoredChat)
    const { running, position } = stored
    // The bridge stores messages of the AI SDK (CH6). The guard checks what a page relies on.
    const messages = stored.messages as unknown as AdkUIMessage[]
    return { messages, running, position, after: stored.after }
  }

  /** Stops the running turn, for every reader. With `messageId`, only a turn that writes this message, or the reply to it. */
  async stopChat(chatId: string, messageId?: string): Promise<void> {
    await this.#http.send(`${chatPath(chatId, 'stop')}${toQuery({ messageId })}`, {
      method: 'POST',
      isRepeatable: true,
    })
  }

  /** Lists all pending approvals that this user may decide, oldest first. Reads as many pages as there are. */
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

  /** Lists one page of pending approvals: at most `limit` (1 to 100, default 100), after the page whose `next` is `after`. */
  listApprovalsPage({ limit, after }: ApprovalPaging = {}): Promise<ApprovalPage> {
    return this.#http.read(`/approvals${toQuery({ limit, after })}`, isApprovalPage)
  }

  /**
   * Lists one page of the approvals that this user may see, pending and decided, newest first: at most `limit` (1 to 100, default 100),
   * after the page whose `next` is `after`.
   */
  listApprovalHistory(query: ApprovalQuery = {}): Promise<ApprovalPage> {
    const { state = 'all', toolName, requester, limit, after } = query
    const states = typeof state === 'string' ? state : state.join(',')
    const search = toQuery({ state: states, tool: toolName, requester, limit, after })
    return this.#http.read(`/approvals${search}`, isApprovalPage)
  }

  readApproval(
    approvalId: string,
  ): Promise<{ approval: PendingApproval; history: ApprovalRecord[] }> {
    return this.#http.read(approvalPath(approvalId), isApprovalWithHistory)
  }

  /**
   * Reads what a pending call would do with edited arguments. Rejects if these arguments cannot be approved: `bad-request` if they do not
   * fit the tool, `not-editable` if another person must approve them too.
   */
  previewEdit(
    approvalId: string,
    args: Readonly<Record<string, unknown>>,
    signal?: AbortSignal,
  ): Promise<EditPreview> {
    const request = { method: 'POST' as const, body: { args }, signal }
    return this.#http.read(approvalPath(approvalId, 'preview'), isEditPreview, request)
  }

  /** Decides an approval. Resolves with its new state. */
  async decide(
    approvalId: string,
    decision: DecisionGiven,
    { keep = false }: DecideOptions = {},
  ): Promise<string> {
    return keep ? this.outbox.send(approvalId, decision) : this.#decide(approvalId, decision)
  }

  /**
   * Decides several approvals in one request, at most 50. Resolves with why the server refused some of them, by approval id. A call of high
   * severity must be approved by itself.
   */
  async decideTogether(
    decisions: readonly (Pick<DecisionGiven, 'approved' | 'reason' | 'preview'> & {
      readonly approvalId: string
    })[],
  ): Promise<ReadonlyMap<string, AdkError>> {
    const body = {
      decisions: decisions.map(({ approvalId: id, ...decision }) => ({ id, ...decision })),
    }
    const { results } = await this.#http.read('/approvals', isDecidedTogether, {
      method: 'POST',
      body,
    })
    return new Map(
      results.flatMap(({ id, error }) => {
        const refusal = error && toAdkError(error)
        return refusal ? [[id, refusal] as const] : []
      }),
    )
  }

  async #decide(approvalId: string, decision: DecisionGiven, decidedAs?: string): Promise<string> {
    const { approved, reason, args, payload, preview, offer } = decision
    const body = { approved, reason, args, payload, preview, offer }
    const request = { method: 'POST' as const, body, decidedAs, isRepeatable: true }
    const { approval } = await this.#http.read(approvalPath(approvalId), isApprovalNow, request)
    return approval.state
  }

  /** The decisions that wait for the connection, by approval id. The map stays the same until it changes. */
  get waitingDecisions(): WaitingDecisions {
    return this.outbox.waiting
  }

  /** The decisions that the server refused after they had waited, until they are dismissed. The list stays the same until it changes. */
  get refusedDecisions(): readonly RefusedDecision[] {
    return this.outbox.refused
  }

  /** Removes a decision from `refusedDecisions`. */
  dismissRefused(approvalId: string): void {
    this.outbox.dismiss(approvalId)
  }

  /** Calls the listener when `waitingDecisions` or `refusedDecisions` changes. Returns a function that unsubscribes. */
  onWaitingDecisions(listener: () => void): () => void {
    return this.outbox.subscribe(listener)
  }

  /** Takes back a decision that waits for the connection. Returns false if there is none, or if it may have arrived. */
  cancelDecision(approvalId: string): boolean {
    return this.outbox.cancel(approvalId)
  }

  /**
   * Begins the sign-in that a call waits for. Resolves with the URL of the provider, to open in a new window of this browser, or without
   * one if an API key was accepted.
   */
  async signIn(approvalId: string, request: SignInRequest = {}): Promise<string | undefined> {
    const path = `/sign-ins/${encodeURIComponent(approvalId)}`
    const started = await this.#http.read(path, isStartedSignIn, {
      method: 'POST',
      body: { ...request },
    })
    return started.url
  }

  /** Lists the services that this user is signed in to. */
  async listSignIns(): Promise<SignedInService[]> {
    return (await this.#http.read('/sign-ins', isSignInList)).signIns
  }

  /** Removes the user's sign-ins to a service. Resolves with whether the provider has revoked them. */
  async removeSignIn(provider: string): Promise<boolean> {
    const path = `/sign-ins/${encodeURIComponent(provider)}`
    return (await this.#http.read(path, isRevocation, { method: 'DELETE' })).revoked
  }

  /** Withdraws this user's vote while others still have to decide. Resolves with the state of the approval. */
  async withdrawVote(approvalId: string): Promise<string> {
    const path = approvalPath(approvalId, 'vote')
    const { approval } = await this.#http.read(path, isApprovalNow, { method: 'DELETE' })
    return approval.state
  }

  /** Lists who was told of an approval, by which channel, when, and whether it arrived. Empty if the server tells nobody. */
  async listNotices(approvalId: string): Promise<readonly ShownNotice[]> {
    return (await this.#http.read(approvalPath(approvalId, 'notices'), isNoticeList)).notices
  }

  /** Lists the grants in this user's chats that can still cover a call, or are suspended. */
  async listGrants(): Promise<readonly ShownGrant[]> {
    return (await this.#http.read('/grants', isGrantList)).grants
  }

  /** Revokes a grant. Further calls are asked for. */
  async revokeGrant(grantId: string): Promise<void> {
    const path = `/grants/${encodeURIComponent(grantId)}`
    await this.#http.read(path, isRevokedGrant, { method: 'DELETE' })
  }

  /** Lists who decides in this user's place, and in whose place this user can decide. */
  listDelegations(): Promise<DelegationLists> {
    return this.#http.read('/delegations', isDelegationLists)
  }

  /** Lets another person decide in this user's place for a time. Rejects with `not-allowed` if the server does not allow it. */
  async delegate(to: string, forMs: number): Promise<ShownDelegation> {
    const body = { to, forMs }
    return (await this.#http.read('/delegations', isGivenDelegation, { method: 'POST', body }))
      .delegation
  }

  /** Ends a delegation that this user gave or received. */
  async endDelegation(delegationId: string): Promise<void> {
    await this.#http.read(delegationPath(delegationId), isEndedDelegation, { method: 'DELETE' })
  }

  /** Lists the approvals that this user can decide in the place of the person who gave the delegation. */
  async listDelegated(delegationId: string): Promise<PendingApproval[]> {
    const path = `${delegationPath(delegationId)}/approvals`
    return (await this.#http.read(path, isApprovalPage)).approvals
  }

  /** Decides an approval in the place of another person. Resolves with its state. */
  async decideDelegated(
    delegationId: string,
    approvalId: string,
    decision: Pick<DecisionGiven, 'approved' | 'reason' | 'preview'>,
  ): Promise<string> {
    const path = `${delegationPath(delegationId)}/approvals`
    const body = { approvalId, ...decision }
    return (await this.#http.read(path, isLinkDecided, { method: 'POST', body })).approval.state
  }

  /** Creates a link with which another person can decide an approval once. Rejects with `not-allowed` if this user may not. */
  createApprovalLink(approvalId: string): Promise<CreatedLink> {
    const path = approvalPath(approvalId, 'links')
    return this.#http.read(path, isCreatedLink, { method: 'POST' })
  }

  /** Opens a link. With the returned `key`, this browser decides. One that opened the link before no longer can. */
  openApprovalLink(
    approvalId: string,
    token: string,
  ): Promise<LinkedApproval & { readonly key: string }> {
    const path = approvalPath(approvalId, 'link/open')
    return this.#http.read(path, isOpenedLink, { method: 'POST', body: { token } })
  }

  /** Reads the approval of an opened link. */
  readApprovalLink(approvalId: string, key: string): Promise<LinkedApproval> {
    const path = approvalPath(approvalId, 'link/read')
    return this.#http.read(path, isLinkedApproval, { method: 'POST', body: { key } })
  }

  /** Decides the approval of an opened link. Resolves with its new state. The link is used up. */
  async decideByLink(
    approvalId: string,
    key: string,
    { approved, reason, preview }: Pick<DecisionGiven, 'approved' | 'reason' | 'preview'>,
  ): Promise<string> {
    const path = approvalPath(approvalId, 'link/decide')
    const body = { key, approved, reason, preview }
    const { approval } = await this.#http.read(path, isLinkDecided, { method: 'POST', body })
    return approval.state
  }

  /**
   * Reads what happened in a chat, on one time axis, and why it waits: the newest `limit` turns (1 to 100, default 20), or those before
   * the page whose `next` is `before`.
   */
  readTimeline(chatId: string, { limit, before }: TimelinePaging = {}): Promise<Timeline> {
    const path = chatPath(chatId, 'timeline')
    return this.#http.read(`${path}${toQuery({ limit, before })}`, isTimeline)
  }

  /** Reads what the model was asked and replied, by the `callId` of a timeline entry. Only bridges with `recordModelCalls` record it. */
  readModelCall(chatId: string, callId: string): Promise<ModelCall> {
    return this.#http.read(chatPath(chatId, 'model-calls', encodeURIComponent(callId)), isModelCall)
  }

  /** Reports what happens in a chat, here or elsewhere. Returns a function that unsubscribes. All listeners of an API share one connection, which is reopened when it is lost. */
  watchChat(chatId: string, listener: WatchListener, options?: WatchOptions): () => void {
    const ofChat: WatchListener<FeedEvent> = (event) => {
      if (event.type === 'open' || event.type === 'lost') listener(event)
      else if (event.chatId === chatId) reportChatEvent(event, listener)
    }
    return this.#feed.watch(ofChat, options)
  }

  /** Reports when the result of `listChats` or `listApprovals` changes. Returns a function that unsubscribes. */
  watch(listener: WatchListener<ListEvent>, options?: WatchOptions): () => void {
    const ofLists: WatchListener<FeedEvent> = (event) => {
      if (event.type !== 'turn' && event.type !== 'stored') listener(event)
    }
    return this.#feed.watch(ofLists, options)
  }
}

function reportChatEvent({ chatId: _chatId, ...event }: FeedEvent, listener: WatchListener): void {
  if (event.type !== 'chat') listener(event)
}

/** Returns the path of a chat, or of something in it. */
export function chatPath(chatId: string, ...more: readonly string[]): string {
  return ['/chats', encodeURIComponent(chatId), ...more].join('/')
}

function approvalPath(approvalId: string, ...more: readonly string[]): string {
  return ['/approvals', encodeURIComponent(approvalId), ...more].join('/')
}

/** Returns the query of a URL with its question mark, or an empty text if no field is defined. */
function toQuery(fields: Readonly<Record<string, string | number | undefined>>): string {
  const defined = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [[name, String(value)]],
  )
  return defined.length === 0 ? '' : `?${new URLSearchParams(defined)}`
}

/** The secret content of a link: which approval it opens, and its token. */
export interface ApprovalLinkToken {
  readonly approvalId: string
  readonly token: string
}

/**
 * Returns the URL of a link: `base` with the token in the fragment. Browsers send the fragment to no server, neither in requests nor as
 * referrer, and programs that fetch a URL for a preview cannot open the link.
 */
export function toApprovalLinkUrl(base: string | URL, link: ApprovalLinkToken): string {
  const url = new URL(base)
  url.hash = new URLSearchParams({ approval: link.approvalId, token: link.token }).toString()
  return url.href
}

/** Reads the fragment of a URL. Returns undefined if it is not that of a link. */
export function readApprovalLinkUrl(hash: string): ApprovalLinkToken | undefined {
  const query = new URLSearchParams(hash.replace(/^#/, ''))
  const [approvalId, token] = [query.get('approval'), query.get('token')]
  return approvalId === null || token === null ? undefined : { approvalId, token }
}

function delegationPath(delegationId: string): string {
  return `/delegations/${encodeURIComponent(delegationId)}`
}
