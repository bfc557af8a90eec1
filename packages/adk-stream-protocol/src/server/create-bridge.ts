import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

import { checkSessions } from '../agent/adk-workarounds/checked-sessions.ts'
import { hideSpanContent } from '../agent/adk-workarounds/span-content.ts'
import { shareToolsets } from '../agent/adk-workarounds/shared-toolsets.ts'
import type { Approval } from '../approvals/approval.ts'
import { Ledger } from '../approvals/ledger.ts'
import { ApprovalPlugin } from '../calls/approval-plugin.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { TurnChange } from '../relay/relay.ts'
import { deletePrincipalData, retentionOf } from '../store/remove-data.ts'
import { ChatEvents } from '../turns/chat-events.ts'
import { TurnRegistry } from '../turns/turn-registry.ts'
import { signedCookie } from './auth/signed-cookie.ts'
import { AgentHost } from './chats/agent-host.ts'
import { ApprovalDecisions } from './chats/approval-decisions.ts'
import type { Backend } from './chats/backend.ts'
import { LazyBackend, LazyStore } from './chats/backend.ts'
import type { RootAgent } from './chats/chat-agents.ts'
import {
  ChatAgents,
  findTool,
  hasAgents,
  listBrowserTools,
  readAgents,
} from './chats/chat-agents.ts'
import { createChatLocker, fenceSessions } from './chats/chat-locks.ts'
import { ChatService } from './chats/chat-service.ts'
import { LiveLeases } from './chats/live-leases.ts'
import { LiveSender } from './chats/live-sender.ts'
import { LiveOwners } from './chats/live-owners.ts'
import type { LiveRunsOptions } from './chats/live-runs.ts'
import { LiveRuns } from './chats/live-runs.ts'
import { createEditCheck, createPreviewCheck, createRefresh } from './chats/policy-checks.ts'
import { PrincipalNames } from './chats/principal-names.ts'
import { RecoverySweeper } from './chats/recovery-sweeper.ts'
import { RetentionSweeper } from './chats/retention-sweeper.ts'
import { RemoteTurns } from './chats/remote-turns.ts'
import { RequestContext } from './chats/request-context.ts'
import { TurnsElsewhere } from './chats/turns-elsewhere.ts'
import { DecidedTurns } from './chats/decided-turns.ts'
import { Rewinds } from './chats/rewinds.ts'
import { StoredCalls } from './chats/stored-calls.ts'
import { ToolResults } from './chats/tool-results.ts'
import { TurnService } from './chats/turn-service.ts'
import { checkAgents } from './check-agent.ts'
import { checkOptions } from './check-options.ts'
import { createDrain } from './drain.ts'
import type { ApprovalChange } from './feeds/approval-news.ts'
import { ApprovalNews, pollNews } from './feeds/approval-news.ts'
import { Feeds } from './feeds/feeds.ts'
import type { AllowedHosts } from './http/hosts-and-origins.ts'
import { toOrigins } from './http/hosts-and-origins.ts'
import type { Route } from './http/http-router.ts'
import { HttpRouter } from './http/http-router.ts'
import { handleFetchRequest, handleNodeRequest } from './http/request-handlers.ts'
import { trustProxies } from './http/trusted-proxies.ts'
import { Operations } from './operations/operations.ts'
import type { AnyBridgeOptions, BridgeLimits } from './options.ts'
import { toObservers, toLimits } from './options.ts'
import type { Timeline } from '../protocol/timeline.ts'
import type { ChatRef } from '../shared/chat-ref.ts'
import { ChatTimelines } from './chats/chat-timelines.ts'
import { approvalRoutes } from './routes/approval-routes.ts'
import { approvalLinkRoutes } from './routes/approval-link-routes.ts'
import type { AuditPage, AuditQuery } from './routes/audit-routes.ts'
import { auditRoutes, readAudit } from './routes/audit-routes.ts'
import type { CallCompletion } from './routes/call-completion.ts'
import { openCallCompletions } from './routes/call-completion.ts'
import { chatListRoutes } from './routes/chat-list-routes.ts'
import { chatRoutes } from './routes/chat-routes.ts'
import { createAuditCheck, createReadiness, healthRoutes } from './routes/health-routes.ts'
import { signInRoutes } from './routes/sign-in-routes.ts'
import { timelineRoutes } from './routes/timeline-routes.ts'
import { SignIns } from './sign-in/sign-ins.ts'
import type { FindCall } from './sockets/bidi-conversation.ts'
import { callFinder } from './sockets/bidi-conversation.ts'
import type { OpenHandlers } from './sockets/frame-handlers.ts'
import { openLiveHandlers } from './sockets/live-handlers.ts'
import { SocketUpgrader } from './sockets/socket-upgrader.ts'
import { openTurnHandlers } from './sockets/turn-handlers.ts'

