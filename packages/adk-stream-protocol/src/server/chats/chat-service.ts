import type { Approval } from '../../approvals/approval.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { Responses, OutputResponse } from '../../protocol/read-responses.ts'
import type {
  MessageRequest,
  ResponsesRequest,
  StreamRequest,
} from '../../protocol/stream-request.ts'
import { readTurnPosition } from '../../protocol/turn-position.ts'
import type { UntilMet } from '../../turns/chat-events.ts'
import type { Turn } from '../../turns/turn.ts'
import type { ReadFrom } from '../../turns/turn-log.ts'
import { type TurnRegistry, RepeatedMessageError, keyOf } from '../../turns/turn-registry.ts'
import type { LazyBackend } from './backend.ts'
import { asClientTool } from '../../calls/client-tool.ts'
import { toAppChat } from './backend.ts'
import { readAfterAnswer, readUntilQuestion } from './turns/asking-turns.ts'
import type { ApprovalDecisions, Continuation } from './decisions/approval-decisions.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { StoredNews } from '../feeds/stored-news.ts'
import type { LiveSender } from './live-sender.ts'
import type { LiveOwners } from './live-owners.ts'
import type { LiveRuns } from './live-runs.ts'
import { toAnswer } from './turns/question-answers.ts'
import { isApproved } from './decisions/show-decisions.ts'
import type { ReadDecision } from './decisions/message-decisions.ts'
import { readTyped } from './decisions/message-decisions.ts'
import type { ContextOptions } from './request-context.ts'
import { toSessionState } from './request-context.ts'
import type { OutcomeReader } from './turns/outcome-reader.ts'
import { findRemoved, rewindChat } from './turns/rewinds.ts'
import { findStoredCall } from './host/stored-calls.ts'
import { refuseForeignOutput } from './turns/turn-responses.ts'
import type { TurnService } from './turns/turn-service.ts'
import { LiveCallError } from './turns/turn-service.ts'
import { RunningCallError } from './turns/turn-responses.ts'
import type { ChatRef } from '../../shared/chat-ref.ts'

/** A turn that a client reads, and the position from which it reads. */
export interface OpenedTurn {
  readonly turn: Turn
  readonly from: ReadFrom
}

export interface ChatServiceParts {
  readonly backend: LazyBackend
  readonly turns: TurnRegistry
  readonly turnService: TurnService
  /** The option `whenShortened`. */
  readonly whenShortened: 'keep' | 'rewind'
  readonly decisions: ApprovalDecisions
  readonly readDecision: ReadDecision
  /** Resumes the turn of an approval that was just decided, without a reader. */
  readonly resume: (approval: Approval) => void
  /** The option `context`. */
  readonly context: ContextOptions | undefined
  /** The live sessions. Undefined without the option `live`. */
  readonly runs: LiveRuns | undefined
  readonly live: Pick<LiveSender, 'whenOpened' | 'isOpening'> | undefined
  readonly owners: LiveOwners
  readonly outcomes: Pick<OutcomeReader, 'read'>
  readonly storedNews: Pick<StoredNews, 'noteRead'>
  readonly untilMet: UntilMet
}

export interface SendOptions {
  /** Sends a new message to the live session of its chat. Default: it starts a run of the agent. */
  readonly live?: LiveSender | undefined
  /** Called when the decisions of the request are recorded. The rest may wait for the previous turn. */
  readonly onDecided?: (() => void) | undefined
}

/** What clients do with a chat, over HTTP and over sockets, in turns of the agent and in live sessions. */
export class ChatService {
  readonly #parts: ChatServiceParts
  /** The messages that requests of this process continue at the moment. */
  readonly #continued = new Map<symbol, { readonly chat: ChatRef; readonly messageId: string }>()

  constructor(parts: ChatServiceParts) {
    this.#parts = parts
  }

