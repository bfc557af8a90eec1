import type { Approval } from '../approvals/approval.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { TurnChange } from '../relay/relay.ts'
import type { AppChatRef, ChatRef } from '../shared/chat-ref.ts'
import type { ChatEvents } from '../turns/chat-events.ts'
import { TurnRegistry } from '../turns/turn-registry.ts'
import type { Turn } from '../turns/turn.ts'
import type { BridgeModules } from './bridge-modules.ts'
import type { LazyBackend } from './chats/backend.ts'
import { ChatService } from './chats/chat-service.ts'
import { ApprovalDecisions } from './chats/decisions/approval-decisions.ts'
import { DecidedTurns } from './chats/decisions/decided-turns.ts'
import { createConversationStarter } from './chats/live-conversations.ts'
import { openLiveLeases } from './chats/live-leases.ts'
import { LiveOwners } from './chats/live-owners.ts'
import { LiveRuns } from './chats/live-runs.ts'
import type { LiveSender } from './chats/live-sender.ts'
import { answerWhenOpened, openLiveSender } from './chats/live-sender.ts'
import type { ModelCalls } from './chats/model-calls.ts'
import { endQuestion } from './chats/recovery/lost-questions.ts'
import { answerStopAsking, stopAskingElsewhere } from './chats/turns/asking-turns.ts'
import { CallOutcomes } from './chats/turns/call-outcomes.ts'
import { createChatLocker } from './chats/turns/chat-locker.ts'
import { readCallState } from './chats/host/stored-calls.ts'
import { TurnService } from './chats/turns/turn-service.ts'
import { TurnsElsewhere } from './chats/turns/turns-elsewhere.ts'
import type { ApprovalNews, NewsPoll } from './feeds/approval-news.ts'
import { pollNews } from './feeds/approval-news.ts'
import type { Feeds } from './feeds/feeds.ts'
import { StoredNews } from './feeds/stored-news.ts'
import type { TurnInfo } from './settings/observers.ts'
import type { Operations } from './operations/operations.ts'
import type { BridgeSettings } from './options.ts'

/** The parts of a bridge that its chats and its endpoints use. */
export interface SharedParts {
  readonly backend: LazyBackend
  readonly events: ChatEvents
  readonly feeds: Feeds
  readonly news: ApprovalNews
  readonly operations: Operations
  readonly modules: BridgeModules
  /** The recorder of model calls. Undefined without the option `recordModelCalls`. */
  readonly modelCalls: ModelCalls | undefined
}

/** The parts that run the turns and live sessions of chats, in this process and together with others. */
export interface ChatParts {
  readonly chats: ChatService
  readonly turns: TurnRegistry
  readonly turnService: TurnService
  readonly decisions: ApprovalDecisions
  readonly decidedTurns: DecidedTurns
  /** The live sessions. Undefined without the option `live`. */
  readonly runs: LiveRuns | undefined
  readonly live: LiveSender | undefined
  readonly owners: LiveOwners
  /** Clients that wait for calls whose turns have ended. */
  readonly outcomes: CallOutcomes
  readonly elsewhere: TurnsElsewhere
  readonly newsPoll: NewsPoll
  readonly storedNews: StoredNews
  readonly resume: Resume
}

/** Returns the parts of a bridge. The parts call each other: one that is created before another one finds it here when it runs. */
type GetParts = () => ChatParts

/** Creates the parts that run chats. */
export function openChats(settings: BridgeSettings, shared: SharedParts): ChatParts {
  const { backend, events, news } = shared
  const { limits, context, whenShortened = 'keep', onError } = settings
  const getParts: GetParts = () => parts

  const elsewhere = openElsewhere(settings, shared, getParts)
  const turns = openTurns(settings, shared, { elsewhere, getParts })
  const turnService = openTurnService(settings, shared, { turns, getParts })
  const decidedTurns = openDecidedTurns(settings, shared, { turnService, getParts })
  const running = { elsewhere, turnService, decidedTurns }
  const { runs, owners } = openLive(settings, shared, { ...running, getParts })

  const isLiveElsewhere = (chat: AppChatRef): Promise<boolean> => owners.isElsewhere(chat)
  const resume = createResume({ backend, runs, decidedTurns, owners, onError })
  // The request does not wait for the turn. If the turn fails, the next sweep resumes it.
  const resumeDecided = (approval: Approval): void => void resume(approval, true)
  const decisions = new ApprovalDecisions({
    backend,
    limits,
    decidedTurns,
    runs,
    isLiveElsewhere,
    resume: resumeDecided,
    onRepeated: (approval) => runs?.approvalChanged(approval),
  })
  const readDecision = shared.modules.readDecisions({ backend, decisions })
  const sending = {
    backend,
    turns,
    turnService,
    decisions,
    readDecision,
    context,
    whenShortened,
  }
  const live = runs && openLiveSender({ ...sending, runs, elsewhere })

  const intervalMs = Math.min(limits.sweepMs, NEWS_MS)
  const isAwaited = (): boolean => isWatched(events, runs) || runs?.asks === true
  const newsPoll = pollNews({ backend, news, intervalMs, isAwaited, onError })
  const showAgain = createShowAgain(settings, getParts)
  const storedNews = new StoredNews({
    backend,
    events,
    turns,
    hasRelay: () => elsewhere.hasRelay,
    hasListeners: (chat) => runs?.hasListeners(chat) === true,
    // EV100: without a relay, the turn itself cannot be read here.
    onEndStored: ({ chat, messageId }) => {
      if (!elsewhere.hasRelay) showAgain({ ...chat, messageId })
    },
    intervalMs,
    onError,
  })
  const outcomes = openOutcomes(settings, shared, { turns, runs, storedNews })
  const chats = new ChatService({
    ...sending,
    resume: resumeDecided,
    runs,
    live,
    owners,
    outcomes,
    storedNews,
    elsewhere,
  })
  const opened = { chats, turns, turnService, decisions, decidedTurns, runs, live }
  const reporting = { newsPoll, storedNews }
  const parts: ChatParts = { ...opened, ...reporting, owners, outcomes, elsewhere, resume }
  return parts
}

