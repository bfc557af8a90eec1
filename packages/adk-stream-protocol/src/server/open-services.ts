import type { Approval } from '../approvals/approval.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { ChatRef } from '../shared/chat-ref.ts'
import type { TurnChange } from '../relay/relay.ts'
import { deletePrincipalData } from '../store/remove-data.ts'
import type { ChatEvents } from '../turns/chat-events.ts'
import { TurnRegistry } from '../turns/turn-registry.ts'
import { AskingTurns } from './chats/asking-turns.ts'
import { ApprovalDecisions } from './chats/approval-decisions.ts'
import type { Backend, LazyBackend } from './chats/backend.ts'
import { readAgents } from './chats/chat-agents.ts'
import { createChatLocker } from './chats/chat-locks.ts'
import { ChatService } from './chats/chat-service.ts'
import { LiveLeases } from './chats/live-leases.ts'
import { LiveSender } from './chats/live-sender.ts'
import { endElicitation, LostElicitations } from './chats/lost-elicitations.ts'
import { isElicitation } from '../calls/elicitation-terms.ts'
import { LiveOwners } from './chats/live-owners.ts'
import type { LiveRunsOptions } from './chats/live-runs.ts'
import { LiveRuns } from './chats/live-runs.ts'
import type { ModelCalls } from './chats/model-calls.ts'
import { PrincipalNames } from './chats/principal-names.ts'
import { RecoverySweeper } from './chats/recovery-sweeper.ts'
import { RetentionSweeper } from './chats/retention-sweeper.ts'
import { RemoteTurns } from './chats/remote-turns.ts'
import { ReplyDecisions } from './chats/reply-decisions.ts'
import { RequestContext } from './chats/request-context.ts'
import { TurnsElsewhere } from './chats/turns-elsewhere.ts'
import { DecidedTurns } from './chats/decided-turns.ts'
import { Rewinds } from './chats/rewinds.ts'
import { StoredCalls } from './chats/stored-calls.ts'
import { ToolResults } from './chats/tool-results.ts'
import { TurnService } from './chats/turn-service.ts'
import type { ApprovalChange, ApprovalNews } from './feeds/approval-news.ts'
import { pollNews } from './feeds/approval-news.ts'
import type { Feeds } from './feeds/feeds.ts'
import type { Route } from './http/http-router.ts'
import type { Operations } from './operations/operations.ts'
import type { AnyBridgeOptions, BridgeLimits } from './options.ts'
import { toObservers } from './options.ts'
import { ChatTimelines } from './chats/chat-timelines.ts'
import { approvalRoutes } from './routes/approval-routes.ts'
import { approvalLinkRoutes } from './routes/approval-link-routes.ts'
import { auditRoutes } from './routes/audit-routes.ts'
import type { CallCompletion } from './routes/call-completion.ts'
import { openCallCompletions } from './routes/call-completion.ts'
import { chatListRoutes } from './routes/chat-list-routes.ts'
import { chatRoutes } from './routes/chat-routes.ts'
import { modelCallRoutes } from './routes/model-call-routes.ts'
import { signInRoutes } from './routes/sign-in-routes.ts'
import { timelineRoutes } from './routes/timeline-routes.ts'
import type { FindCall } from './sockets/bidi-conversation.ts'
import { callFinder } from './sockets/bidi-conversation.ts'
import type { OpenHandlers } from './sockets/frame-handlers.ts'
import { openLiveHandlers } from './sockets/live-handlers.ts'
import { openTurnHandlers } from './sockets/turn-handlers.ts'
import { DRAIN_MS } from './drain.ts'
import type { Bridge } from './create-bridge.ts'

