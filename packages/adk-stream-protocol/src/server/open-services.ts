import { ProtocolError } from '../protocol/errors.ts'
import { deletePrincipalData } from '../store/remove-data.ts'
import { createLostQuestionSweep } from './chats/recovery/lost-questions.ts'
import type { Sweeper } from './chats/recovery/sweepers.ts'
import { startRecovery, startRetention } from './chats/recovery/sweepers.ts'
import { createChangeChat } from './chats/turns/free-chat.ts'
import type { Bridge } from './bridge.ts'
import { agUiRoutes } from './dialects/ag-ui/ag-ui-routes.ts'
import { createBidiProtocol } from './dialects/python-clients/bidi-protocol.ts'
import { readDialect } from './dialects/read-dialect.ts'
import type { Drain } from './settings/drain.ts'
import { DRAIN_MS } from './settings/drain.ts'
import type { FindFormat } from './http/exchange.ts'
import type { Route } from './http/http-router.ts'
import type { ChatParts, SharedParts } from './open-chats.ts'
import type { BridgeSettings } from './options.ts'
import { approvalRoutes } from './routes/approval-routes.ts'
import { createNameLookup } from './routes/principal-names.ts'
import { auditAndTimelineRoutes, readTimeline } from './routes/audit-and-timeline.ts'
import type { CallCompletion } from './routes/call-completion.ts'
import { openCallCompletions } from './routes/call-completion.ts'
import { chatListRoutes, chatRoutes } from './routes/chat-routes.ts'
import type { OpenHandlers } from './sockets/connection.ts'
import type { SocketProtocol } from './sockets/socket-protocol.ts'

/** The parts of a bridge that serve its chats. */
export interface Services {
  readonly routes: readonly Route[]
  readonly openHandlers: OpenHandlers
  /** Returns the format of turns that a client asks for. */
  readonly findFormat: FindFormat
  /** The protocols of sockets that do not use JSON frames. */
  readonly protocols: readonly SocketProtocol[]
  readonly timeline: Bridge['timeline']
  readonly completeCall: (completion: CallCompletion) => Promise<void>
  readonly deletePrincipal: Bridge['deletePrincipal']
  readonly countTurns: () => number
  readonly countOpenRuns: () => number
  /** Starts no new work. */
  readonly drain: () => void
  /** Returns true if no work runs. Ends idle runs. */
  readonly isIdle: () => boolean
  readonly close: () => Promise<void>
}

type ServiceParts = SharedParts & ChatParts & { readonly drain: Drain }

/** The settings of a bridge and its parts. */
type AllParts = BridgeSettings & ServiceParts

/** Creates the parts that serve the chats: their endpoints, their frames, and the work in the background. */
export function openServices(settings: BridgeSettings, shared: ServiceParts): Services {
  const all = { ...settings, ...shared }
  const { backend, turns, turnService, runs, elsewhere, outcomes, openHandlers, onError } = all
  const completions = openCallCompletions(all)
  const recovery = openRecovery(all)
  const retention = openRetention(all)
  followChanges(all)
  return {
    timeline: (chat, page) => readTimeline(all, chat, { ...page, showText: true }),
    routes: [...createRoutes(all), ...completions.routes],
    completeCall: completions.complete,
    deletePrincipal: createDeletion(all),
    openHandlers,
    findFormat: readDialect,
    protocols: [createBidiProtocol(all)],
    countTurns: () => turns.size,
    countOpenRuns: () => runs.size,
    drain: () => {
      turns.drain()
      outcomes.drain()
      recovery.drain()
      retention?.drain()
    },
    isIdle: () => {
      const { ledger, host } = backend.opened ?? {}
      return (
        runs.closeIdle() &&
        ![turns, turnService, outcomes, ledger, host, all.modules].some(
          (part) => part?.busy === true,
        )
      )
    },
    close: async () => {
      await outcomes.close()
      await all.newsPoll.close()
      await all.storedNews.close()
      await runs.close()
      await recovery.close()
      await retention?.close()
      await turns.close()
      await elsewhere.close()
      // Without this, another process only waits longer for this one.
      await backend.opened?.ledger.close().catch(onError)
    },
  }
}

