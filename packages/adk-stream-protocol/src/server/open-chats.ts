import type { Approval } from '../approvals/approval.ts'
import { ProtocolError } from '../protocol/errors.ts'
import type { TurnChange } from '../relay/relay.ts'
import { onRequest, STOP_CHAT, STOP_UNWATCHED } from '../relay/server-requests.ts'
import type { ChatRef } from '../shared/chat-ref.ts'
import { Listeners } from '../shared/collections.ts'
import type { ChatEvents } from '../turns/chat-events.ts'
import { TurnRegistry } from '../turns/turn-registry.ts'
import type { Turn } from '../turns/turn.ts'
import type { BridgeModules } from './open-modules.ts'
import type { Backend, LazyBackend } from './chats/backend.ts'
import type { ChatRuns } from './chats/chat-runs.ts'
import { ChatService } from './chats/chat-service.ts'
import { ApprovalDecisions } from './chats/decisions/approval-decisions.ts'
import { DecidedTurns } from './chats/decisions/decided-turns.ts'
import { OtherServers } from './chats/other-servers.ts'
import type { ModelCalls } from './chats/model-calls.ts'
import { endQuestion } from './chats/recovery/lost-questions.ts'
import { OutcomeReader } from './chats/turns/outcome-reader.ts'
import { createChatLocker } from './chats/turns/chat-locker.ts'
import type { DecidedCallRef } from './chats/host/stored-calls.ts'
import { TurnService, type TurnServiceOptions } from './chats/turns/turn-service.ts'
import type { RelayHandlers } from './chats/turns/relayed-turns.ts'
import { RelayedTurns } from './chats/turns/relayed-turns.ts'
import type { ApprovalChange, ApprovalNews, NewsPoll } from './feeds/approval-news.ts'
import { pollNews } from './feeds/approval-news.ts'
import type { Feeds } from './feeds/feeds.ts'
import { StoredNews } from './feeds/stored-news.ts'
import type { TurnInfo } from './settings/observers.ts'
import type { Operations } from './operations/operations.ts'
import type { BridgeSettings } from './options.ts'
import type { OpenHandlers } from './sockets/connection.ts'

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
  readonly changes: BackendChanges
}

/** What the backend reports to the parts that are created after it. */
export interface BackendChanges {
  /** The backend is open. */
  readonly opened: Listeners<[backend: Backend]>
  /** This process has changed an approval. */
  readonly approval: Listeners<[approval: Approval]>
  /** Another process has changed an approval. */
  readonly approvalElsewhere: Listeners<[change: ApprovalChange]>
  /** An event of a chat was stored or removed. */
  readonly written: Listeners<[chat: ChatRef]>
  /** The result of a decided call could not be stored at the end of its run. */
  readonly left: Listeners<[call: DecidedCallRef, error: unknown]>
}

/** The parts that run the turns of chats, and runs that stay open, in this process and together with others. */
export interface ChatParts {
  readonly chats: ChatService
  readonly turns: TurnRegistry
  readonly turnService: TurnService
  readonly decisions: ApprovalDecisions
  readonly decidedTurns: DecidedTurns
  readonly runs: ChatRuns
  readonly openHandlers: OpenHandlers
  /** Clients that wait for calls whose turns have ended. */
  readonly outcomes: OutcomeReader
  readonly elsewhere: RelayedTurns
  readonly newsPoll: NewsPoll
  readonly storedNews: StoredNews
  readonly resume: Resume
  /** Starts to work with other processes. */
  readonly start: (backend: Pick<Backend, 'store' | 'ledger' | 'sessions'>) => void
}

