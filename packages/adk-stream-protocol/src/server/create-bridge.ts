import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

import { ApprovalPlugin } from '../calls/approval-plugin.ts'
import { checkSessions } from '../agent/adk-workarounds/checked-sessions.ts'
import type { Approval } from '../approvals/approval.ts'
import { Ledger } from '../approvals/ledger.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { ChatEvents } from '../turns/chat-events.ts'
import { ListEvents } from '../turns/list-events.ts'
import { Turns } from '../turns/turns.ts'
import { AgentHost } from './chats/agent-host.ts'
import { ChatAgents, findTool, hasAgents, readAgents } from './chats/chat-agents.ts'
import type { AllowedHosts } from './http/allowed-hosts.ts'
import type { ApprovalChange } from './feeds/approval-news.ts'
import { ApprovalNews, NewsPoll } from './feeds/approval-news.ts'
import { ApprovalDesk } from './routes/approval-routes.ts'
import { AuditWatch, Readiness } from './routes/health-routes.ts'
import type { Backend } from './chats/backend.ts'
import { BackendOnDemand, StoreOnDemand } from './chats/backend.ts'
import type { FindCall } from './sockets/bidi-conversation.ts'
import { callFinder } from './sockets/bidi-conversation.ts'
import type { CallCompletion } from './routes/call-completion.ts'
import { CallCompletions } from './routes/call-completion.ts'
import { ChatDesk } from './routes/chat-routes.ts'
import type { RootAgent } from './chats/chat-agents.ts'
import { checkAgents } from './check-agent.ts'
import { checkOptions } from './check-options.ts'
import { editsWithin, refreshHints } from './chats/policy-checks.ts'
import { Drain } from './drain.ts'
import { reply, withHeaders } from './http/exchange.ts'
import type { OpenHandlers } from './sockets/frame-handlers.ts'
import { fenceSessions, holdChats } from './chats/chat-locks.ts'
import { Feeds } from './feeds/feeds.ts'
import { FrontDoor, LIVE_PATH } from './http/http-router.ts'
import { answerFetch } from './http/fetch-handler.ts'
import { answerNode } from './http/node-handler.ts'
import { RemoteTurns } from './chats/remote-turns.ts'
import { Housekeeper } from './chats/recovery-sweeper.ts'
import { ListDesk } from './routes/chat-list-routes.ts'
import { LiveDoor } from './sockets/socket-upgrader.ts'
import { openLiveHandlers } from './sockets/live-handlers.ts'
import { LiveOwners } from './chats/live-owners.ts'
import type { LiveRunsOptions } from './chats/live-runs.ts'
import { LiveRuns } from './chats/live-runs.ts'
import { LiveSource } from './chats/live-source.ts'
import type { AnyBridgeOptions, BridgeLimits } from './options.ts'
import { toLimits, toObservers } from './options.ts'
import { toOrigins } from './http/origin.ts'
import { Proxies } from './http/trusted-proxies.ts'
import { RequestContext } from './chats/request-context.ts'
import type { Route } from './http/route.ts'
import { signedCookie } from './auth/signed-cookie.ts'
import { TurnDesk } from './chats/turn-desk.ts'
import { openTurnHandlers } from './sockets/turn-handlers.ts'
import { TurnByTurn } from './chats/turn-source.ts'

/** The bridge between an ADK agent and its clients, to be mounted on any HTTP host. */
export interface Bridge extends AsyncDisposable {
  /** Answers a web request: Hono, Next.js route handlers, all that speak fetch. */
  readonly fetch: (request: Request) => Promise<Response>
  /** Answers a node:http request: node:http itself, Express, and others that hand out its objects. */
  readonly node: (request: IncomingMessage, response: ServerResponse) => Promise<void>
  /**
   * Answers a node:http upgrade request. Resolves to false, and leaves the connection to other listeners, if the path is not the
   * one of the bridge's sockets; then somebody has to answer it or close it.
   */
  readonly upgrade: (request: IncomingMessage, socket: Duplex, head: Buffer) => Promise<boolean>
  /**
   * Completes a long-running call with its final result: of a tool that returned nothing or a ticket, also hours later and after a
   * restart. Resolves when the result is stored; the model then goes on in the background. A second result for the same call is
   * refused with `call-completed`, a call that waits for something else with `not-completable`.
   */
  readonly completeCall: (completion: CallCompletion) => Promise<void>
  /** Whether the bridge answers at this path, for hosts that serve other things beside it. */
  readonly handles: (pathname: string) => boolean
  /**
   * Takes no new work, lets calls and answers that run end, and closes; call it on SIGTERM. What still runs after `drainMs` is
   * stopped. A second call can shorten the time: `close({ drainMs: 0 })` ends at once. A store that was passed in stays open.
   */
  readonly close: (options?: CloseOptions) => Promise<void>
}