/** The interval at which the audit record is read while a client or a live call waits for changes by other processes. */
const NEWS_MS = 250

/** Whether a client of this process receives changes of other processes. */
function isWatched(events: ChatEvents, runs: LiveRuns | undefined): boolean {
  return events.watched || runs?.listened === true
}

function openElsewhere(
  { limits, onError }: BridgeSettings,
  shared: SharedParts,
  getParts: GetParts,
): TurnsElsewhere {
  const { events, operations } = shared
  return new TurnsElsewhere({
    limits,
    isAwaited: () => isWatched(events, getParts().runs),
    onTurnChange: (change) => {
      reportTurn(change, events)
      if (change.ended) getParts().storedNews.changedElsewhere(change.chat)
      else showTurn(change, getParts()).catch(onError)
    },
    onApprovals: () => getParts().newsPoll.readNow(),
    onWritten: (lagMs) => operations.relayWritten(lagMs),
    answer: async (kind, body) => {
      const { turns, live, owners } = getParts()
      return (
        (await answerStopAsking(turns, kind, body)) ??
        (await answerWhenOpened(live, kind, body)) ??
        owners.answer(kind, body)
      )
    },
    stopHere: (chat) => getParts().turns.stopHere(chat),
    isAsked: () => getParts().runs?.busy === true || getParts().turns.busy,
    onError,
  })
}

/** Reports a turn of another server to the feeds of this one. */
function reportTurn({ chat, messageId, turnId, ended }: TurnChange, events: ChatEvents): void {
  if (!ended) events.turnStarted(chat, { messageId, turn: turnId })
  events.chatChanged(chat)
}

/** Shows a turn of a live session of another server to clients that watch the session here, unless a request here reads it. */
async function showTurn(
  { chat, messageId }: TurnChange,
  { runs, chats, owners, elsewhere, turnService }: ChatParts,
): Promise<void> {
  if (runs?.hasListeners(chat) !== true || chats.isContinued(chat, messageId)) return
  if (!(await owners.isElsewhere(chat))) return
  const running = await elsewhere.open(chat)
  // A short turn has ended by now.
  const isRunning = running?.messageId === messageId
  runs.show(chat, isRunning ? running : await turnService.replay(chat, messageId))
}

function openTurns(
  settings: BridgeSettings,
  { backend, events }: SharedParts,
  { elsewhere, getParts }: Pick<ChatParts, 'elsewhere'> & { readonly getParts: GetParts },
): TurnRegistry {
  const stopIfUnwatched = async (chat: ChatRef): Promise<boolean | undefined> =>
    (await stopAskingElsewhere({ backend, elsewhere }, chat)) || elsewhere.stopIfUnwatched(chat)
  return new TurnRegistry({
    ...settings.limits,
    disconnectGraceMs: settings.disconnectGraceMs ?? 0,
    whileRunning: settings.whileRunning ?? 'refuse',
    lockChat: createChatLocker(backend, { stopIfUnwatched }, settings.onError),
    onLocked: (chat, turn) => elsewhere.publish(chat, turn),
    stopElsewhere: (chat) => elsewhere.stop(chat),
    onChange: (chat) => {
      events.chatChanged(chat)
      getParts().storedNews.turnChanged(chat)
    },
  })
}