/** Creates the parts that run chats. */
export function openChats(settings: BridgeSettings, shared: SharedParts): ChatParts {
  const { backend, events, news, modules } = shared
  const { limits, context, whenShortened = 'keep', services, onError } = settings
  const reports = createReports()

  const elsewhere = new RelayedTurns({ limits, onError })
  const servers = new OtherServers({ backend, ask: () => elsewhere.ask })
  const turns = openTurns(settings, shared, { elsewhere, reports })
  const isLocked = async (token: string) => (await backend.get()).ledger.locks.has(token)
  servers.handle(
    onRequest(
      STOP_CHAT,
      async ({ chat, token, messageId }) =>
        (await isLocked(token)) && turns.stopHere(chat, messageId),
    ),
    onRequest(STOP_UNWATCHED, async ({ chat, token, userMessageId }) => {
      await elsewhere.readWatched()
      return (await isLocked(token)) && turns.stopUnwatched(chat, userMessageId)
    }),
  )
  // A turn asks before it resumes, and open runs stream their messages in turns.
  const openRuns: TurnServiceOptions['runs'] = {
    continues: (approval) => runs.continues(approval),
    leave: (chat) => runs.leave(chat),
    takeOutput: (chat, output) => runs.takeOutput(chat, output),
    whileNone: (chat, work) => runs.whileNone(chat, work),
    hasRunningCalls: (chat, messageId) => runs.hasRunningCalls(chat, messageId),
  }
  const turnService = openTurnService(settings, shared, { turns, reports, runs: openRuns })
  const onRecovered = ({ chat }: Approval, turn: Turn): void => reports.recovered.call(chat, turn)
  const decidedTurns = new DecidedTurns({ backend, turnService, onRecovered, onError })
  const { runs, openHandlers } = modules.openRuns({
    backend,
    limits,
    services,
    policy: settings.approvals,
    exposeErrors: settings.exposeToolErrors,
    turnService,
    servers,
    otherTurns: elsewhere,
    events,
    untilMet: (...met) => storedNews.untilMet(...met),
    noteRead: (approval) => storedNews.noteRead(approval),
    onDecidedElsewhere: (approval) => news.changed(approval, { elsewhere: true }),
    onLateResults: (message) => reports.changedLater.call(message),
    onLeft: (call, error) => decidedTurns.noteFailure(call, error),
    onError,
  })
  const showAgain = createShowAgain({ runs, turns, turnService, onError })
  reports.changedLater.add(showAgain)
  reports.recovered.add((chat, turn) => runs.show(chat, turn))
  reports.resumed.add((approval, turn) => decidedTurns.finish(approval, turn))

  const intervalMs = Math.min(limits.sweepMs, NEWS_MS)
  const isAwaited = (): boolean => isWatched(events, runs) || runs.asks
  const newsPoll = pollNews({ backend, news, intervalMs, isAwaited, onError })
  const storedNews = new StoredNews({
    backend,
    events,
    turns,
    newsPoll,
    hasRelay: () => elsewhere.hasRelay,
    hasListeners: (chat) => runs.hasListeners(chat),
    // EV100: without a relay, the turn itself cannot be read here.
    onEndStored: ({ chat, messageId }) => {
      if (!elsewhere.hasRelay) showAgain({ ...chat, messageId })
    },
    intervalMs,
    onError,
  })
  reports.turnChanged.add((chat) => storedNews.turnChanged(chat))
  const resume = createResume({ backend, runs, decidedTurns, onError })
  // The request does not wait for the turn. If the turn fails, the next sweep resumes it.
  const resumeDecided = (approval: Approval): void => void resume(approval, true)
  const decisions = new ApprovalDecisions({
    backend,
    limits,
    decidedTurns,
    runs,
    resume: resumeDecided,
  })
  const readDecision = modules.readDecisions({ backend, decisions })
  const outcomes = openOutcomes(settings, shared, { turns, runs, storedNews })
  const sending = { backend, turns, turnService, decisions, readDecision, context, whenShortened }
  const { untilMet } = storedNews
  const chats = new ChatService({ ...sending, resume: resumeDecided, runs, outcomes, untilMet })
  const opened = { chats, turns, turnService, decisions, decidedTurns, runs }
  const parts = { ...opened, newsPoll, storedNews, outcomes, elsewhere, resume }
  const handlers = createHandlers({ ...parts, servers, showAgain }, events, onError)
  return {
    ...parts,
    openHandlers: openHandlers({ ...sending, chats, limits }),
    start: ({ store, ledger, sessions }) => elsewhere.start(store, { ledger, sessions }, handlers),
  }
}

/** What parts report to others that are created after them. */
interface Reports {
  /** A turn of a chat has started or ended in this process. */
  readonly turnChanged: Listeners<[chat: ChatRef]>
  /** A message has changed after the end of its turn. */
  readonly changedLater: Listeners<[message: TurnInfo]>
  /** The turn of an approval resumes after a failure. */
  readonly recovered: Listeners<[chat: ChatRef, turn: Turn]>
  /** The turn of a call resumes that ran on after its turn. */
  readonly resumed: Listeners<[approval: Approval, turn: Promise<Turn>]>
}

function createReports(): Reports {
  return {
    turnChanged: new Listeners(),
    changedLater: new Listeners(),
    recovered: new Listeners(),
    resumed: new Listeners(),
  }
}

/** The interval at which the audit record is read while a client or an open run waits for changes by other processes. */
const NEWS_MS = 250

/** Whether a client of this process receives changes of other processes. */
function isWatched(events: ChatEvents, runs: ChatRuns): boolean {
  return events.watched || runs.listened
}

interface HandlerParts extends Omit<ChatParts, 'start' | 'openHandlers'> {
  readonly servers: OtherServers
  /** Shows a stored message to clients that watch its chat on sockets. */
  readonly showAgain: (message: TurnInfo) => void
}

/** Returns what happens when other servers report something, or ask. */
function createHandlers(
  parts: HandlerParts,
  events: ChatEvents,
  onError: (error: unknown) => void,
): RelayHandlers {
  const { runs, turns, newsPoll, storedNews, servers } = parts
  return {
    isAwaited: () => isWatched(events, runs),
    onTurnChange: (change) => {
      reportTurn(change, events)
      if (change.ended) storedNews.changedElsewhere(change.chat)
      else showTurn(change, parts).catch(onError)
    },
    onApprovals: () => newsPoll.readNow(),
    handlers: servers.handlers,
    isAsked: () => runs.size > 0 || turns.busy,
  }
}

