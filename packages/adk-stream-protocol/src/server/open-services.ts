import type { Approval } from '../approvals/approval.ts'
import { deletePrincipalData } from '../store/remove-data.ts'
import type { Backend } from './chats/backend.ts'
import type { ModelCalls } from './chats/model-calls.ts'
import { LostElicitations } from './chats/recovery/lost-elicitations.ts'
import { RecoverySweeper } from './chats/recovery/recovery-sweeper.ts'
import { RetentionSweeper } from './chats/recovery/retention-sweeper.ts'
import type { Bridge } from './create-bridge.ts'
import { DRAIN_MS } from './drain.ts'
import type { ApprovalChange } from './feeds/approval-news.ts'
import type { Route } from './http/http-router.ts'
import { toObservers } from './observers.ts'
import type { ChatParts, ChatPartsOptions } from './open-chats.ts'
import { openChats } from './open-chats.ts'
import type { AnyBridgeOptions } from './options.ts'
import { approvalLinkRoutes } from './routes/approval-link-routes.ts'
import { approvalRoutes } from './routes/approval-routes.ts'
import { createNameLookup } from './routes/approval-views.ts'
import { auditRoutes } from './routes/audit-routes.ts'
import type { CallCompletion } from './routes/call-completion.ts'
import { openCallCompletions } from './routes/call-completion.ts'
import { chatListRoutes, chatRoutes } from './routes/chat-routes.ts'
import { signInRoutes } from './routes/sign-in-routes.ts'
import type { TimelineSources } from './routes/timeline-routes.ts'
import { modelCallRoutes, readTimeline, timelineRoutes } from './routes/timeline-routes.ts'
import type { FindCall } from './sockets/bidi-conversation.ts'
import { createCallFinder } from './sockets/bidi-conversation.ts'
import type { OpenHandlers } from './sockets/frame-handlers.ts'
import { openTurnHandlers } from './sockets/frame-handlers.ts'
import { openLiveHandlers } from './sockets/live-handlers.ts'

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

export interface ServiceParts extends ChatPartsOptions {
  /** The recorder of model calls, if the bridge has one. */
  readonly modelCalls?: ModelCalls | undefined
}

/** Creates the parts that serve the chats: what runs them, their endpoints, their frames, and the work in the background. */
export function openServices(options: AnyBridgeOptions, parts: ServiceParts): Services {
  const { limits, backend, modelCalls } = parts
  const opened = openChats(options, parts)
  const { chats, turns, turnService, calls, toolResults, decisions, runs, live, elsewhere } = opened
  const { exposeState = () => false, mayCompleteCalls } = options
  const completions = openCallCompletions({
    calls,
    toolResults,
    decisions,
    runs,
    limits,
    mayCompleteCalls,
  })
  const timelineSources = { backend, turns, elsewhere, exposeState, modelCalls }
  const sweeper = openSweeper(options, parts, opened)
  const retention = openRetention(options, parts, opened)
  return {
    start: opened.start,
    timeline: (chat, page) => readTimeline(timelineSources, chat, { ...page, showText: true }),
    routes: [...createRoutes(options, parts, { opened, timelineSources }), ...completions.routes],
    completeCall: (completion) => completions.complete(completion),
    deletePrincipal: createDeletion(options, parts, opened),
    openHandlers: (connection) =>
      runs && live
        ? openLiveHandlers(connection, { runs, chats, live, limits })
        : openTurnHandlers(connection, { chats, limits }),
    findCall: createCallFinder({ decisions, calls, runs }),
    approvalChanged: (approval) => {
      runs?.approvalChanged(approval)
      elsewhere.notifyApprovals()
    },
    changedElsewhere: (change) => opened.remoteTurns.changed(change),
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
      await opened.stopReading()
      await runs?.close()
      await sweeper.close()
      await retention?.close()
      await turns.close()
      await elsewhere.close()
      // Without this, another process only waits longer for this one.
      await backend.opened?.ledger.close().catch(toObservers(options).onError)
    },
  }
}

/** Creates the endpoints, except those of the whole bridge. */
function createRoutes(
  options: AnyBridgeOptions,
  { backend, limits, events, feeds, modelCalls }: ServiceParts,
  {
    opened,
    timelineSources,
  }: { readonly opened: ChatParts; readonly timelineSources: TimelineSources },
): Route[] {
  const { chats, turns, elsewhere, asking, runs } = opened
  const { artifactService, exposeState = () => false, mayReadAudit } = options
  const { onError } = toObservers(options)
  const findNames = createNameLookup(options.namePrincipal, onError)
  return [
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
    ...approvalRoutes({ backend, chats, limits, findNames }),
    ...signInRoutes({ backend, chats, limits, signIn: options.signIn, onError }),
    ...approvalLinkRoutes({ backend, chats, limits, findNames, links: options.approvalLinks }),
    ...auditRoutes(backend, mayReadAudit),
    ...timelineRoutes(timelineSources, mayReadAudit),
    ...modelCallRoutes(modelCalls),
  ]
}

/** Starts to recover the work of processes that have crashed. */
function openSweeper(
  options: AnyBridgeOptions,
  { backend, limits, operations }: ServiceParts,
  { resume, elsewhere, turns, toolResults }: ChatParts,
): RecoverySweeper {
  const { onError } = toObservers(options)
  const lost = options.elicitation === true ? new LostElicitations(backend) : undefined
  return new RecoverySweeper({
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
}

/** Starts to remove old data. Returns undefined without the option `retention`. */
function openRetention(
  { retention, sessionService, ...options }: AnyBridgeOptions,
  { backend, events }: ServiceParts,
  { runs }: ChatParts,
): RetentionSweeper | undefined {
  if (!retention) return undefined
  return new RetentionSweeper({
    ...retention,
    backend,
    isInUse: (chat) => runs?.isTalking(chat) === true,
    ownsSessions: sessionService === undefined,
    onRemoved: (chat) => events.chatChanged(chat),
    onError: toObservers(options).onError,
  })
}

/** Returns the function that deletes the data of a principal. */
function createDeletion(
  { sessionService }: AnyBridgeOptions,
  { backend, events, modelCalls }: ServiceParts,
  { runs, turns }: ChatParts,
): Bridge['deletePrincipal'] {
  return async (principalId, { audit, waitMs = DRAIN_MS }) => {
    const { store, ledger, host, sessions, appName } = await backend.get()
    modelCalls?.forget(principalId)
    await deletePrincipalData(store, {
      appName,
      principalId,
      audit,
      waitMs,
      leaseMs: ledger.leaseMs,
      ...(sessionService && { sessions: sessions.service }),
      stop: async (chat) => {
        await runs?.leave(chat)
        await turns.stop(chat)
      },
      cancel: async (chat) => {
        const reason = 'the data of the principal was deleted'
        await host.cancelRemoteTasks(chat, await ledger.deleteChat(chat, reason))
      },
      onRemoved: (chat) => events.chatChanged(chat),
    })
  }
}
