import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import { setImmediate } from 'node:timers/promises'

import { shareToolsets } from '../agent/adk-workarounds/mcp-sessions.ts'
import type { Timeline } from '../protocol/timeline.ts'
import type { ChatRef } from '../shared/chat-ref.ts'
import type { ProtocolError } from '../protocol/errors.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import type { Store } from '../store/store.ts'
import { ChatEvents } from '../turns/chat-events.ts'
import { signedCookie } from './auth/authenticate.ts'
import { Lazy } from './chats/backend.ts'
import { ModelCalls } from './chats/model-calls.ts'
import { checkAgents } from './check-agent.ts'
import { checkOptions } from './check-options.ts'
import type { Drain } from './drain.ts'
import { createDrain } from './drain.ts'
import { ApprovalNews } from './feeds/approval-news.ts'
import { Feeds } from './feeds/feeds.ts'
import type { AllowedHosts } from './http/hosts-and-proxies.ts'
import { toOrigins, trustProxies } from './http/hosts-and-proxies.ts'
import type { HttpRouterOptions } from './http/http-router.ts'
import { HttpRouter } from './http/http-router.ts'
import { handleFetchRequest, handleNodeRequest } from './http/request-handlers.ts'
import { toObservers } from './observers.ts'
import { openBackend } from './open-backend.ts'
import type { SharedParts } from './open-chats.ts'
import type { Services } from './open-services.ts'
import { openServices } from './open-services.ts'
import { Operations } from './operations/operations.ts'
import type { AnyBridgeOptions, BridgeSettings } from './options.ts'
import { toSettings } from './options.ts'
import type { AuditPage, AuditQuery } from './routes/audit-and-timeline.ts'
import { readAudit } from './routes/audit-and-timeline.ts'
import type { CallCompletion } from './routes/call-completion.ts'
import type { Readiness } from './routes/health-routes.ts'
import { createAuditCheck, createReadiness, healthRoutes } from './routes/health-routes.ts'
import { SocketUpgrader } from './sockets/socket-upgrader.ts'

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
export function createBridge(options: AnyBridgeOptions): Bridge {
  checkOptions(options)
  const { settings, operations } = resolveOptions(options)
  const { limits, onError } = settings
  const checkToolsets = checkAgents(settings)
  hideSpanContent()
  const closeToolsets = shareToolsets(settings.agents.values())
  const store = new Lazy(async () => settings.store ?? openSqliteStore({ path: ':memory:' }))
  // The first request reports the error.
  if (settings.store instanceof Promise) settings.store.catch(() => undefined)
  const audit = createAuditCheck(settings.whenTampered ?? 'report', onError)
  const openStore = async (): Promise<Store> => {
    await checkToolsets()
    const opened = await store.get()
    await audit.check(opened.approvals)
    return opened
  }
  const shared = openShared(settings, { operations, openStore, later: () => services })
  const services = openServices(settings, shared)
  const { backend, feeds } = shared
  const readiness = createReadiness({
    store,
    backend,
    fault: () => operations.storeFault,
    onChecked: (error) => operations.storeChecked(error),
  })
  const drain = createDrain()
  const routes = [...healthRoutes(readiness, { audit, onError }), ...services.routes]
  const onRefused = (error: ProtocolError): void => operations.refused(error)
  const proxies = trustProxies(settings.trustedProxies)
  const router = openRouter(settings, { store, routes, proxies, drain, onRefused })
  const { openHandlers, findCall } = services
  const upgrader = new SocketUpgrader({
    router,
    proxies,
    limits,
    onError,
    onRefused,
    openHandlers,
    findCall,
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
  const handling = { router, keepAliveMs: limits.keepAliveMs }
  const close = createClose(settings, {
    drain,
    operations,
    readiness,
    services,
    feeds,
    upgrader,
    store,
    closeToolsets,
  })
  return {
    fetch: (request) => handleFetchRequest(request, handling),
    node: (request, response) => handleNodeRequest(request, response, handling),
    upgrade: (request, socket, head) => upgrader.upgrade(request, socket, head),
    completeCall: services.completeCall,
    audit: (query) => readAudit(backend, query),
    timeline: services.timeline,
    deletePrincipal: services.deletePrincipal,
    handles: (pathname) => router.handles(pathname),
    close,
    [Symbol.asyncDispose]: () => close(),
  }
}

/** Resolves the options. The log sees each error before `onError`, so that a lasting error of the store is reported once. */
function resolveOptions(options: AnyBridgeOptions): {
  readonly settings: BridgeSettings
  readonly operations: Operations
} {
  const observers = toObservers(options)
  const operations = new Operations({ log: options.log, onError: observers.onError })
  const onError = (error: unknown): void => {
    if (operations.isNews(error)) observers.onError(error)
  }
  return { settings: toSettings(options, { ...observers, onError }), operations }
}

/** Creates the parts that chats and endpoints use. When the backend is open, it reports changes to the services. */
function openShared(
  settings: BridgeSettings,
  parts: {
    readonly operations: Operations
    readonly openStore: () => Promise<Store>
    readonly later: () => Services
  },
): SharedParts {
  const { operations, openStore, later } = parts
  const { limits, onError, recordModelCalls = false } = settings
  const modelCalls = recordModelCalls === false ? undefined : new ModelCalls()
  const feeds = new Feeds(limits)
  const events = new ChatEvents()
  // A decided call starts before its log entry is written and before feeds receive the change.
  const reportLater = (report: () => void): void => void setImmediate().then(report).catch(onError)
  const news = new ApprovalNews((change) => {
    const { approval, state } = change
    reportLater(() => events.approvalChanged(approval, state))
    if (change.elsewhere) later().changedElsewhere(change)
  })
  const backend = new Lazy(async () => {
    const opened = await openBackend(settings, await openStore(), modelCalls)
    opened.ledger.onChange((approval, event) => {
      reportLater(() => operations.approvalChanged(approval, event))
      news.changed(approval, { elsewhere: false })
      later().approvalChanged(approval)
    })
    await news.skip(opened.ledger)
    later().start(opened)
    return opened
  })
  return { backend, events, feeds, news, operations, modelCalls }
}

function openRouter(
  settings: BridgeSettings,
  parts: Pick<HttpRouterOptions, 'routes' | 'proxies' | 'drain' | 'onRefused'> & {
    readonly store: Lazy<Store>
  },
): HttpRouter {
  const { store, ...rest } = parts
  const { authenticate, allowedHosts = defaultHosts(settings), onError } = settings
  return new HttpRouter({
    ...rest,
    onError,
    authenticate:
      authenticate ?? signedCookie({ secret: async () => (await store.get()).secret('cookie') }),
    allowedOrigins: toOrigins(settings.allowedOrigins),
    allowedHosts,
    basePath: settings.basePath ?? '',
  })
}

/** The parts of a bridge that `close` stops. */
interface ClosedParts {
  readonly drain: Drain
  readonly operations: Operations
  readonly readiness: Readiness
  readonly services: Services
  readonly feeds: Feeds
  readonly upgrader: SocketUpgrader
  readonly store: Lazy<Store>
  readonly closeToolsets: () => Promise<void>
}

function createClose(settings: BridgeSettings, parts: ClosedParts): Bridge['close'] {
  const { drain, operations, readiness, services, feeds, upgrader, store, closeToolsets } = parts
  let closing: Promise<void> | undefined
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
    // A store of the application stays open.
    if (!settings.store) await (await store.peek())?.close()
    operations.closed()
  }
  return ({ drainMs = settings.drainMs } = {}) => {
    drain.start(drainMs)
    closing ??= shutDown()
    return closing
  }
}

/** The maximum number of pending approvals that are counted for a metric. */
const MAX_COUNTED = 10_000

/**
 * With `authenticate`, any host is allowed: a page of another site has no credentials. The default identity is given to every browser
 * that connects, so without `authenticate` only the hosts of `allowedOrigins` are allowed.
 */
function defaultHosts({ authenticate, allowedOrigins = [] }: BridgeSettings): AllowedHosts {
  if (authenticate) return 'any'
  return allowedOrigins.flatMap((origin) => (URL.canParse(origin) ? [new URL(origin).host] : []))
}

/**
 * Keeps prompts, replies and arguments out of ADK's spans (OB2). ADK 2.0.0 writes them unless this environment variable is `false`,
 * reads it for every span, and has no other option. A span processor of the application would see them first, and a plugin is not
 * called for agents that are used as tools. An application that wants the content sets the variable to `true`.
 */
function hideSpanContent(): void {
  process.env['ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS'] ??= 'false'
}