/** How a bridge is closed. */
export interface CloseOptions {
  /** How long calls and answers that run may take to end, in ms. Default: the `drainMs` of the bridge's options. */
  readonly drainMs?: number
}

/** Puts an ADK agent, or several, in front of AI SDK clients. */
export function createBridge(options: AnyBridgeOptions): Bridge {
  checkOptions(options)
  const { approvals: policy, appName } = options
  const checkToolsets = checkAgents(readAgents(options).values(), {
    ...(policy && { policy }),
    ...(appName && { appName }),
  })
  // OB2: ADK writes prompts into its spans unless this is set. A host that wants them there sets it first.
  process.env['ADK_CAPTURE_MESSAGE_CONTENT_IN_SPANS'] ??= 'false'
  const limits = toLimits(options.limits)
  const { onError } = toObservers(options)
  const store = new StoreOnDemand(options.store)
  const drain = new Drain()
  const feeds = new Feeds(limits)
  const events = new ChatEvents()
  const lists = new ListEvents()
  const news = new ApprovalNews((change) => {
    const { approval, state } = change
    events.tell(approval.chat, { type: 'approval', approvalId: approval.id, state })
    lists.approvalChanged(approval, state)
    if (change.elsewhere) desks.changedElsewhere(change)
  })
  const audit = new AuditWatch(options.whenTampered ?? 'report', onError)
  const backend = new BackendOnDemand(async () => {
    await checkToolsets()
    await audit.check((await store.open()).approvals)
    const opened = await openBackend(options, limits, store)
    opened.ledger.onChange((approval) => {
      news.changed(approval)
      desks.approvalChanged(approval)
    })
    await news.skip(opened.ledger)
    return opened
  })
  const desks = openDesks(options, { limits, backend, events, lists, feeds, news })
  const readiness = new Readiness(async () => (await backend.get()).ledger.list({ limit: 1 }))
  const door = new FrontDoor({
    routes: [...PUBLIC_ROUTES, readyRoute(readiness, audit), ...desks.routes],
    authenticate:
      options.authenticate ??
      signedCookie({ secret: async () => (await store.open()).secret('cookie') }),
    allowedOrigins: toOrigins(options.allowedOrigins),
    allowedHosts: options.allowedHosts ?? defaultHosts(options),
    proxies: new Proxies(options.trustedProxies),
    basePath: options.basePath ?? '',
    drain,
    onError,
  })
  const liveDoor = new LiveDoor({
    door,
    limits,
    onError,
    openHandlers: desks.openHandlers,
    findCall: desks.findCall,
    drain,
  })
  let closing: Promise<void> | undefined
  const close = ({ drainMs = options.drainMs ?? DRAIN_MS }: CloseOptions = {}): Promise<void> => {
    drain.begin(drainMs)
    closing ??= shutDown()
    return closing
  }
  const shutDown = async (): Promise<void> => {
    readiness.close()
    desks.drain()
    // Pages that watch look for another process at once.
    feeds.close()
    await drain.until(() => {
      liveDoor.closeIdle()
      return desks.isIdle()
    })
    // Sockets after the turns: their clients hear how the answers ended.
    await desks.close()
    await liveDoor.close()
    await store.close()
  }
  return {
    fetch: (request) => answerFetch(request, door, limits),
    node: (request, response) => answerNode(request, response, { door, ...limits }),
    upgrade: (request, socket, head) => liveDoor.upgrade(request, socket, head),
    completeCall: (completion) => desks.completeCall(completion),
    handles: (pathname) => door.handles(pathname),
    close,
    [Symbol.asyncDispose]: () => close(),
  }
}

