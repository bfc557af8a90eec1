import { isElicitation } from '../calls/elicitation-terms.ts'
import type { Approval } from '../approvals/approval.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { TurnChange } from '../relay/relay.ts'
import type { ChatRef } from '../shared/chat-ref.ts'
import type { ChatEvents } from '../turns/chat-events.ts'
import { TurnRegistry } from '../turns/turn-registry.ts'
import { ApprovalDecisions } from './chats/decisions/approval-decisions.ts'
import { AskingTurns } from './chats/turns/asking-turns.ts'
import type { Backend, LazyBackend } from './chats/backend.ts'
import { readAgents } from './options.ts'
import { createChatLocker } from './chats/turns/chat-locker.ts'
import { ChatService } from './chats/chat-service.ts'
import { DecidedTurns } from './chats/decisions/decided-turns.ts'
import { LiveLeases } from './chats/live-leases.ts'
import { LiveOwners } from './chats/live-owners.ts'
import type { LiveRunsOptions } from './chats/live-runs.ts'
import { LiveRuns } from './chats/live-runs.ts'
import { LiveSender } from './chats/live-sender.ts'
import { endElicitation } from './chats/recovery/lost-elicitations.ts'
import { RemoteTurns } from './chats/recovery/remote-turns.ts'
import { ReplyDecisions } from './chats/decisions/reply-decisions.ts'
import { Rewinds } from './chats/turns/rewinds.ts'
import { StoredCalls } from './chats/turns/stored-calls.ts'
import { ToolResults } from './chats/turns/tool-results.ts'
import { TurnService } from './chats/turns/turn-service.ts'
import { TurnsElsewhere } from './chats/turns/turns-elsewhere.ts'
import type { ApprovalNews } from './feeds/approval-news.ts'
import { pollNews } from './feeds/approval-news.ts'
import type { Feeds } from './feeds/feeds.ts'
import type { Operations } from './operations/operations.ts'
import type { BridgeLimits } from './limits.ts'
import type { AnyBridgeOptions } from './options.ts'
import { toObservers } from './observers.ts'

/** The interval at which the audit record is read while a client or a live call waits for changes by other processes. */
const NEWS_MS = 250

export interface ChatPartsOptions {
  readonly limits: BridgeLimits
  readonly backend: LazyBackend
  readonly events: ChatEvents
  readonly feeds: Feeds
  readonly news: ApprovalNews
  readonly operations: Operations
}

/** The parts that run the turns and live sessions of chats, in this process and together with others. */
export interface ChatParts {
  readonly chats: ChatService
  readonly turns: TurnRegistry
  readonly turnService: TurnService
  readonly calls: StoredCalls
  readonly toolResults: ToolResults
  readonly decisions: ApprovalDecisions
  /** Turns that wait for the answer to an MCP server. Undefined without the option `elicitation`. */
  readonly asking: AskingTurns | undefined
  /** The live sessions. Undefined without the option `live`. */
  readonly runs: LiveRuns | undefined
  readonly live: LiveSender | undefined
  readonly elsewhere: TurnsElsewhere
  readonly remoteTurns: RemoteTurns
  readonly resume: Resume
  /** Starts to work with other processes. */
  readonly start: (backend: Backend) => void
  /** Stops to read what other processes do. */
  readonly stopReading: () => Promise<void>
}

/**
 * Creates the parts that run chats. They call each other: where a part is created before one that it calls, it gets a function that
 * returns it.
 */
export function openChats(options: AnyBridgeOptions, parts: ChatPartsOptions): ChatParts {
  const { limits, backend, events, feeds, news, operations } = parts
  const { onError, onChunk } = toObservers(options)
  const { exposeState = () => false } = options
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
    isLive: (approval) => owners.holds(approval),
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
  const { context } = options
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
  const newsPoll = pollNews({
    backend,
    news,
    intervalMs: newsMs,
    isAwaited: () => feeds.watched || runs?.asks === true || runs?.listened === true,
    onError,
  })
  return {
    chats,
    turns,
    turnService,
    calls,
    toolResults,
    decisions,
    asking,
    runs,
    live,
    elsewhere,
    remoteTurns,
    resume,
    start: ({ ledger, sessions, store }) => {
      elsewhere.start(store, { ledger, sessions })
      opened = new LiveLeases({ ledger, store, ask: elsewhere.ask, onError })
    },
    stopReading: async () => {
      owners.close()
      remoteTurns.close()
      await newsPoll.close()
    },
  }
}

function openTurns(
  options: AnyBridgeOptions,
  parts: Pick<ChatPartsOptions, 'limits' | 'backend' | 'events'> & {
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
 * Resumes the turn of a decided or ended approval in the process that runs its call. `isNew` says that the approval was decided just
 * now. Never rejects.
 */
type Resume = (approval: Approval, isNew?: boolean) => Promise<void>

function createResume({ backend, runs, decidedTurns, owners, onError }: ResumeParts): Resume {
  return async (approval, isNew = false) => {
    try {
      // The call that asked continues by itself. If it cannot, nothing resumes.
      if (isElicitation(approval)) return await endElicitation(await backend.get(), approval)
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