/** The parts of a bridge that serve its chats. */
export interface Services {
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

export interface ServiceParts {
  readonly limits: BridgeLimits
  readonly backend: LazyBackend
  readonly events: ChatEvents
  readonly feeds: Feeds
  readonly news: ApprovalNews
  readonly operations: Operations
  /** The recorder of model calls, if the bridge has one. */
  readonly modelCalls?: ModelCalls | undefined
}

/** Creates the parts that serve the chats, and connects them with each other. */
export function openServices(options: AnyBridgeOptions, parts: ServiceParts): Services {
  const { limits, backend, events, feeds, news, operations } = parts
  const { onError, onChunk } = toObservers(options)
  const { artifactService, mayCompleteCalls, exposeState = () => false } = options
  const elsewhere: TurnsElsewhere = new TurnsElsewhere({
    limits,
    isAwaited: () => feeds.watched || runs?.listened === true,
    onTurnChange: (change) => {
      reportTurn(change, events)
      remoteTurns.turnChanged(change)
    },
    onApprovals: () => newsPoll.readNow(),
    onWritten: (lagMs) => operations.relayWritten(lagMs),
    answer: async (kind, body) => (await asking?.answer(kind, body)) ?? owners.answer(kind, body),
    isAsked: () => runs?.busy === true || turns.asks,
    onError,
  })
  let opened: LiveLeases | undefined
  const leases = (): LiveLeases => {
    if (!opened) throw new ProtocolError('unavailable')
    return opened
  }
  const asking: AskingTurns | undefined =
    options.elicitation === true
      ? new AskingTurns({
          backend,
          elsewhere,
          turns: () => turns,
          turnService: () => turnService,
          calls: () => calls,
        })
      : undefined
  const turns = openTurns(options, { limits, backend, events, elsewhere, asking })
  const turnService = new TurnService(backend, turns, {
    exposeState,
    onError,
    onChunk,
    onTurn: ({ messageId, ...chat }) => events.turnStarted(chat, messageId),
    isLive: (approval) => owners.hold(approval),
    onTurnEnd: (turn, outcome, isLive) => operations.turnEnded(turn, outcome, isLive),
    whilePending: options.whilePending ?? 'keep',
    elicits: options.elicitation === true,
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
  const resume = createResume({ backend, runs, decidedTurns, owners, onError })
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
  const replies = new ReplyDecisions({ backend, decisions, calls })
  const chats = new ChatService({
    replies,
    resume: (approval) => void resume(approval, true),
    backend,
    turns,
    elsewhere,
    asking,
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
  const live = runs && new LiveSender({ runs, turnService, rewinds, decisions, replies, context })
  const completions = openCallCompletions({
    calls,
    toolResults,
    decisions,
    runs,
    limits,
    mayCompleteCalls,
  })
  const lost = options.elicitation === true ? new LostElicitations(backend) : undefined
  const sweeper = new RecoverySweeper({
    backend,
    intervalMs: limits.sweepMs,
    resume: (approval) => resume(approval),
    recoverTurns: async () => {
      await elsewhere.sweep(turns)
      await lost?.sweep()
    },
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
  const { modelCalls } = parts
  const timelines = new ChatTimelines({ backend, turns, elsewhere, exposeState, modelCalls })
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
        asking,
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
      ...modelCallRoutes(modelCalls),
      ...completions.routes,
    ],
    completeCall: (completion) => completions.complete(completion),
    deletePrincipal: async (principalId, { audit, waitMs = DRAIN_MS }) => {
      const { store, ledger, host, appName } = await backend.get()
      modelCalls?.forget(principalId)
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
  parts: Pick<ServiceParts, 'limits' | 'backend' | 'events'> & {
    elsewhere: TurnsElsewhere
    asking: AskingTurns | undefined
  },
): TurnRegistry {
  const { limits, backend, events, elsewhere, asking } = parts
  const stopAsking = async (chat: ChatRef): Promise<boolean> =>
    (await asking?.stopElsewhere(chat)) === true
  const stopIfUnwatched = async (chat: ChatRef): Promise<boolean | undefined> =>
    (await stopAsking(chat)) || elsewhere.stopIfUnwatched(chat)
  return new TurnRegistry({
    ...limits,
    disconnectGraceMs: options.disconnectGraceMs ?? 0,
    whileRunning: options.whileRunning ?? 'refuse',
    lockChat: createChatLocker(backend, { stopIfUnwatched }, toObservers(options).onError),
    onLocked: (chat, turn) => elsewhere.publish(chat, turn),
    stopElsewhere: async (chat) => {
      if (!(await stopAsking(chat))) await elsewhere.stop(chat)
    },
    onChange: (chat) => events.chatChanged(chat),
  })
}

/** Reports a turn of another server to the feeds of this one. */
function reportTurn({ chat, messageId, ended }: TurnChange, events: ChatEvents): void {
  if (!ended) events.turnStarted(chat, messageId)
  events.chatChanged(chat)
}

interface ResumeParts {
  readonly backend: LazyBackend
  readonly runs: LiveRuns | undefined
  readonly decidedTurns: DecidedTurns
  readonly owners: LiveOwners
  readonly onError: (error: unknown) => void
}

/**
 * Returns a function that resumes the turn of a decided or ended approval in the process that runs its call. `isNew` says that the
 * approval was decided just now. The function never rejects.
 */
function createResume({ backend, runs, decidedTurns, owners, onError }: ResumeParts) {
  return async (approval: Approval, isNew = false): Promise<void> => {
    try {
      // The call that asked continues by itself. If it cannot, nothing resumes.
      if (isElicitation(approval))
        return await endElicitation((await backend.get()).ledger, approval)
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