/** Reports a turn of another server to the feeds of this one. */
function reportTurn({ chat, messageId, turnId, ended }: TurnChange, events: ChatEvents): void {
  if (!ended) events.turnStarted(chat, { messageId, turn: turnId })
  events.chatChanged(chat)
}

/**
 * Shows a turn of another server to clients that watch the chat here, unless a request here reads it. It does not matter which server
 * has the open run of the chat: it may have moved before the turn was reported.
 */
async function showTurn(
  { chat, messageId }: TurnChange,
  { runs, chats, elsewhere, showAgain }: HandlerParts,
): Promise<void> {
  if (!runs.hasListeners(chat) || chats.isContinued(chat, messageId)) return
  const running = await elsewhere.open(chat)
  if (running?.messageId === messageId) runs.show(chat, running)
  // A short turn has ended by now.
  else showAgain({ ...chat, messageId })
}

function openTurns(
  settings: BridgeSettings,
  { backend, events }: SharedParts,
  { elsewhere, reports }: Pick<ChatParts, 'elsewhere'> & { readonly reports: Reports },
): TurnRegistry {
  return new TurnRegistry({
    ...settings.limits,
    disconnectGraceMs: settings.disconnectGraceMs ?? 0,
    whileRunning: settings.whileRunning ?? 'refuse',
    lockChat: createChatLocker(
      backend,
      (chat, userMessageId) => elsewhere.stopUnwatched(chat, userMessageId),
      settings.onError,
    ),
    others: elsewhere,
    onChange: (chat) => {
      events.chatChanged(chat)
      reports.turnChanged.call(chat)
    },
  })
}

interface TurnServiceNeeds extends Pick<ChatParts, 'turns'> {
  readonly reports: Reports
  readonly runs: TurnServiceOptions['runs']
}

function openTurnService(
  settings: BridgeSettings,
  shared: SharedParts,
  { turns, reports, runs }: TurnServiceNeeds,
): TurnService {
  const { backend, events, operations } = shared
  const { exposeState, onError, onChunk, whilePending = 'keep' } = settings
  return new TurnService(backend, turns, {
    exposeState,
    onError,
    onChunk,
    onTurn: ({ messageId, turn, ...chat }) => events.turnStarted(chat, { messageId, turn }),
    onLateResults: (message) => reports.changedLater.call(message),
    onResumed: (approval, turn) => reports.resumed.call(approval, turn),
    runs,
    onTurnEnd: (turn, outcome, isSpoken) => operations.turnEnded(turn, outcome, isSpoken),
    whilePending,
  })
}

/** Returns a function that shows a message again to clients that watch its chat on sockets. It has changed without a turn of this process. */
function createShowAgain({
  runs,
  turns,
  turnService,
  onError,
}: Pick<ChatParts, 'runs' | 'turns' | 'turnService'> & Pick<BridgeSettings, 'onError'>): (
  turn: TurnInfo,
) => void {
  return ({ messageId, ...chat }) => {
    // The end of the turn shows it.
    if (turns.running(chat)?.messageId === messageId || !runs.hasListeners(chat)) return
    turnService.replay(chat, messageId).then(
      (turn) => runs.show(chat, turn),
      (error: unknown) => {
        // The chat was deleted, or the server closes.
        if (!(error instanceof ProtocolError)) onError(error)
      },
    )
  }
}

function openOutcomes(
  { exposeState, limits, onError }: BridgeSettings,
  { backend }: SharedParts,
  { turns, runs, storedNews }: Pick<ChatParts, 'turns' | 'runs' | 'storedNews'>,
): OutcomeReader {
  return new OutcomeReader({
    backend,
    turns,
    untilMet: storedNews.untilMet,
    exposeState,
    maxTurnsPerPrincipal: limits.maxTurnsPerPrincipal,
    hasRunningCalls: (chat, messageId) => runs.hasRunningCalls(chat, messageId),
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
  readonly runs: ChatRuns
  readonly decidedTurns: DecidedTurns
  readonly onError: (error: unknown) => void
}

function createResume({ backend, runs, decidedTurns, onError }: ResumeParts): Resume {
  return async (approval, isNew = false) => {
    try {
      const opened = await backend.get()
      // The call that asked continues by itself. If it cannot, nothing resumes.
      if (opened.kinds.isAskedDuringCall(approval)) return await endQuestion(opened, approval)
      if (!(await runs.leaveCall(approval))) await decidedTurns.resumeAfterDecision(approval, isNew)
    } catch (error) {
      // AP825: a sweep tries again if the store has failed.
      decidedTurns.noteFailure(approval, error)
      onError(error)
    }
  }
}