  /** Starts a turn for a new message, or resumes one with responses. */
  async send(
    principal: Principal,
    request: StreamRequest,
    { live, onDecided }: SendOptions = {},
  ): Promise<OpenedTurn> {
    const chat = { principalId: principal.id, chatId: request.chatId }
    if (request.type === 'message') {
      const turn = await (live
        ? this.#sendLive(live, { principal, chat, request, onDecided })
        : this.#start({ principal, chat, request, onDecided }))
      return { turn, from: 'start' }
    }
    await this.#parts.decisions.decideEarlier(principal, chat, request.earlier)
    return this.submitResponses(principal, request, onDecided)
  }

  /** Whether a message may decide an approval. */
  mayDecide(message: MessageRequest['message']): boolean {
    return readTyped(this.#parts.readDecision, message) !== undefined
  }

  async #sendLive(live: LiveSender, message: SentMessage): Promise<Turn> {
    const { principal, chat, request, onDecided } = message
    // A new message and the decisions of other frames do not wait for each other.
    onDecided?.()
    return live.send(principal, chat, request)
  }

  async #start({ principal, chat, request, onDecided }: SentMessage): Promise<Turn> {
    const { decisions, turnService, turns, context, readDecision, resume } = this.#parts
    // RQ121: all checks run before the request changes anything.
    const backend = await this.#parts.backend.get()
    const agent = await backend.agents.choose(principal, toAppChat(backend, chat), request)
    const { chatId } = chat
    const state = await toSessionState(context, { principal, chatId }, request.context)
    await decisions.decideEarlier(principal, chat, request.earlier)
    onDecided?.()
    const isRewound = this.#parts.whenShortened === 'rewind'
    const removed = isRewound ? await findRemoved(backend, chat, request) : undefined
    if (removed !== undefined) await rewindChat(backend, turns, { chat, userMessageId: removed })
    const decision = request.replaces ? undefined : readTyped(readDecision, request.message)
    const decide = async (): Promise<Approval | undefined> => {
      await decision?.check(principal, chat, request)
      const { openApprovals } = request
      return decision?.decide(principal, chat, { isInReach, openApprovals })
    }
    const reply = decision && { decide, resume }
    try {
      return await turnService.start(chat, request, { state, agent, reply })
    } catch (thrown) {
      if (thrown instanceof RepeatedMessageError) return this.#readReply(chat, thrown.messageId)
      throw thrown
    }
  }