/** Connects an ADK agent to its clients. Mount it on any HTTP host. */
export interface Bridge extends AsyncDisposable {
  /** Handles a web `Request`, for hosts such as Hono or Next.js route handlers. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Handles a node:http request, for node:http, Express, and other hosts that use its objects. */
  readonly node: (request: IncomingMessage, response: ServerResponse) => Promise<void>
  /**
   * Handles a node:http upgrade request. Resolves to false if the path is not the bridge's socket path. The connection is then
   * untouched, and another listener must answer or close it.
   */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => Promise<boolean>
  /**
   * Completes a long-running tool call with its final result, even hours later or after a restart. Resolves when the result is stored;
   * the model then continues in the background. Rejects with `call-completed` if the call has a final result, and with
   * `not-completable` if it waits for something else, such as an approval.
   */
  readonly completeCall: (completion: CallCompletion) => Promise<void>
  /**
   * Reads a page of the audit record of approvals, oldest entry first: all chats of all principals, or those that the query selects.
   * The entries contain the arguments and results of calls, and the messages of errors that tools threw.
   */
  readonly audit: (query?: AuditQuery) => Promise<AuditPage>
  /**
   * Reads what happened in a chat, on one time axis, and why it waits: messages, turns, model calls, tools and approvals with their
   * votes. Returns the newest `limit` turns, at most 100, default 20. Pass the `next` of a page as `before` to read earlier turns.
   */
  readonly timeline: (
    chat: ChatRef,
    page?: { readonly limit?: number; readonly before?: string },
  ) => Promise<Timeline>
  /**
   * Deletes all data of a principal: chats with their messages and files, titles, `user:` state, browser calls and, with
   * `remove-contents`, approvals and the contents of audit entries. Stops the turns and live sessions of the principal and cancels
   * pending approvals first. Waits for running tool calls, and rejects with a `StoreError` with the code `busy` if one takes longer than
   * `waitMs`; call it again then. Revoke the principal's access before, so that no new chat is created.
   */
  readonly deletePrincipal: (principalId: string, options: DeletePrincipalOptions) => Promise<void>
  /** Returns true if the bridge serves this path, for hosts that also serve other paths. */
  readonly handles: (pathname: string) => boolean
  /**
   * Refuses new work, lets running calls and turns finish, and closes the bridge. Call it on SIGTERM. Work that still runs after
   * `drainMs` is stopped. A second call can shorten the wait: `close({ drainMs: 0 })` stops at once. Does not close a store that you
   * passed in.
   */
  readonly close: (options?: CloseOptions) => Promise<void>
}

/**
 * Options of `bridge.deletePrincipal()`.
 *
 * @inline
 */
interface DeletePrincipalOptions {
  /**
   * What happens to approvals and audit entries of the principal's chats. `keep` leaves them as proof of what was allowed.
   * `remove-contents` removes the approvals and the contents of the entries; their hashes stay, so that the record can be verified.
   */
  readonly audit: 'keep' | 'remove-contents'
  /** How long to wait for running calls and turns, in ms. Default 30,000. */
  readonly waitMs?: number
}

/**
 * Options of `bridge.close()`.
 *
 * @inline
 */
interface CloseOptions {
  /** How long running calls and turns may take to finish, in ms. Default: the bridge's option `drainMs`. */
  readonly drainMs?: number
}