function openTurnService(
  settings: BridgeSettings,
  shared: SharedParts,
  { turns, getParts }: Pick<ChatParts, 'turns'> & { readonly getParts: GetParts },
): TurnService {
  const { backend, events, operations } = shared
  const { exposeState, onError, onChunk, whilePending = 'keep' } = settings
  return new TurnService(backend, turns, {
    exposeState,
    onError,
    onChunk,
    onTurn: ({ messageId, turn, ...chat }) => events.turnStarted(chat, { messageId, turn }),
    onLateResults: createShowAgain(settings, getParts),
    isLive: (approval) => getParts().owners.holds(approval),
    onTurnEnd: (turn, outcome, isLive) => operations.turnEnded(turn, outcome, isLive),
    whilePending,
  })
}

/** Returns a function that shows a message again to clients that watch its chat on sockets. It has changed without a turn of this process. */
function createShowAgain(
  { onError }: BridgeSettings,
  getParts: GetParts,
): (turn: TurnInfo) => void {
  return ({ messageId, ...chat }) => {
    const { runs, turns, turnService } = getParts()
    // The end of the turn shows it.
    if (turns.running(chat)?.messageId === messageId || runs?.hasListeners(chat) !== true) return
    turnService.replay(chat, messageId).then(
      (turn) => runs.show(chat, turn),
      (error: unknown) => {
        // The chat was deleted, or the server closes.
        if (!(error instanceof ProtocolError)) onError(error)
      },
    )
  }
}

function openDecidedTurns(
  { onError }: BridgeSettings,
  { backend }: SharedParts,
  { turnService, getParts }: Pick<ChatParts, 'turnService'> & { readonly getParts: GetParts },
): DecidedTurns {
  const onRecovered = ({ chat }: Approval, turn: Turn): void => getParts().runs?.show(chat, turn)
  return new DecidedTurns({ backend, turnService, onRecovered, onError })
}

interface LiveNeeds extends Pick<ChatParts, 'elsewhere' | 'turnService' | 'decidedTurns'> {
  readonly getParts: GetParts
}

/** Creates the live sessions of this process, and the access to those of others. */
function openLive(
  settings: BridgeSettings,
  shared: SharedParts,
  { elsewhere, turnService, decidedTurns, getParts }: LiveNeeds,
): Pick<ChatParts, 'runs' | 'owners'> {
  const { backend, news } = shared
  const { live, agents, approvals: policy, exposeToolErrors, services, limits, onError } = settings
  const ask = (): TurnsElsewhere['ask'] => elsewhere.ask
  const leases = openLiveLeases({ backend, ask, onError })
  const { graceMs = 60_000 } = live ?? {}
  const runs =
    live &&
    new LiveRuns({
      backend,
      turnService,
      leases,
      prepareConversation: createConversationStarter({
        ...live,
        backend,
        turnService,
        graceMs,
        agents,
        policy,
        exposeErrors: exposeToolErrors,
        services,
        onLateResults: createShowAgain(settings, getParts),
        onLeft: (call, error) => decidedTurns.noteFailure(call, error),
        onError,
      }),
      maxPerPrincipal: limits.maxLiveChatsPerPrincipal,
      graceMs,
      onError,
    })
  const owners = new LiveOwners({
    backend,
    callState: async (call) => readCallState(await backend.get(), call),
    runs,
    leases,
    ask,
    onDecided: (approval) => news.changed(approval, { elsewhere: true }),
  })
  return { runs, owners }
}

function openOutcomes(
  { exposeState, limits, onError }: BridgeSettings,
  { backend, events }: SharedParts,
  { turns, runs, storedNews }: Pick<ChatParts, 'turns' | 'runs' | 'storedNews'>,
): CallOutcomes {
  return new CallOutcomes({
    backend,
    turns,
    events,
    exposeState,
    maxTurnsPerPrincipal: limits.maxTurnsPerPrincipal,
    hasRunningCalls: (chat, messageId) =>
      runs?.find(chat)?.messages.hasRunningCalls(messageId) === true,
    changedElsewhere: (chat, approval) => storedNews.changedElsewhere(chat, approval),
    onError,
  })
}

/**
 * Resumes the turn of a decided or ended approval in the process that runs its call. `isNew` says that the approval was decided just
 * now. Never rejects.
 */
type Resume = (approval: Approval, isNew?: boolean) => Promise<void>

interface ResumeParts {
  readonly backend: LazyBackend
  readonly runs: LiveRuns | undefined
  readonly decidedTurns: DecidedTurns
  readonly owners: LiveOwners
  readonly onError: (error: unknown) => void
}

function createResume({ backend, runs, decidedTurns, owners, onError }: ResumeParts): Resume {
  return async (approval, isNew = false) => {
    try {
      const opened = await backend.get()
      // The call that asked continues by itself. If it cannot, nothing resumes.
      if (opened.kinds.isAskedDuringCall(approval)) return await endQuestion(opened, approval)
      // A live session, here or in another process, runs its own calls.
      if (runs?.holds(approval)) runs.approvalChanged(approval)
      else if (!(await owners.leave(approval)))
        await decidedTurns.resumeAfterDecision(approval, isNew)
    } catch (error) {
      onError(error)
    }
  }
}
