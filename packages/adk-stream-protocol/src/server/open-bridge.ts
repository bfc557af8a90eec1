import { setImmediate } from 'node:timers/promises'

import { version } from '@google/adk'

import type { ProtocolError } from '../protocol/errors.ts'
import { Listeners } from '../shared/collections.ts'
import { describeUntestedAdk } from '../shared/tested-adk.ts'
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts'
import type { Store } from '../store/store.ts'
import { ChatEvents } from '../turns/chat-events.ts'
import { signedCookie } from './auth/authenticate.ts'
import type { ModuleOptions } from './bridge-modules.ts'
import { rememberSettings } from './bridge-settings.ts'
import { Lazy } from './chats/backend.ts'
import { ModelCalls } from './chats/model-calls.ts'
import { checkAgents } from './check-agent.ts'
import { checkOptions } from './check-options.ts'
import type { Drain } from './settings/drain.ts'
import { createDrain } from './settings/drain.ts'
import { ApprovalNews } from './feeds/approval-news.ts'
import { Feeds } from './feeds/feeds.ts'
import type { AllowedHosts } from './http/hosts-and-proxies.ts'
import { toOrigins, trustProxies } from './http/hosts-and-proxies.ts'
import type { HttpRouterOptions } from './http/http-router.ts'
import { HttpRouter } from './http/http-router.ts'
import { handleFetchRequest, handleNodeRequest } from './http/request-handlers.ts'
import { toObservers } from './settings/observers.ts'
import { openBackend } from './open-backend.ts'
import type { BackendChanges, SharedParts } from './open-chats.ts'
import { openChats } from './open-chats.ts'
import type { BridgeModules, ModuleList } from './open-modules.ts'
import { openModules } from './open-modules.ts'
import type { Services } from './open-services.ts'
import { openServices } from './open-services.ts'
import type { Levels } from './operations/metrics.ts'
import { Operations } from './operations/operations.ts'
import type { AnyBridgeOptions, BridgeSettings } from './options.ts'
import { toSettings } from './options.ts'
import { readAudit } from './routes/audit-and-timeline.ts'
import type { Readiness } from './routes/health-routes.ts'
import { createAuditCheck, createReadiness, healthRoutes } from './routes/health-routes.ts'
import { SocketUpgrader } from './sockets/socket-upgrader.ts'
import type { Bridge } from './bridge.ts'
import { closeOnSignals } from './close-on-signals.ts'

/** Opens a bridge with modules. Throws a `TypeError` if an option is invalid. */
export function openBridge(options: AnyBridgeOptions, list: ModuleList<ModuleOptions>): Bridge {
  checkOptions(options, list.options)
  const { settings: given, operations } = resolveOptions(options)
  const { limits, onError } = given
  const checkToolsets = checkAgents(given)
  hideSpanContent()
  const modules = openModules(list, given)
  const settings = { ...given, approvals: modules.extendPolicy(given.approvals) }
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
  const shared = openShared(settings, { operations, modules, openStore })
  const drain = createDrain()
  const services = openServices(settings, { ...shared, ...openChats(settings, shared), drain })
  const { backend, feeds } = shared
  const readiness = createReadiness({
    store,
    backend,
    fault: () => operations.storeFault,
    onChecked: (error) => operations.storeChecked(error),
  })
  const untestedAdk = describeUntestedAdk(version)
  const routes = [
    ...healthRoutes(readiness, { audit, onError, isAdkTested: untestedAdk === undefined }),
    ...services.routes,
  ]
  const onRefused = (error: ProtocolError): void => operations.refused(error)
  const proxies = trustProxies(settings.trustedProxies)
  const router = openRouter(settings, { store, routes, proxies, drain, onRefused })
  const { openHandlers, findFormat, protocols } = services
  const upgrader = new SocketUpgrader({
    router,
    proxies,
    limits,
    onError,
    onRefused,
    openHandlers,
    findFormat,
    protocols,
    drain,
  })
  const readLevels = async (): Promise<Levels> => ({
    turns: services.countTurns(),
    sockets: upgrader.size,
    feeds: feeds.size,
    openRuns: services.countOpenRuns(),
    pendingApprovals: await backend.opened?.ledger.countPending(MAX_COUNTED).catch(() => undefined),
    pool: store.opened?.poolStats?.(),
  })
  operations.observe(readLevels, modules.runsLevel)
  operations.started(untestedAdk)
  const handling = { router, keepAliveMs: limits.keepAliveMs }
  const close = createClose(settings, {
    drain,
    operations,
    readiness,
    services,
    feeds,
    upgrader,
    store,
    modules,
  })
  const bridge: Bridge = {
    fetch: (request) => handleFetchRequest(request, handling),
    node: (request, response) => handleNodeRequest(request, response, handling),
    upgrade: (request, socket, head) => upgrader.upgrade(request, socket, head),
    completeCall: services.completeCall,
    audit: (query) => readAudit(backend, query),
    timeline: services.timeline,
    deletePrincipal: services.deletePrincipal,
    handles: (pathname) => router.handles(pathname),
    close,
    closeOnSignals: (...parts) => closeOnSignals([{ close: () => close() }, ...parts]),
    [Symbol.asyncDispose]: () => close(),
  }
  rememberSettings(bridge, settings)
  return bridge
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

/** Creates the parts that chats and endpoints use. */
function openShared(
  settings: BridgeSettings,
  parts: {
    readonly operations: Operations
    readonly modules: BridgeModules
    readonly openStore: () => Promise<Store>
  },
): SharedParts {
  const { operations, modules, openStore } = parts
  const { limits, onError, recordModelCalls = false } = settings
  const modelCalls = recordModelCalls === false ? undefined : new ModelCalls()
  const feeds = new Feeds(limits)
  const events = new ChatEvents()
  const changes: BackendChanges = {
    opened: new Listeners(),
    approval: new Listeners(),
    approvalElsewhere: new Listeners(),
    written: new Listeners(),
    left: new Listeners(),
  }
  // A decided call starts before its log entry is written and before feeds receive the change.
  const reportLater = (report: () => unknown): void =>
    void setImmediate().then(report).catch(onError)
  const news = new ApprovalNews((change) => {
    const { approval, state } = change
    reportLater(async () => {
      const { substitutes } = (await backend.peek()) ?? {}
      await events.approvalChanged(approval, state, substitutes)
    })
    if (change.elsewhere) changes.approvalElsewhere.call(change)
  })
  const backend = new Lazy(async () => {
    const opened = await openBackend(settings, await openStore(), {
      openKinds: modules.openKinds,
      openPrior: modules.openPrior,
      openSubstitutes: modules.openSubstitutes,
      waitingCalls: modules.waitingCalls,
      modelCalls,
      onWritten: (chat) => changes.written.call(chat),
      onLeft: (call, error) => changes.left.call(call, error),
    })
    opened.ledger.onChange((approval, event) => {
      reportLater(() => operations.approvalChanged(approval, event))
      news.changed(approval, { elsewhere: false })
      changes.approval.call(approval)
    })
    await news.skip(opened.ledger)
    changes.opened.call(opened)
    modules.start(opened)
    return opened
  })
  return { backend, events, feeds, news, operations, modelCalls, modules, changes }
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
  readonly modules: BridgeModules
}

function createClose(settings: BridgeSettings, parts: ClosedParts): Bridge['close'] {
  const { drain, operations, readiness, services, feeds, upgrader, store, modules } = parts
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
    await modules.close()
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