/** Connects an ADK agent, or several, to AI SDK clients. Throws a `TypeError` if an option is invalid. */
export function createBridge(given: AnyBridgeOptions): Bridge {
  checkOptions(given)
  const observers = toObservers(given)
  const operations = new Operations({ log: given.log, onError: observers.onError })
  const onError = (error: unknown): void => {
    if (operations.isNews(error)) observers.onError(error)
  }
  const options: AnyBridgeOptions = { ...given, onError }
  const { approvals: policy, appName } = options
  const checkToolsets = checkAgents(readAgents(options).values(), {
    ...(policy && { policy }),
    ...(appName && { appName }),
    isLive: options.live !== undefined,
  })
  hideSpanContent()
  const closeToolsets = shareToolsets(readAgents(options).values())
  const limits = toLimits(options.limits)
  const store = new LazyStore(options.store)
  const drain = createDrain()
  const feeds = new Feeds(limits)
  const events = new ChatEvents()
  const news = new ApprovalNews((change) => {
    const { approval, state } = change
    events.approvalChanged(approval, state)
    if (change.elsewhere) services.changedElsewhere(change)
  })
  const audit = createAuditCheck(options.whenTampered ?? 'report', onError)
  const backend = new LazyBackend(async () => {
    await checkToolsets()
    await audit.check((await store.open()).approvals)
    const opened = await openBackend(options, limits, store)
    opened.ledger.onChange((approval, event) => {
      operations.approvalChanged(approval, event)
      news.changed(approval)
      services.approvalChanged(approval)
    })
    await news.skip(opened.ledger)
    services.start(opened)
    return opened
  })
  const services = openServices(options, { limits, backend, events, feeds, news, operations })
  const readiness = createReadiness({
    store,
    backend,
    fault: () => operations.storeFault,
    onChecked: (error) => operations.storeChecked(error),
  })
  const router = new HttpRouter({
    routes: [...healthRoutes(readiness, { audit, onError }), ...services.routes],
    authenticate:
      options.authenticate ??
      signedCookie({ secret: async () => (await store.open()).secret('cookie') }),
    allowedOrigins: toOrigins(options.allowedOrigins),
    allowedHosts: options.allowedHosts ?? defaultHosts(options),
    proxies: trustProxies(options.trustedProxies),
    basePath: options.basePath ?? '',
    drain,
    onError,
    onRefused: (error) => operations.refused(error),
  })
  const upgrader = new SocketUpgrader({
    router,
    limits,
    onError,
    onRefused: (error) => operations.refused(error),
    openHandlers: services.openHandlers,
    findCall: services.findCall,
    drain,
  })
  operations.observe(async () => ({
    turns: services.countTurns(),
    sockets: upgrader.size,
    feeds: feeds.size,
    liveSessions: services.countLiveSessions(),
    pendingApprovals: await backend.opened?.ledger.countPending(MAX_COUNTED).catch(() => undefined),
    pool: store.opened?.poolStats?.(),
  }))
  operations.started()
  let closing: Promise<void> | undefined
  const close = ({ drainMs = options.drainMs ?? DRAIN_MS }: CloseOptions = {}): Promise<void> => {
    drain.start(drainMs)
    closing ??= shutDown()
    return closing
  }
  const shutDown = async (): Promise<void> => {
    operations.closing()
    readiness.close()
    services.drain()
    // Pages with an open feed reconnect to another process at once.
    feeds.close()
    await drain.until(() => {
      upgrader.closeIdle()
      return services.isIdle()
    })
    // Sockets close after the turns, so that clients receive the end of their turns.
    await services.close()
    await upgrader.close()
    await closeToolsets()
    await store.close()
    operations.closed()
  }
  return {
    fetch: (request) => handleFetchRequest(request, router, limits),
    node: (request, response) => handleNodeRequest(request, response, { router, ...limits }),
    upgrade: (request, socket, head) => upgrader.upgrade(request, socket, head),
    completeCall: (completion) => services.completeCall(completion),
    audit: (query) => readAudit(backend, query),
    timeline: (chat, page) => services.timeline(chat, page),
    deletePrincipal: (principalId, deletion) => services.deletePrincipal(principalId, deletion),
    handles: (pathname) => router.handles(pathname),
    close,
    [Symbol.asyncDispose]: () => close(),
  }
}

const DRAIN_MS = 30_000
/** The maximum number of pending approvals that are counted for a metric. */
const MAX_COUNTED = 10_000

/**
 * With `authenticate`, any host is allowed: a page of another site has no credentials. The default identity is given to every browser
 * that connects, so without `authenticate` only the hosts of `allowedOrigins` are allowed.
 */
function defaultHosts({ authenticate, allowedOrigins = [] }: AnyBridgeOptions): AllowedHosts {
  if (authenticate) return 'any'
  return allowedOrigins.flatMap((origin) => (URL.canParse(origin) ? [new URL(origin).host] : []))
}