const DRAIN_MS = 30_000

const PUBLIC_ROUTES: readonly Route[] = [
  {
    method: 'GET',
    path: '/',
    public: true,
    handle: () => reply(200, { service: 'adk-stream-protocol', status: 'running' }),
  },
  { method: 'GET', path: '/health', public: true, handle: () => reply(200, { status: 'healthy' }) },
  {
    method: 'GET',
    path: LIVE_PATH,
    public: true,
    handle: () => {
      const error = new ProtocolError('upgrade-required')
      return withHeaders(reply(error.status, error), { upgrade: 'websocket' })
    },
  },
]

function readyRoute(readiness: Readiness, audit: AuditWatch): Route {
  return {
    method: 'GET',
    path: '/ready',
    public: true,
    handle: async () => {
      await readiness.check()
      return reply(200, { status: 'ready', ...(audit.isTampered && { warnings: ['audit'] }) })
    },
  }
}

/** A sign-in of one's own is not given to pages of other sites; the default identity is given to every browser that asks. */
function defaultHosts({ authenticate, allowedOrigins = [] }: AnyBridgeOptions): AllowedHosts {
  if (authenticate) return 'any'
  return allowedOrigins.flatMap((origin) => (URL.canParse(origin) ? [new URL(origin).host] : []))
}

interface Desks {
  readonly routes: readonly Route[]
  readonly openHandlers: OpenHandlers
  readonly findCall: FindCall
  readonly approvalChanged: (approval: Approval) => void
  readonly completeCall: (completion: CallCompletion) => Promise<void>
  readonly changedElsewhere: (change: ApprovalChange) => void
  /** Begins nothing new. */
  readonly drain: () => void
  /** Whether nothing runs any more. Live conversations in which nothing does are ended. */
  readonly isIdle: () => boolean
  readonly close: () => Promise<void>
}

/** How often the record of approvals is read while somebody here waits for what other processes write. */
const NEWS_MS = 250

interface DeskParts {
  readonly limits: BridgeLimits
  readonly backend: BackendOnDemand
  readonly events: ChatEvents
  readonly lists: ListEvents
  readonly feeds: Feeds
  readonly news: ApprovalNews
}

