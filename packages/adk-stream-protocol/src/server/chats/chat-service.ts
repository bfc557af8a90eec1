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
import type { ChatRuns, RecordedResponses } from './chat-runs.ts'
import { toAnswer } from './turns/question-answers.ts'
import { isApproved } from './decisions/show-decisions.ts'
import type { ReadDecision } from './decisions/message-decisions.ts'
import { readTyped } from './decisions/message-decisions.ts'
import type { ContextOptions } from './request-context.ts'
import { toSessionState } from './request-context.ts'
import type { OutcomeReader } from './turns/outcome-reader.ts'
import { findRemoved } from './turns/rewinds.ts'
import { findStoredCall } from './host/stored-calls.ts'
import { refuseForeignOutput } from './turns/turn-responses.ts'
import type { TurnService } from './turns/turn-service.ts'
import { CallTakenError } from './turns/turn-service.ts'
import { RunningCallError } from './turns/turn-responses.ts'
import { defer } from '../../shared/async.ts'
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
  readonly runs: ChatRuns
  readonly outcomes: Pick<OutcomeReader, 'read'>
  readonly untilMet: UntilMet
}

export interface SendOptions {
  /** Sends a new message to the open run of its chat. Default: it starts a run of its own. */
  readonly toRun?: SendToRun | undefined
  /** Called when the decisions of the request are recorded. The rest may wait for the previous turn. */
  readonly onDecided?: (() => void) | undefined
}

/** Sends a message to the run that stays open in a chat. Returns the turn of the reply. */
export type SendToRun = (
  principal: Principal,
  chat: ChatRef,
  request: MessageRequest & StreamRequest,
) => Promise<Turn>