interface Services {
  /** Starts to work with other processes. */
  readonly start: (backend: Backend) => void
  readonly routes: readonly Route[]
  readonly openHandlers: OpenHandlers
  readonly findCall: FindCall
  readonly approvalChanged: (approval: Approval) => void
  readonly timeline: Bridge['timeline']
  readonly completeCall: (completion: CallCompletion) => Promise<void>
  readonly deletePrincipal: Bridge['deletePrincipal']
  readonly changedElsewhere: (change: ApprovalChange) => void
  readonly countTurns: () => number
  readonly countLiveSessions: () => number
  /** Starts no new work. */
  readonly drain: () => void
  /** Returns true if no work runs. Closes idle live sessions. */
  readonly isIdle: () => boolean
  readonly close: () => Promise<void>
}

/** The interval at which the audit record is read while a client or a live call waits for changes by other processes. */
const NEWS_MS = 250

interface ServiceParts {
  readonly limits: BridgeLimits
  readonly backend: LazyBackend
  readonly events: ChatEvents
  readonly feeds: Feeds
  readonly news: ApprovalNews
  readonly operations: Operations
}

function openServices(options: AnyBridgeOptions, parts: ServiceParts): Services {
  const { limits, backend, events, feeds, news, operations } = parts
  const { onError, onChunk } = toObservers(options)
  const { artifactService, mayCompleteCalls, exposeState = () => false } = options
  const elsewhere = new TurnsElsewhere({
    limits,
    isAwaited: () => feeds.watched || runs?.listened === true,
    onTurnChange: (change) => {
      reportTurn(change, events)
      remoteTurns.turnChanged(change)
    },
    onApprovals: () => newsPoll.readNow(),
    onWritten: (lagMs) => operations.relayWritten(lagMs),
    answer: (kind, body) => owners.answer(kind, body),
    isAsked: () => runs?.busy === true,
    onError,
  })
  let opened: LiveLeases | undefined
  const leases = (): LiveLeases => {
    if (!opened) throw new ProtocolError('unavailable')
    return opened
  }
  const turns = openTurns(options, { limits, backend, events, elsewhere })
  const turnService = new TurnService(backend, turns, {
    exposeState,
    onError,
    onChunk,
    onTurn: ({ messageId, ...chat }) => events.turnStarted(chat, messageId),
    onTurnEnd: (turn, outcome, isLive) => operations.turnEnded(turn, outcome, isLive),
    whilePending: options.whilePending ?? 'keep',
  })
  const rewinds = new Rewinds(backend, turns, options.whenShortened ?? 'keep')
  const calls = new StoredCalls(backend, turns)
  const toolResults = new ToolResults({ backend, calls, turnService })
  const decidedTurns = new DecidedTurns({ backend, calls, turnService, onError })
  const maxPerPrincipal = limits.maxLiveChatsPerPrincipal
  const runs = openRuns(options, { backend, turnService, leases, maxPerPrincipal, onError })
  const ask = (): TurnsElsewhere['ask'] => elsewhere.ask
  const owners = new LiveOwners({
    backend,
    calls,
    runs,
    leases,
    ask,
    onDecided: (approval) => news.changedElsewhere(approval),
  })
  const newsMs = Math.min(limits.sweepMs, NEWS_MS)
  const remoteTurns = new RemoteTurns({
    backend,
    turnService,
    calls,
    runs,
    events,
    elsewhere,
    isLiveElsewhere: (chat) => owners.isElsewhere(chat),
    intervalMs: newsMs,
    onError,
  })
  const resume = createResume({ runs, decidedTurns, owners, onError })
  const decisions = new ApprovalDecisions({
    backend,
    limits,
    decidedTurns,
    runs,
    isLiveElsewhere: (chat) => owners.isElsewhere(chat),
    // The request does not wait for the turn. If the turn fails, the next sweep resumes it.
    resume: (approval) => void resume(approval, true),
    onRepeated: (approval) => runs?.approvalChanged(approval),
  })
  const context = new RequestContext(options.context)
  const chats = new ChatService({
    backend,
    turns,
    elsewhere,
    turnService,
    rewinds,
    calls,
    toolResults,
    decisions,
    owners,
    remoteTurns,
    context,
    runs,
  })
  const live = runs && new LiveSender({ runs, turnService, rewinds, decisions, context })
  const completions = openCallCompletions({
    calls,
    toolResults,
    decisions,
    runs,
    limits,
    mayCompleteCalls,
  })
  const sweeper = new RecoverySweeper({
    backend,
    intervalMs: limits.sweepMs,
    resume: (approval) => resume(approval),
    recoverTurns: () => elsewhere.sweep(turns),
    expireBrowserCall: (call) => toolResults.expire(call).catch(onError),
    mustWrite: () => operations.storeFault !== undefined,
    onError,
    onSwept: (error) => operations.swept(error),
  })
  const retention =
    options.retention &&
    new RetentionSweeper({
      ...options.retention,
      backend,
      isInUse: (chat) => runs?.isTalking(chat) === true,
      ownsSessions: options.sessionService === undefined,
      onRemoved: (chat) => events.chatChanged(chat),
      onError,
    })
  const newsPoll = pollNews({
    backend,
    news,
    intervalMs: newsMs,
    isAwaited: () => feeds.watched || runs?.asks === true || runs?.listened === true,
    onError,
  })
  const names = new PrincipalNames(options.namePrincipal, onError)
  const timelines = new ChatTimelines({ backend, turns, elsewhere, exposeState })
  return {
    start: ({ ledger, host, store }) => {
      elsewhere.start(store, { ledger, host })
      opened = new LiveLeases({ ledger, store, ask: elsewhere.ask, onError })
    },
    timeline: (chat, page) => timelines.read(chat, { ...page, showText: true }),
    routes: [
      ...chatListRoutes({ backend, turns, events, feeds, limits }),
      ...chatRoutes({
        artifactService,
        backend,
        turns,
        elsewhere,
        events,
        feeds,
        chats,
        runs,
        limits,
        exposeState,
      }),
      ...approvalRoutes({ backend, chats, limits, names }),
      ...signInRoutes({ backend, chats, limits, signIn: options.signIn, onError }),
      ...approvalLinkRoutes({ backend, chats, limits, names, links: options.approvalLinks }),
      ...auditRoutes(backend, options.mayReadAudit),
      ...timelineRoutes(timelines, options.mayReadAudit),
      ...completions.routes,
    ],
    completeCall: (completion) => completions.complete(completion),
    deletePrincipal: async (principalId, { audit, waitMs = DRAIN_MS }) => {
      const { store, ledger, host, appName } = await backend.get()
      await deletePrincipalData(store, {
        appName,
        principalId,
        audit,
        waitMs,
        leaseMs: ledger.leaseMs,
        ...(options.sessionService && { sessions: host.sessions }),
        stop: async (chat) => {
          await runs?.leave(chat)
          await turns.stop(chat)
        },
        cancel: (chat) => ledger.deleteChat(chat, 'the data of the principal was deleted'),
        onRemoved: (chat) => events.chatChanged(chat),
      })
    },
    openHandlers: (connection) =>
      runs && live
        ? openLiveHandlers(connection, { runs, chats, live, limits })
        : openTurnHandlers(connection, { chats, limits }),
    findCall: callFinder({ decisions, calls, runs }),
    approvalChanged: (approval) => {
      runs?.approvalChanged(approval)
      elsewhere.notifyApprovals()
    },
    changedElsewhere: (change) => remoteTurns.changed(change),
    countTurns: () => turns.size,
    countLiveSessions: () => runs?.size ?? 0,
    drain: () => {
      turns.drain()
      sweeper.drain()
      retention?.drain()
    },
    isIdle: () => {
      const { ledger, host } = backend.opened ?? {}
      const isTalking = runs?.closeIdle() === false
      return !isTalking && ![turns, turnService, ledger, host].some((part) => part?.busy === true)
    },
    close: async () => {
      owners.close()
      remoteTurns.close()
      await newsPoll.close()
      await runs?.close()
      await sweeper.close()
      await retention?.close()
      await turns.close()
      await elsewhere.close()
      // Without this, another process only waits longer for this one.
      await backend.opened?.ledger.close().catch(onError)
    },
  }
}