function openDesks(options: AnyBridgeOptions, parts: DeskParts): Desks {
  const { limits, backend, events, lists, feeds, news } = parts
  const { onError, onChunk } = toObservers(options)
  const exposeState = options.exposeState ?? (() => false)
  const turns = openTurns(options, { limits, backend, lists })
  const turnDesk = new TurnDesk(backend, turns, {
    exposeState,
    onError,
    onChunk,
    onTurn: ({ messageId, ...chat }) => {
      events.tell(chat, { type: 'turn', messageId })
      lists.turnBegan(chat, messageId)
    },
    whilePending: options.whilePending ?? 'keep',
    whenShortened: options.whenShortened ?? 'keep',
  })
  const maxPerPrincipal = limits.maxLiveChatsPerPrincipal
  const runs = openRuns(options, { backend, turnDesk, maxPerPrincipal, onError })
  const owners = new LiveOwners({ backend, turnDesk })
  const newsMs = Math.min(limits.sweepMs, NEWS_MS)
  const remoteTurns = new RemoteTurns({
    backend,
    turnDesk,
    runs,
    events,
    lists,
    intervalMs: newsMs,
    onError,
  })
  const goOn = followWith({ runs, turnDesk, owners, onError })
  const follow = (approval: Approval): Promise<void> => goOn(approval)
  // Nobody waits for it; what goes wrong is tried again by the next sweep.
  const resume = (given: Approval): void => void goOn(given, given)
  const approvalDesk = new ApprovalDesk({
    backend,
    limits,
    resume,
    onRepeated: (approval) => runs?.approvalChanged(approval),
  })
  const context = new RequestContext(options.context)
  const source = new TurnByTurn({
    turns,
    turnDesk,
    approvalDesk,
    runs,
    owners,
    remoteTurns,
    context,
  })
  const chatDesk = new ChatDesk({
    artifactService: options.artifactService,
    backend,
    turns,
    events,
    lists,
    feeds,
    source,
    runs,
    limits,
    exposeState,
  })
  const { mayCompleteCalls } = options
  const completions = new CallCompletions({ turnDesk, runs, limits, mayCompleteCalls })
  const listDesk = new ListDesk({ backend, turns, lists, feeds, limits })
  const live =
    runs && new LiveSource({ turns, turnDesk, approvalDesk, runs, owners, remoteTurns, context })
  const housekeeper = new Housekeeper({
    backend,
    intervalMs: limits.sweepMs,
    follow,
    giveUp: (wait) => turnDesk.giveUp(wait).catch(onError),
    onError,
  })
  const newsPoll = new NewsPoll({
    backend,
    news,
    intervalMs: newsMs,
    isAwaited: () => feeds.watched || runs?.asks === true || runs?.listened === true,
    onError,
  })
  return {
    routes: [...listDesk.routes, ...chatDesk.routes, ...approvalDesk.routes, ...completions.routes],
    completeCall: (completion) => completions.complete(completion),
    openHandlers: (connection) =>
      runs && live
        ? openLiveHandlers(connection, { runs, source: live, limits })
        : openTurnHandlers(connection, { source, limits }),
    findCall: callFinder({ approvalDesk, turnDesk, runs }),
    approvalChanged: (approval) => runs?.approvalChanged(approval),
    changedElsewhere: (change) => remoteTurns.changed(change),
    drain: () => {
      turns.drain()
      housekeeper.drain()
    },
    isIdle: () => {
      const { ledger, host } = backend.opened ?? {}
      const isTalking = runs?.closeIdle() === false
      return !isTalking && ![turns, turnDesk, ledger, host].some((part) => part?.busy === true)
    },
    close: async () => {
      owners.close()
      remoteTurns.close()
      await newsPoll.close()
      await runs?.close()
      await housekeeper.close()
      await turns.close()
    },
  }
}

function openTurns(
  options: AnyBridgeOptions,
  { limits, backend, lists }: Pick<DeskParts, 'limits' | 'backend' | 'lists'>,
): Turns {
  return new Turns({
    ...limits,
    disconnectGraceMs: options.disconnectGraceMs ?? 0,
    whileRunning: options.whileRunning ?? 'refuse',
    hold: holdChats(backend, toObservers(options).onError),
    onChange: (chat) => lists.chatChanged(chat),
  })
}

/** Goes on by an approval that was given or that ended: where its call lives. Never rejects. */
function followWith({ runs, turnDesk, owners, onError }: FollowParts) {
  return async (approval: Approval, given?: Approval): Promise<void> => {
    try {
      // A live conversation goes on by itself, also one of another process.
      if (runs?.holds(approval)) runs.approvalChanged(approval)
      else if (!(await owners.leave(approval))) await turnDesk.follow(approval, given)
    } catch (error) {
      onError(error)
    }
  }
}

interface FollowParts {
  readonly runs: LiveRuns | undefined
  readonly turnDesk: TurnDesk
  readonly owners: LiveOwners
  readonly onError: (error: unknown) => void
}

function openRuns(
  options: AnyBridgeOptions,
  parts: Pick<LiveRunsOptions, 'backend' | 'turnDesk' | 'maxPerPrincipal' | 'onError'>,
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
  store: StoreOnDemand,
): Promise<Backend> {
  const { appName = 'adk-stream-protocol', sessionService, approvals = {} } = options
  const { plugins, artifactService, memoryService, credentialService, runConfig } = options
  const { onError } = toObservers(options)
  const opened = await store.open()
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
  const toGate = (root: RootAgent): ApprovalPlugin =>
    new ApprovalPlugin({ ledger, root, policy: approvals, deadlineMs, exposeErrors, onError })
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
    findTool: async (chat, toolName) => findTool(roots.get(await agents.of(chat)), toolName),
    mayEdit: editsWithin(approvals, onError),
    refreshHint: refreshHints(approvals, onError),
    appName,
  }
}