/** What clients do with a chat, over HTTP and over sockets, in turns of the agent and in runs that stay open. */
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
    { toRun, onDecided }: SendOptions = {},
  ): Promise<OpenedTurn> {
    const chat = { principalId: principal.id, chatId: request.chatId }
    if (request.type === 'message') {
      // A new message of an open run and the decisions of other frames do not wait for each other.
      if (toRun) onDecided?.()
      const turn = await (toRun
        ? toRun(principal, chat, request)
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

  async #start({ principal, chat, request, onDecided }: SentMessage): Promise<Turn> {
    const { decisions, turnService, context, readDecision, resume } = this.#parts
    // RQ121: all checks run before the request changes anything.
    const backend = await this.#parts.backend.get()
    const agent = await backend.agents.choose(principal, toAppChat(backend, chat), request)
    const { chatId } = chat
    const state = await toSessionState(context, { principal, chatId }, request.context)
    await decisions.decideEarlier(principal, chat, request.earlier)
    onDecided?.()
    const isRewound = this.#parts.whenShortened === 'rewind'
    const removed = isRewound ? await findRemoved(backend, chat, request) : undefined
    const decision = request.replaces ? undefined : readTyped(readDecision, request.message)
    const decide = async (): Promise<Approval | undefined> => {
      await decision?.check(principal, chat, request)
      const { openApprovals } = request
      return decision?.decide(principal, chat, { isInReach, openApprovals })
    }
    const reply = decision && { decide, resume }
    try {
      return await turnService.start(chat, request, { state, agent, removed, reply })
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

  /** Resumes a message with responses: in the open run of its chat, or with a run of its own. */
  async submitResponses(
    principal: Principal,
    request: ResponsesRequest,
    onDecided?: () => void,
  ): Promise<OpenedTurn> {
    const { runs, decisions, outcomes } = this.#parts
    const chat = { principalId: principal.id, chatId: request.chatId }
    const isResolved = request.results.length + request.outputs.length === 0
    const responses = isResolved ? request : await this.#resolve(chat, request)
    const recorded = await runs.respond(chat, responses.outputs, async () => {
      const decided = await decisions.decideAll(principal, chat, responses)
      onDecided?.()
      return decided
    })
    const { messageId, seen, votes, taken } = recorded.decided
    const from: ReadFrom = seen === undefined ? 'pause' : { after: seen }
    if (votes) {
      // The client has the output of a confirmation call, which cannot be asked for again.
      if (request.results.length > 0)
        throw new ProtocolError('approval-voted', { message: VOTE_RECORDED })
      const turn = await outcomes.read(chat, { messageId, seen, running: taken, asked: votes })
      return { turn, from }
    }
    if (recorded.turn) return { turn: recorded.turn, from }
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
      const isTaken = thrown instanceof CallTakenError
      const turn = isTaken ? await runs.turnOf(chat, messageId) : undefined
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

  /** Returns the turn that continues a message with recorded responses: of this process, or of the one that has its run. */
  async #resumeTurn(
    chat: ChatRef,
    { decided, outputs }: RecordedResponses<Continuation>,
  ): Promise<OpenedTurn> {
    const { runs, decisions, turnService } = this.#parts
    const { messageId, seen, taken } = decided
    if (decided.turn) return { turn: await decided.turn, from: 'pause' }
    const { kinds } = await this.#parts.backend.get()
    const left = await runs.leaveToOthers(chat, {
      messageId,
      taken: taken.filter((approval) => !kinds.isAskedDuringCall(approval)),
      outputs,
    })
    const followed = await left.follow()
    if (followed) return { turn: followed, from: seen === undefined ? 'pause' : { after: seen } }
    const [approval] = left.taken
    const turn = await turnService.resume(chat, messageId, {
      outputs: left.outputs,
      ...(seen !== undefined && { seen }),
      // ADK runs several calls one after the other, in its own order.
      ...(approval && taken.length === 1 && { approval }),
      refuse: () => decisions.refuseOutputs(chat, left.outputs),
    })
    return { turn, from: 'pause' }
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
    const { backend, turns, runs } = this.#parts
    const position = after === undefined ? undefined : readTurnPosition(after)
    if (after !== undefined && !position) return undefined
    await runs.whenOpened(chat)
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
   * Returns what a turn of a chat is writing, in any process. While the turn of a message is being opened, its user message may be
   * stored already, and the message of the reply is not known.
   */
  async findRunning(chat: ChatRef): Promise<{ readonly messageId?: string } | undefined> {
    const { turns, runs } = this.#parts
    const { messageId } = turns.running(chat) ?? {}
    if (messageId !== undefined && (await this.#holds(chat))) return { messageId }
    const other = await turns.others.messageOf(chat)
    if (other !== undefined) return { messageId: other }
    return runs.isOpening(chat) ? {} : undefined
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
    const { backend, turns, runs } = this.#parts
    await backend.get()
    await runs.whenOpened(chat)
    await turns.stop(chat, messageId)
  }

  /** Submits the result of a tool that runs in a client, or the answer to a question. */
  async submitToolResult(
    principal: Principal,
    chat: ChatRef,
    output: OutputResponse,
  ): Promise<void> {
    const { runs, decisions } = this.#parts
    const question = await decisions.findQuestion(chat, output.toolCallId)
    if (question) {
      await decisions.decide(principal, chat, toAnswer(question, output))
      return
    }
    if (!(await runs.takeOutput(chat, output))) await this.#resumeWithOutput(chat, output)
  }

  /**
   * Resumes a turn, without a reader, with the result of a client, and waits until the result is stored. Throws if no call waits for it, and
   * if the turn ends before: the client sends it again.
   */
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
    const stored = defer<true>()
    const turn = await turnService.resume(chat, found.messageId, {
      outputs: [output],
      background: true,
      onStored: () => stored.resolve(true),
    })
    const isStored = await Promise.race([stored.promise, turn.settled])
    if (isStored !== true) throw new ProtocolError('unavailable', { retryAfterSeconds: 1 })
  }
}

const VOTE_RECORDED = 'Your approval was recorded. Other people must approve this call too.'

/** A reply over HTTP does not decide an approval of an open run. */
const isInReach = ({ waitingWorker }: Approval): boolean => waitingWorker === undefined

interface SentMessage {
  readonly principal: Principal
  readonly chat: ChatRef
  readonly request: MessageRequest & StreamRequest
  readonly onDecided: (() => void) | undefined
}