function openTurns(
  options: AnyBridgeOptions,
  parts: Pick<ServiceParts, 'limits' | 'backend' | 'events'> & { elsewhere: TurnsElsewhere },
): TurnRegistry {
  const { limits, backend, events, elsewhere } = parts
  return new TurnRegistry({
    ...limits,
    disconnectGraceMs: options.disconnectGraceMs ?? 0,
    whileRunning: options.whileRunning ?? 'refuse',
    lockChat: createChatLocker(backend, elsewhere, toObservers(options).onError),
    onLocked: (chat, turn) => elsewhere.publish(chat, turn),
    stopElsewhere: (chat) => elsewhere.stop(chat),
    onChange: (chat) => events.chatChanged(chat),
  })
}

/** Reports a turn of another server to the feeds of this one. */
function reportTurn({ chat, messageId, ended }: TurnChange, events: ChatEvents): void {
  if (!ended) events.turnStarted(chat, messageId)
  events.chatChanged(chat)
}

interface ResumeParts {
  readonly runs: LiveRuns | undefined
  readonly decidedTurns: DecidedTurns
  readonly owners: LiveOwners
  readonly onError: (error: unknown) => void
}

/**
 * Returns a function that resumes the turn of a decided or ended approval in the process that runs its call. `isNew` says that the
 * approval was decided just now. The function never rejects.
 */
