import type { Approval } from '../approvals/approval.ts'
import { deletePrincipalData } from '../store/remove-data.ts'
import type { Backend } from './chats/backend.ts'
import { createElicitationSweep } from './chats/recovery/lost-elicitations.ts'
import type { Sweeper } from './chats/recovery/sweepers.ts'
import { startRecovery, startRetention } from './chats/recovery/sweepers.ts'
import type { Bridge } from './create-bridge.ts'
import { DRAIN_MS } from './drain.ts'
import type { ApprovalChange } from './feeds/approval-news.ts'
import type { Route } from './http/http-router.ts'
import type { ChatParts, SharedParts } from './open-chats.ts'
import { openChats } from './open-chats.ts'
import type { BridgeSettings } from './options.ts'
import { approvalLinkRoutes } from './routes/approval-link-routes.ts'
import { approvalRoutes, createNameLookup } from './routes/approval-routes.ts'
import type { TimelineSources } from './routes/audit-and-timeline.ts'
import { auditAndTimelineRoutes, readTimeline } from './routes/audit-and-timeline.ts'
import type { CallCompletion } from './routes/call-completion.ts'
import { openCallCompletions } from './routes/call-completion.ts'
import { chatListRoutes, chatRoutes } from './routes/chat-routes.ts'
import { signInRoutes } from './routes/sign-in-routes.ts'
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

/** Creates the parts that serve the chats: what runs them, their endpoints, their frames, and the work in the background. */
export function openServices(settings: BridgeSettings, shared: SharedParts): Services {
  const { limits, exposeState, mayCompleteCalls, onError } = settings
  const { backend, modelCalls } = shared
  const parts = openChats(settings, shared)
  const { chats, turns, turnService, calls, toolResults, decisions, runs, live, elsewhere } = parts
  const completions = openCallCompletions({
    calls,
    toolResults,
    decisions,
    runs,
    limits,
    mayCompleteCalls,
  })
  const timelineSources = { backend, turns, elsewhere, exposeState, modelCalls }
  const recovery = openRecovery(settings, shared, parts)
  const retention = openRetention(settings, shared, parts)
  return {
    start: ({ store, ledger, sessions }) => elsewhere.start(store, { ledger, sessions }),
    timeline: (chat, page) => readTimeline(timelineSources, chat, { ...page, showText: true }),
    routes: [...createRoutes(settings, shared, { parts, timelineSources }), ...completions.routes],
    completeCall: completions.complete,
    deletePrincipal: createDeletion(settings, shared, parts),
    openHandlers: (connection) =>
      runs && live
        ? openLiveHandlers(connection, { runs, chats, live, limits })
        : openTurnHandlers(connection, { chats, limits }),
    findCall: createCallFinder({ decisions, calls, runs }),
    approvalChanged: (approval) => {
      runs?.approvalChanged(approval)
      elsewhere.notifyApprovals()
    },
    changedElsewhere: (change) => parts.remoteTurns.changed(change),
    countTurns: () => turns.size,
    countLiveSessions: () => runs?.size ?? 0,
    drain: () => {
      turns.drain()
      recovery.drain()
      retention?.drain()
    },
    isIdle: () => {
      const { ledger, host } = backend.opened ?? {}
      const isTalking = runs?.closeIdle() === false
      return !isTalking && ![turns, turnService, ledger, host].some((part) => part?.busy === true)
    },
    close: async () => {
      parts.owners.close()
      parts.remoteTurns.close()
      await parts.newsPoll.close()
      await runs?.close()
      await recovery.close()
      await retention?.close()
      await turns.close()
      await elsewhere.close()
      // Without this, another process only waits longer for this one.
      await backend.opened?.ledger.close().catch(onError)
    },
  }
}

/** Creates the endpoints, except those of the whole bridge. */
function createRoutes(
  settings: BridgeSettings,
  { backend, events, feeds }: SharedParts,
  {
    parts,
    timelineSources,
  }: { readonly parts: ChatParts; readonly timelineSources: TimelineSources },
): Route[] {
  const { chats, turns, elsewhere, asking, runs } = parts
  const { limits, exposeState, mayReadAudit, signIn, approvalLinks: links, onError } = settings
  const { artifactService } = settings.services
  const findNames = createNameLookup(settings.namePrincipal, onError)
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
    ...signInRoutes({ backend, chats, limits, signIn, onError }),
    ...approvalLinkRoutes({ backend, chats, limits, findNames, links }),
    ...auditAndTimelineRoutes(timelineSources, mayReadAudit),
  ]
}

/** Starts to recover the work of processes that have crashed. */
function openRecovery(
  { limits, elicitation, onError }: BridgeSettings,
  { backend, operations }: SharedParts,
  { resume, elsewhere, turns, toolResults }: ChatParts,
): Sweeper {
  const sweepElicitations = elicitation ? createElicitationSweep(backend) : undefined
  return startRecovery({
    backend,
    intervalMs: limits.sweepMs,
    resume: (approval) => resume(approval),
    recoverTurns: async () => {
      await elsewhere.sweep(turns)
      await sweepElicitations?.()
    },
    expireBrowserCall: (call) => toolResults.expire(call).catch(onError),
    mustWrite: () => operations.storeFault !== undefined,
    onError,
    onSwept: (error) => operations.swept(error),
  })
}

/** Starts to remove old data. Returns undefined without the option `retention`. */
function openRetention(
  { retention, sessionService, onError }: BridgeSettings,
  { backend, events }: SharedParts,
  { runs }: ChatParts,
): Sweeper | undefined {
  if (!retention) return undefined
  return startRetention({
    ...retention,
    backend,
    isInUse: (chat) => runs?.isTalking(chat) === true,
    ownsSessions: sessionService === undefined,
    onRemoved: (chat) => events.chatChanged(chat),
    onError,
  })
}

/** Returns the function that deletes the data of a principal. */
function createDeletion(
  { sessionService }: BridgeSettings,
  { backend, events, modelCalls }: SharedParts,
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