/** Passes on what the backend reports. */
function followChanges({
  changes,
  start,
  runs,
  elsewhere,
  storedNews,
  decidedTurns,
}: AllParts): void {
  changes.opened.add(start)
  changes.approval.add((approval) => {
    runs.approvalChanged(approval)
    storedNews.changedHere(approval)
    elsewhere.notifyApprovals()
  })
  changes.approvalElsewhere.add((change) => {
    // An open run of this process continues the message itself.
    if (!runs.approvalChanged(change.approval)) storedNews.approvalChangedElsewhere(change)
  })
  changes.written.add((chat) => storedNews.written(chat))
  changes.left.add((call, error) => void decidedTurns.noteFailure(call, error))
}

/** Creates the endpoints, except those of the whole bridge. */
function createRoutes(all: AllParts): Route[] {
  const { artifactService } = all.services
  const findNames = createNameLookup(all.namePrincipal, all.onError)
  return [
    ...chatListRoutes(all),
    ...chatRoutes({ ...all, artifactService, findFormat: readDialect }),
    ...agUiRoutes(all),
    ...approvalRoutes({ ...all, findNames }),
    ...all.modules.createRoutes({
      ...all,
      artifactService,
      changeChat: createChangeChat(all.turns),
      findNames,
    }),
    ...auditAndTimelineRoutes(all),
  ]
}

/** Starts to recover the work of processes that have crashed. */
function openRecovery(all: AllParts): Sweeper {
  const { backend, operations, elsewhere, turns, turnService, resume, limits, onError } = all
  const sweepQuestions = createLostQuestionSweep(backend)
  return startRecovery({
    backend,
    intervalMs: limits.sweepMs,
    resume: (approval) => resume(approval),
    takeStoreFailures: (except) => all.decidedTurns.takeStoreFailures(except),
    recoverTurns: async () => {
      await all.modules.sweep(all)
      await elsewhere.sweep(turns)
      await turnService.settleLeft()
      await sweepQuestions()
    },
    onLost: (chat) => all.runs.closeLost(chat),
    mustWrite: () => operations.storeFault !== undefined,
    onError,
    onSwept: (error) => operations.swept(error),
  })
}

/** Starts to remove old data. Returns undefined without the option `retention`. */
function openRetention(all: AllParts): Sweeper | undefined {
  const { retention, sessionService, backend, events, runs, onError } = all
  if (!retention) return undefined
  return startRetention({
    ...retention,
    backend,
    isInUse: (chat) => runs.isTalking(chat),
    ownsSessions: sessionService === undefined,
    onRemoved: (chat) => events.chatChanged(chat),
    onError,
  })
}

/** Returns the function that deletes the data of a principal. */
function createDeletion(all: AllParts): Bridge['deletePrincipal'] {
  const { sessionService, backend, events, modelCalls, runs, turns } = all
  return async (principalId, { audit, waitMs = DRAIN_MS }) => {
    const opened = await backend.get()
    const { store, ledger, sessions, waitingCalls, appName } = opened
    modelCalls?.forget(principalId)
    await deletePrincipalData(store, {
      appName,
      principalId,
      audit,
      waitMs,
      leaseMs: ledger.leaseMs,
      ...(sessionService && { sessions: sessions.service }),
      stop: async (chat) => {
        await runs.leave(chat)
        // If another process does not answer, the deletion waits for its lock.
        await turns.stop(chat).catch(ignoreUnavailable)
      },
      cancel: async (chat) => {
        const reason = 'the data of the principal was deleted'
        await waitingCalls.onCancelled(opened, chat, await ledger.deleteChat(chat, reason))
      },
      onRemoved: (chat) => events.chatChanged(chat),
    })
  }
}

function ignoreUnavailable(error: unknown): void {
  if (!(error instanceof ProtocolError) || error.code !== 'unavailable') throw error
}