function createResume({ runs, decidedTurns, owners, onError }: ResumeParts) {
  return async (approval: Approval, isNew = false): Promise<void> => {
    try {
      // A live session, here or in another process, runs its own calls.
      if (runs?.holds(approval)) runs.approvalChanged(approval)
      else if (!(await owners.leave(approval)))
        await decidedTurns.resumeAfterDecision(approval, isNew)
    } catch (error) {
      onError(error)
    }
  }
}

function openRuns(
  options: AnyBridgeOptions,
  parts: Pick<
    LiveRunsOptions,
    'backend' | 'turnService' | 'leases' | 'maxPerPrincipal' | 'onError'
  >,
): LiveRuns | undefined {
  const { live, approvals: policy = {}, plugins = [], ...services } = options
  const { exposeToolErrors: exposeErrors = false } = options
  if (!live) return undefined
  const { artifactService, memoryService, credentialService } = services
  return new LiveRuns({
    ...live,
    ...parts,
    agents: readAgents(options),
    policy,
    exposeErrors,
    services: {
      plugins: [...plugins],
      ...(artifactService && { artifactService }),
      ...(memoryService && { memoryService }),
      ...(credentialService && { credentialService }),
    },
  })
}

async function openBackend(
  options: AnyBridgeOptions,
  limits: BridgeLimits,
  store: LazyStore,
): Promise<Backend> {
  const { appName = 'adk-stream-protocol', sessionService, approvals = {} } = options
  const { plugins, artifactService, memoryService, credentialService, runConfig } = options
  const { onError } = toObservers(options)
  const opened = await store.open()
  if (options.retention) retentionOf(opened)
  const ledger = new Ledger({
    store: opened.approvals,
    appName,
    leaseMs: limits.leaseMs,
    maxBlockedMs: limits.maxBlockedMs,
    quota: { perChat: limits.maxPendingPerChat, perPrincipal: limits.maxPendingPerPrincipal },
    onError,
  })
  const deadlineMs = options.approvalDeadlineMs
  const exposeErrors = options.exposeToolErrors ?? false
  const roots = readAgents(options)
  const signIns = options.signIn && (await SignIns.open(options.signIn, appName, opened))
  const common = {
    ledger,
    policy: approvals,
    deadlineMs,
    exposeErrors,
    credentials: signIns,
    onError,
  }
  const toGate = (root: RootAgent): ApprovalPlugin => new ApprovalPlugin({ ...common, root })
  const agents = new ChatAgents({
    names: [...roots.keys()],
    chooseAgent: hasAgents(options) ? options.chooseAgent : undefined,
    chats: opened.chats,
    onError,
  })
  const host = new AgentHost({
    agents: new Map([...roots].map(([name, agent]) => [name, { agent, gate: toGate(agent) }])),
    agentOf: (chat) => agents.of(chat),
    appName,
    sessions: checkSessions(
      sessionService ? fenceSessions(sessionService, ledger) : opened.sessions,
      { appName, policy: approvals, onError },
    ),
    ledger,
    chats: opened.chats,
    ...(runConfig && { runConfig }),
    ...(plugins && { plugins }),
    ...(artifactService && { artifactService }),
    ...(memoryService && { memoryService }),
    ...(credentialService && { credentialService }),
  })
  return {
    agents,
    host,
    ledger,
    browserCalls: opened.browserCalls,
    chats: opened.chats,
    browserTools: listBrowserTools(roots.values()),
    findTool: async (chat, toolName) => findTool(roots.get(await agents.of(chat)), toolName),
    mayEdit: createEditCheck(approvals, onError),
    refresh: createRefresh(approvals, onError),
    checkPreview: createPreviewCheck(approvals, onError),
    signIns,
    appName,
    store: opened,
  }
}