  /** TU901: returns the reply to a message that was sent before: the running turn, or the stored message. */
  async #readReply(chat: ChatRef, messageId: string): Promise<Turn> {
    const running = await this.resume(chat)
    return running?.turn.messageId === messageId
      ? running.turn
      : this.#parts.turnService.replay(chat, messageId)
  }

  /** Resumes a message with responses: in its live session, or with a run of the agent. */
  async submitResponses(
    principal: Principal,
    request: ResponsesRequest,
    onDecided?: () => void,
  ): Promise<OpenedTurn> {
    const { runs, outcomes } = this.#parts
    const chat = { principalId: principal.id, chatId: request.chatId }
    const isResolved = request.results.length + request.outputs.length === 0
    const responses = isResolved ? request : await this.#resolve(chat, request)
    const recorded = await this.#record(principal, chat, { responses, onDecided })
    const { messageId, seen, votes, taken } = recorded.decided
    const from: ReadFrom = seen === undefined ? 'pause' : { after: seen }
    if (votes) {
      // The client has the output of a confirmation call, which cannot be asked for again.
      if (request.results.length > 0)
        throw new ProtocolError('approval-voted', { message: VOTE_RECORDED })
      const turn = await outcomes.read(chat, { messageId, seen, running: taken, asked: votes })
      return { turn, from }
    }
    if (recorded.live) return { turn: recorded.live, from }
    const continued = await this.#readAfterQuestion(chat, recorded.decided)
    if (continued) return continued
    const continuing = Symbol('request')
    this.#continued.set(continuing, { chat, messageId })
    const end = (): unknown => this.#continued.delete(continuing)
    try {
      const opened = await this.#resumeTurn(chat, recorded)
      void opened.turn.settled.then(end)
      return opened
    } catch (thrown) {
      end()
      if (thrown instanceof RunningCallError) {
        const running = thrown.approvals
        return { turn: await outcomes.read(chat, { messageId, seen, running }), from }
      }
      // A live session has taken the call meanwhile.
      const taker = thrown instanceof LiveCallError ? runs?.find(chat) : undefined
      const turn = await taker?.messages.turnOf(messageId)
      if (!turn) throw thrown
      return { turn, from }
    }
  }

  /** Whether a request of this process continues a message, and reads its turn wherever it runs. */
  isContinued(chat: ChatRef, messageId: string): boolean {
    const key = keyOf(chat)
    return [...this.#continued.values()].some(
      (continued) => continued.messageId === messageId && keyOf(continued.chat) === key,
    )
  }

  /** Records responses. Gives those for calls of the live session to the session. */
  async #record(
    principal: Principal,
    chat: ChatRef,
    { responses, onDecided }: { responses: Responses; onDecided: (() => void) | undefined },
  ): Promise<RecordedResponses> {
    const { decisions, runs } = this.#parts
    const run = runs?.find(chat)
    const record = async () => {
      const decided = await decisions.decideAll(principal, chat, responses)
      const { messageId, taken } = decided
      onDecided?.()
      const stored: Promise<boolean>[] = []
      const outputs = responses.outputs.filter((output) => {
        const submitted = run?.calls?.submitOutput(output)
        if (submitted?.isTaken) stored.push(submitted.isStored)
        return submitted?.isTaken !== true
      })
      // Clients send the results of all calls of a message, including calls that no longer wait in the live session.
      const isNew = taken.length > 0 || stored.length > 0
      const isRead = isNew || run?.messages.isStreaming(messageId) === true
      // Not awaited: the turn may start only after others have ended, which `keepOpen` prevents.
      const opening = isRead ? run?.messages.turnOf(messageId) : undefined
      return { decided, outputs, stored, opening }
    }
    const recorded = await (run ? run.messages.keepOpen(record) : record())
    const { decided, outputs, opening } = recorded
    if ((await Promise.all(recorded.stored)).includes(false)) throw NOT_STORED
    return { decided, outputs, live: await opening }
  }

  /** Returns the turn that continues a message with recorded responses: of this process, or of the one that has the live session. */
  async #resumeTurn(chat: ChatRef, { decided, outputs }: RecordedResponses): Promise<OpenedTurn> {
    const { decisions, turnService } = this.#parts
    const { messageId, seen, taken } = decided
    if (decided.turn) return { turn: await decided.turn, from: 'pause' }
    const { kinds } = await this.#parts.backend.get()
    const left = await this.#leaveToOwners(chat, {
      messageId,
      taken: taken.filter((approval) => !kinds.isAskedDuringCall(approval)),
      outputs,
    })
    const followed = await left.follow()
    if (followed) return { turn: followed, from: seen === undefined ? 'pause' : { after: seen } }
    const [approval] = left.own
    const turn = await turnService.resume(chat, messageId, {
      outputs: left.outputs,
      ...(seen !== undefined && { seen }),
      // ADK runs several calls one after the other, in its own order.
      ...(approval && taken.length === 1 && { approval }),
      refuse: () => decisions.refuseOutputs(chat, left.outputs),
    })
    return { turn, from: 'pause' }
  }

  /**
   * Leaves responses to the live session of another process. Returns those for this process, and a function that returns the turn of
   * the other process, to be read here. If there is none, it waits until the conversation shows the outcome.
   */
  async #leaveToOwners(
    chat: ChatRef,
    { messageId, taken, outputs }: LiveResponses,
  ): Promise<OwnResponses> {
    const { backend, owners, storedNews, untilMet } = this.#parts
    const own: Approval[] = []
    const kept: OutputResponse[] = []
    const key = toAppChat(await backend.get(), chat)
    const left: Approval[] = []
    const submitted: OutputResponse[] = []
    for (const approval of taken) {
      // Before the owner learns of it: its outcome may be stored before the owner has answered.
      storedNews.noteRead(approval)
      if (await owners.leave(approval)) left.push(approval)
      else own.push(approval)
    }
    for (const output of outputs) {
      if (await owners.submitOutput(chat, output)) submitted.push(output)
      else kept.push(output)
    }
    const follow = async (): Promise<Turn | undefined> => {
      if (left.length + submitted.length === 0) return undefined
      let turn: Turn | undefined
      const isReadable = async (): Promise<boolean> => {
        turn = own.length === 0 ? await this.#readElsewhere(chat, messageId) : undefined
        return turn !== undefined
      }
      if (await isReadable()) return turn
      for (const output of submitted) {
        const { toolCallId } = output
        await owners.untilStored({ chat: key, messageId, toolCallId }, output)
      }
      const isShown = async () => (await isReadable()) || owners.areReported(left)
      await untilMet(chat, isShown, { running: left })
      return turn
    }
    return { own, outputs: kept, follow }
  }

  /** Returns the turn that continues after the answer to a running call. Throws if the chat waits for another answer. */
  async #readAfterQuestion(
    chat: ChatRef,
    { messageId, seen, taken, turn }: Continuation,
  ): Promise<OpenedTurn | undefined> {
    const { backend, resume } = this.#parts
    const { kinds } = await backend.get()
    if (kinds.askedDuringCalls.length === 0 || turn) return undefined
    const answered = taken.find((approval) => kinds.isAskedDuringCall(approval))
    const continued = answered
      ? await readAfterAnswer(this.#parts, chat, answered)
      : await readUntilQuestion(this.#parts, chat, { messageId, seen })
    if (continued === undefined) return undefined
    // Their turns resume when this one has ended.
    for (const approval of taken) if (!kinds.isAskedDuringCall(approval)) resume(approval)
    if (continued !== 'waits') return continued
    throw new ProtocolError('turn-running', {
      message:
        'The chat waits for the answer to a question. What you sent is recorded. Answer or decline the question.',
    })
  }

  /** Returns the turn that another process runs for a message. */
  async #readElsewhere(chat: ChatRef, messageId: string): Promise<Turn | undefined> {
    const turn = await this.#parts.turns.others.open(chat)
    return turn?.messageId === messageId ? turn : undefined
  }

  /** Sorts the responses into decisions and outputs, and finds their message. */
  async #resolve(chat: ChatRef, request: ResponsesRequest): Promise<Responses> {
    const { decisions, backend } = this.#parts
    const responses = await decisions.resolve(chat, request)
    const [output] = responses.outputs
    if (responses.messageId !== undefined || !output) return responses
    const found = await findStoredCall(await backend.get(), chat, output.toolCallId)
    return { ...responses, messageId: found?.messageId }
  }

  /**
   * Opens the running turn of a chat: from its start, or after a position of a client. Returns undefined if there is none that can be read
   * from there. Waits for a turn that is being opened.
   */
  async resume(chat: ChatRef, after?: string): Promise<OpenedTurn | undefined> {
    const { backend, turns, live } = this.#parts
    const position = after === undefined ? undefined : readTurnPosition(after)
    if (after !== undefined && !position) return undefined
    await live?.whenOpened(chat)
    let turn = turns.running(chat)
    if (!turn || !(await this.#holds(chat))) {
      await backend.get()
      turn = await turns.others.open(chat)
    }
    if (!turn?.log.replayable) return undefined
    if (!position) return { turn: await this.#omitApproved(turn), from: 'start' }
    const from = turn.findPosition(position)
    return from && { turn, from }
  }

  /**
   * Returns what a turn of a chat is writing, in any process. While the turn of a live message is being opened, its user message may be
   * stored already, and the message of the reply is not known.
   */
  async findRunning(chat: ChatRef): Promise<{ readonly messageId?: string } | undefined> {
    const { turns, live } = this.#parts
    const { messageId } = turns.running(chat) ?? {}
    if (messageId !== undefined && (await this.#holds(chat))) return { messageId }
    const other = await turns.others.messageOf(chat)
    if (other !== undefined) return { messageId: other }
    return live?.isOpening(chat) === true ? {} : undefined
  }

  /** CV798: leaves out the requests for calls that were approved while the turn ran, and that the turn has not reported yet. */
  async #omitApproved(turn: Turn): Promise<Turn> {
    for (const approvalId of turn.log.requests) {
      const { ledger } = await this.#parts.backend.get()
      // Without the store, the turn can still be read.
      const approval = await ledger.get(approvalId).catch(() => undefined)
      if (approval && isApproved(approval)) turn.log.supersedeRequest(approvalId)
    }
    return turn
  }

  /** RL555: whether another server has not taken the chat over. A server that was suspended notices the loss only when it writes. */
  async #holds(chat: ChatRef): Promise<boolean> {
    const backend = await this.#parts.backend.get()
    // Without the store, the turn can still be read.
    return backend.ledger.locks.stillHolds(toAppChat(backend, chat)).catch(() => true)
  }

  /** Stops the running turn of a chat, or of one message, in any process, and waits until it is settled. */
  async stop(chat: ChatRef, messageId?: string): Promise<void> {
    const { backend, turns, live } = this.#parts
    await backend.get()
    await live?.whenOpened(chat)
    await turns.stop(chat, messageId)
  }

  /** Submits the result of a tool that runs in a client, or the answer to a question. */
  async submitToolResult(
    principal: Principal,
    chat: ChatRef,
    output: OutputResponse,
  ): Promise<void> {
    const { runs, owners, decisions } = this.#parts
    const question = await decisions.findQuestion(chat, output.toolCallId)
    if (question) {
      await decisions.decide(principal, chat, toAnswer(question, output))
      return
    }
    // LV1581: the client sends the output again until it is stored.
    const submitted = runs?.find(chat)?.calls?.submitOutput(output)
    if ((await submitted?.isStored) && submitted?.isTaken) return
    if (await owners.submitOutput(chat, output)) await this.#untilStored(chat, output)
    else await this.#resumeWithOutput(chat, output)
  }

  /** Resolves when the process with the live session of a call has stored its output. */
  async #untilStored(chat: ChatRef, output: OutputResponse): Promise<void> {
    const { toolCallId } = output
    const backend = await this.#parts.backend.get()
    const found = await findStoredCall(backend, chat, toolCallId)
    if (found?.call.state !== 'waiting') return
    const { messageId } = found
    const call = { chat: toAppChat(backend, chat), messageId, toolCallId }
    if (!(await this.#parts.owners.untilStored(call, output))) throw NOT_STORED
  }

  /** Resumes a turn, without a reader, with the result of a client. Throws if no call waits for this result. */
  async #resumeWithOutput(chat: ChatRef, output: OutputResponse): Promise<void> {
    const { turnService } = this.#parts
    const backend = await this.#parts.backend.get()
    const found = await findStoredCall(backend, chat, output.toolCallId)
    const key = toAppChat(backend, chat)
    const tool = found && (await backend.findTool(key, found.call.toolName))
    const client = tool && asClientTool(tool)
    const isWaiting = found?.call.state === 'waiting'
    // BT3: only the application completes other long-running tools.
    if (found && !client && (isWaiting || tool?.isLongRunning))
      throw refuseForeignOutput(found.call)
    if (!isWaiting || !client)
      throw new ProtocolError('nothing-new', { message: 'No call waits for this output.' })
    await turnService.resume(chat, found.messageId, { outputs: [output], background: true })
  }
}

const NOT_STORED = new ProtocolError('unavailable', { retryAfterSeconds: 1 })

const VOTE_RECORDED = 'Your approval was recorded. Other people must approve this call too.'

/** A reply over HTTP does not decide an approval of a live session. */
const isInReach = ({ waitingWorker }: Approval): boolean => waitingWorker === undefined

/** The responses of a request, as they were recorded. */
interface RecordedResponses {
  readonly decided: Continuation
  /** The outputs that no live session of this process took. */
  readonly outputs: readonly OutputResponse[]
  /** The turn in which the live session continues. */
  readonly live: Turn | undefined
}

interface LiveResponses {
  readonly messageId: string
  readonly taken: readonly Approval[]
  readonly outputs: readonly OutputResponse[]
}

interface OwnResponses {
  readonly own: readonly Approval[]
  readonly outputs: readonly OutputResponse[]
  readonly follow: () => Promise<Turn | undefined>
}

interface SentMessage {
  readonly principal: Principal
  readonly chat: ChatRef
  readonly request: MessageRequest & StreamRequest
  readonly onDecided: (() => void) | undefined
}
