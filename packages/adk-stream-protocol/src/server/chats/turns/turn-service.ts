import { randomUUID } from 'node:crypto'
import { setImmediate, setTimeout as delay } from 'node:timers/promises'

import type { Event, Session } from '@google/adk'

import { toRepliedNote } from '../../../agent/call-responses.ts'
import { positionOf } from '../../../agent/history/position.ts'
import type { ReplayedTurn } from '../../../agent/history/replay-turn.ts'
import {
  closeAtPause,
  findResumeIndex,
  finishStored,
  replayTurn,
} from '../../../agent/history/replay-turn.ts'
import { findReplyTo, hasReply } from '../../../agent/history/stored-turns.ts'
import { finishTranslation } from '../../../agent/translate/translate-event.ts'
import { toUserContent } from '../../../agent/user-message.ts'
import type { Approval, Refusal } from '../../../approvals/approval.ts'
import { isRefusal } from '../../../approvals/approval.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { OutputResponse } from '../../../protocol/read-responses.ts'
import type { MessageRequest } from '../../../protocol/stream-request.ts'
import type { AsyncQueue } from '../../../shared/async.ts'
import { defer } from '../../../shared/async.ts'
import type { ChatRef } from '../../../shared/chat-ref.ts'
import type { TurnJob, TurnRegistry } from '../../../turns/turn-registry.ts'
import { type Turn, isClosing } from '../../../turns/turn.ts'
import { readError } from '../../../store/read-error.ts'
import type { Backend, LazyBackend } from '../backend.ts'
import { toAppChat } from '../backend.ts'
import type { ChosenAgent } from '../chat-agents.ts'
import type { ChatRuns } from '../chat-runs.ts'
import type { Rewound } from '../chat-sessions.ts'
import type { UnsentReplacement } from '../host/agent-host.ts'
import { readCallState } from '../host/stored-calls.ts'
import type { StateDelta } from '../request-context.ts'
import { afterCancelling, cancelPending } from './approval-endings.ts'
import { findOpenQuestion } from './question-answers.ts'
import { checkRewind, endingRuns, OpenRunError, rewindLocked, toRemoval } from './rewinds.ts'
import type { PendingDecision, TurnResponses } from './turn-responses.ts'
import { checkResponses, findContinuing, runResponses } from './turn-responses.ts'
import type { RunInTurn, TurnRunsOptions } from './turn-runs.ts'
import { prefillTurn, replayStored, streamRun } from './turn-runs.ts'

export interface TurnServiceOptions extends TurnRunsOptions {
  readonly whilePending: 'keep' | 'cancel'
  readonly runs: Pick<
    ChatRuns,
    'continues' | 'leave' | 'takeOutput' | 'whileNone' | 'hasRunningCalls'
  >
  /** Called when the turn of a call resumes that ran on after its turn. The turn may fail. */
  readonly onResumed: (approval: Approval, turn: Promise<Turn>) => void
}

/** An open run, or another server, has continued with the call that a turn was to resume. */
export class CallTakenError extends ProtocolError {
  constructor() {
    super('nothing-new')
  }
}

/** The events of one message of an open run. */
export interface TurnSource {
  readonly events: AsyncQueue<Event>
  /** Whether calls still run at the end of the events. */
  readonly leavesCalls: () => boolean
  /** Whether an earlier turn has sent this message up to a pause. */
  readonly resumes: boolean
  readonly background: boolean
  readonly userMessageId: string
  /** Stores that message, if the run has not stored it. */
  readonly storePrompt: () => Promise<void>
  readonly graceMs: number
}

/** What a turn for a new message needs besides the message. */
interface StartOptions {
  readonly state: StateDelta
  readonly agent: ChosenAgent
  /** The user message before which the chat is rewound. Default: the chat is not rewound, unless the message replaces another one. */
  readonly removed?: string | undefined
  /** A message that may decide the open question of the chat. Default: it is an ordinary message. */
  readonly reply?: PossibleReply | undefined
}

interface PossibleReply {
  /** Records the decision while the chat is locked. Returns undefined if the message is an ordinary one. */
  readonly decide: () => Promise<Approval | undefined>
  /** Resumes the turn of the decided call, without a reader. */
  readonly resume: (approval: Approval) => void
}

/** Starts turns, and resumes paused turns with responses. */
export class TurnService {
  readonly #backend: LazyBackend
  readonly #turns: TurnRegistry
  readonly #options: TurnServiceOptions
  /** The number of calls that run without a turn. Their turns resume when they end. */
  #runningWithoutTurn = 0

  constructor(backend: LazyBackend, turns: TurnRegistry, options: TurnServiceOptions) {
    this.#backend = backend
    this.#turns = turns
    this.#options = options
  }

  /** Whether calls run without a turn. */
  get busy(): boolean {
    return this.#runningWithoutTurn > 0
  }

  /** Repairs the sessions of runs that could not be repaired at their end, because the store failed. */
  async settleLeft(): Promise<void> {
    const { host } = await this.#backend.get()
    await host.endings.settleLeft(this.#turns, this.#options.onError)
  }

  /** Starts a turn for a new message. */
  async start(chat: ChatRef, request: MessageRequest, options: StartOptions): Promise<Turn> {
    return endingRuns(this.#options.runs, chat, () => this.#start(chat, request, options))
  }

  async #start(
    chat: ChatRef,
    request: MessageRequest,
    { state, agent, reply, removed: shortened }: StartOptions,
  ): Promise<Turn> {
    const backend = await this.#backend.get()
    const key = toAppChat(backend, chat)
    const { replaces } = request
    const userMessageId = request.message.id ?? randomUUID()
    const removed = toRemoval(request, replaces ? userMessageId : shortened)
    // Check before a turn is stopped.
    if (removed) await checkRewind(backend, key, removed)
    // The rewind also removes the running turn. A message that replaces one does not stop a turn that has a reader.
    if (shortened !== undefined) await this.#turns.stop(chat)
    const cancels = !removed && this.#options.whilePending === 'cancel'
    let decided: Event | undefined
    /** Set when stored messages were removed for this one, which is not stored yet. */
    let rewound: Rewound | undefined
    const { id } = request.message
    const repliesTo =
      replaces || id === undefined ? undefined : { id, content: toUserContent(request.message) }
    const reads = !removed && !reply && !cancels
    let session: Session | undefined
    let position: string | undefined
    const findReply = async (isLocked: boolean): Promise<string | undefined> => {
      const { sessions } = backend
      const read = isLocked ? await sessions.getOrCreateLocked(key) : await sessions.get(key)
      if (isLocked) position = positionOf(read?.events ?? [])
      // The run need not read it again, if nothing is written before.
      if (isLocked && reads) session = read
      return read && repliesTo && findReplyTo(read, repliesTo)
    }
    const job: TurnJob = {
      reads,
      userMessageId,
      ...(repliesTo && { repliesTo, findReply }),
      beforeStart: async () => {
        if (!removed) return
        const rewind = async () => {
          rewound = await rewindLocked(backend, key, removed)
        }
        if (!(await this.#options.runs.whileNone(chat, rewind))) throw new OpenRunError()
      },
      prepare: async (turn) => {
        const { messageId } = turn
        turn.startPosition = removed ? undefined : position
        await backend.agents.record(key, agent)
        const approval = await reply?.decide()
        if (!reply || !approval) return
        const replied = toRepliedNote(approval)
        try {
          const message = { messageId, userMessageId, replied, state }
          decided = await backend.sessions.storeReply(key, request, message)
        } finally {
          // Waits for the end of this turn.
          reply.resume(approval)
        }
      },
      run: async (turn) => {
        const { messageId, signal } = turn
        this.#options.onTurn({ ...chat, messageId, turn: turn.id })
        if (decided)
          return void (await this.#stream(backend, turn, { chat, events: yieldAll([decided]) }))
        const sent = { messageId, userMessageId, state }
        const events = backend.host.run(key, request, { ...sent, signal, session })
        const all = cancels ? afterCancelling(() => cancelPending(backend, key), events) : events
        const end = await this.#stream(backend, turn, { chat, events: all })
        const isStopped = signal.aborted && end !== 'completed' && end !== 'failed'
        // If the server closes, the client sends the message again.
        if (isStopped && !isClosing(signal))
          await backend.host.keepStopped(key, request, sent).catch(this.#options.onError)
        if (!rewound || end === 'completed') return
        const error = turn.failure === undefined ? undefined : new ProtocolError(turn.failure)
        const replacement = { ...sent, ...rewound, error }
        await backend.host
          .keepReplacement(key, request, replacement, { isLocked: true })
          .catch(this.#options.onError)
      },
    }
    const messageId = randomUUID()
    try {
      return await this.#turns.start(chat, messageId, job)
    } catch (error) {
      const sent = { messageId, userMessageId, state, error: readError(error) }
      if (rewound) await this.keepReplacement(chat, request, { ...sent, ...rewound })
      throw error
    }
  }

  /** TU1990: stores a message that has replaced stored ones and could not be sent, as soon as the chat is free. Never rejects. */
  async keepReplacement(
    chat: ChatRef,
    request: Pick<MessageRequest, 'message'>,
    sent: UnsentReplacement,
  ): Promise<void> {
    const { onError } = this.#options
    try {
      const backend = await this.#backend.get()
      const key = toAppChat(backend, chat)
      await backend.host.keepReplacement(key, request, sent, { isLocked: false })
      await backend.host.endings.settleLeft(this.#turns, onError, sent.messageId)
    } catch (error) {
      onError(error)
    }
  }

  /** Resumes a paused turn with responses. */
  async resume(chat: ChatRef, messageId: string, responses: TurnResponses): Promise<Turn> {
    const backend = await this.#backend.get()
    const key = toAppChat(backend, chat)
    const { decision, reports, continueAfter } = responses
    // The agent of a chat was found before its decision was accepted.
    if (!decision) await backend.agents.of(key)
    const approval = decision?.approval ?? responses.approval
    let replayed: ReplayedTurn | undefined
    return this.#turns.start(chat, messageId, {
      reads: approval !== undefined,
      waitForRunning: true,
      onlyIfFree: decision !== undefined,
      background: responses.background === true,
      finishes: responses.finishes === true,
      beforeStart: async () => {
        const reported = approval ?? reports
        // LV640: an open run may have taken the call while this turn waited for the chat, or AP70: a turn of another server.
        const isTaken =
          (reported && (await this.#options.runs.continues(reported))) ||
          (reports && (await readCallState(backend, reports)) !== 'asked') ||
          (continueAfter && !(await findContinuing(backend, continueAfter))) ||
          (await this.#giveOutputs(chat, responses.outputs))
        if (isTaken) throw new CallTakenError()
      },
      prepare: async (turn) => {
        try {
          if (decision) await this.#recordDecision(backend, turn, decision)
          else if (approval) await this.#startCall(backend, turn, approval)
          // What it has streamed would be stored after the rest of the message.
          await backend.host.endings.settleBefore(messageId)
          if (continueAfter && (await findContinuing(backend, continueAfter)))
            await backend.sessions.endLostCalls(key)
          const options = this.#options
          const stored = await replayStored(backend, key, { messageId, options })
          if (!stored) throw new ProtocolError('nothing-new')
          replayed = stored
          turn.startPosition = stored.position
          turn.repliesTo = stored.repliesTo
          turn.userMessageId = stored.repliesTo.id
          const pause = findResumeIndex(stored, responses.seen)
          await checkResponses(backend, stored, { chat: key, responses, pause })
          await prefillTurn(turn, stored, { ledger: backend.ledger, chat: key, pause })
        } catch (thrown) {
          if (approval) this.#resumeWhenCallEnds(backend, { chat, approval })
          throw thrown
        }
      },
      run: async (turn) => {
        const options = this.#options
        const events = runResponses(backend, turn, { chat: key, responses, options })
        const from = replayed && { from: replayed.state, lastError: replayed.lastError }
        await this.#stream(backend, turn, { chat, events, isResumed: true, ...from })
        if (approval) this.#resumeWhenCallEnds(backend, { chat, approval })
      },
    })
  }

  /** Gives outputs to open runs that have taken their calls. Returns whether there are any. */
  async #giveOutputs(chat: ChatRef, outputs: readonly OutputResponse[]): Promise<boolean> {
    let isTaken = false
    for (const output of outputs)
      isTaken = (await this.#options.runs.takeOutput(chat, output)) || isTaken
    return isTaken
  }

  /** Cancels the pending approvals of a chat if `whilePending` is `cancel`. An open run itself writes the ends of its calls. */
  async cancelPending(chat: ChatRef, isOfRun: (approval: Approval) => boolean): Promise<void> {
    if (this.#options.whilePending === 'keep') return
    const backend = await this.#backend.get()
    await cancelPending(backend, toAppChat(backend, chat), isOfRun)
  }

  /**
   * Waits until no turn runs in a chat, and lets none start until the returned function is called. Returns undefined if the chat is not
   * free in time.
   */
  async reserve(chat: ChatRef, timeoutMs: number): Promise<(() => void) | undefined> {
    const released = defer()
    const started = this.#turns.start(chat, randomUUID(), {
      waitForRunning: true,
      background: true,
      // It has nothing to read.
      isReplay: true,
      prepare: async ({ log }) => log.end(),
      run: () => released.promise,
    })
    const locked = started.then(
      () => true,
      (error: unknown) => {
        if (error instanceof ProtocolError) return false
        throw error
      },
    )
    const isLocked = await Promise.race([locked, delay(timeoutMs, false, { ref: false })])
    if (isLocked) return () => released.resolve()
    released.resolve()
    return undefined
  }

  /** Streams a message of an open run when the previous turn has ended. */
  async streamFrom(chat: ChatRef, messageId: string, source: TurnSource): Promise<Turn> {
    const { events, leavesCalls, storePrompt, resumes, background, userMessageId, graceMs } = source
    const backend = await this.#backend.get()
    const key = toAppChat(backend, chat)
    let replayed: ReplayedTurn | undefined
    return this.#turns.start(chat, messageId, {
      waitForRunning: true,
      background,
      userMessageId,
      graceMs,
      // Allowed while the bridge closes: the calls of an open run have ended. New runs are refused earlier.
      finishes: true,
      prepare: async (turn) => {
        const stored = resumes ? await backend.sessions.findTurn(key, messageId) : undefined
        if (!stored) return
        // Replay the stored events, and take only later ones from the run.
        const storedIds = new Set(stored.runs.flat().map(({ id }) => id))
        events.removeThroughLast(({ id }) => storedIds.has(id))
        replayed = closeAtPause(replayTurn(stored, this.#options))
        const pause = replayed.pauses[0] ?? replayed.chunks.length
        await prefillTurn(turn, replayed, { ledger: backend.ledger, chat: key, pause })
      },
      run: async (turn) => {
        this.#options.onTurn({ ...chat, messageId, turn: turn.id })
        const from = replayed && { from: replayed.state }
        await this.#stream(backend, turn, {
          chat,
          events,
          isOpenRun: true,
          leavesCalls,
          storePrompt,
          ...from,
        })
      },
    })
  }

  /** Streams a stored message again for clients that have not read all of it. Does not run the agent. */
  async replay(chat: ChatRef, messageId: string): Promise<Turn> {
    const backend = await this.#backend.get()
    const key = toAppChat(backend, chat)
    const write = async (turn: Turn, question: Approval | undefined): Promise<void> => {
      const stored = await backend.sessions.findTurn(key, messageId)
      if (!stored) throw new ProtocolError('nothing-new')
      const replayed = replayTurn(stored, this.#options)
      const pause = replayed.chunks.length
      await prefillTurn(turn, replayed, { ledger: backend.ledger, chat: key, pause })
      // TU901: under the chat lock, no other process writes the reply.
      const state = hasReply(stored) ? replayed.state : { ...replayed.state, error: LOST }
      const isAsking = question?.messageId === messageId
      const hasRunningCalls = isAsking || this.#options.runs.hasRunningCalls(chat, messageId)
      for (const chunk of finishStored(state, hasRunningCalls)) turn.log.append(chunk)
      turn.log.end()
    }
    const question = await findOpenQuestion(this.#backend, chat)
    // The chat is not free before the answer, and nothing is written to the message meanwhile.
    if (question && (question.messageId === messageId || this.#turns.asking(chat))) {
      const turn = this.#turns.createReplay(messageId)
      await write(turn, question)
      turn.settle()
      return turn
    }
    return this.#turns.start(chat, messageId, {
      waitForRunning: true,
      background: true,
      isReplay: true,
      prepare: async (turn) => write(turn, await findOpenQuestion(this.#backend, chat)),
      run: async () => undefined,
    })
  }

  /**
   * Streams a stored message up to its open question, after what a client has seen. The process that runs the call holds the chat.
   * Returns undefined if the client has seen everything.
   */
  async replayAtQuestion(
    chat: ChatRef,
    { messageId, seen }: { readonly messageId: string; readonly seen: string | undefined },
  ): Promise<Turn | undefined> {
    const backend = await this.#backend.get()
    const key = toAppChat(backend, chat)
    const replayed = await replayStored(backend, key, { messageId, options: this.#options })
    const pause = replayed && findResumeIndex(replayed, seen)
    if (!replayed || pause === undefined || pause >= replayed.chunks.length) return undefined
    const turn = this.#turns.createReplay(messageId)
    await prefillTurn(turn, replayed, { ledger: backend.ledger, chat: key, pause })
    for (const chunk of finishTranslation(replayed.state, 'left')) turn.log.append(chunk)
    turn.log.end()
    turn.settle()
    return turn
  }

  #stream(backend: Backend, turn: Turn, run: RunInTurn): ReturnType<typeof streamRun> {
    return streamRun({ backend, turns: this.#turns, options: this.#options }, turn, run)
  }

  /** AP61: starts an approved call under the chat lock, before its turn is loaded. */
  async #startCall({ host }: Backend, { signal }: Turn, approval: Approval): Promise<void> {
    if (approval.state.name !== 'approved') return
    // Let the tool start before the turn is loaded.
    if (await host.startCall(approval, signal)) await setImmediate()
  }

  /** AP61: records a decision under the chat lock, and starts the call in the same commit. */
  async #recordDecision(
    { host }: Backend,
    { signal }: Turn,
    { approval, decision, result }: PendingDecision,
  ): Promise<void> {
    let decided: Approval | Refusal
    try {
      decided = await host.decide(approval, decision, signal)
    } catch (error) {
      result.reject(error)
      throw error
    }
    result.resolve(decided)
    if (isRefusal(decided)) throw new ProtocolError('nothing-new')
    // Let the tool start, and the client read that the decision is recorded, before the turn is loaded.
    await setImmediate()
  }

  /** Resumes the turn of a call when the call ends. The turn that started the call was stopped before ADK collected its result. */
  #resumeWhenCallEnds(
    { host }: Backend,
    { chat, approval }: { chat: ChatRef; approval: Approval },
  ): void {
    if (!host.isRunning(approval)) return
    const again = { outputs: [], background: true, finishes: true }
    this.#runningWithoutTurn += 1
    // Not awaited. If the turn cannot resume, the ledger still has the result, and a sweep reports it.
    const resumed = host
      .settled(approval)
      .then(async () => this.resume(chat, approval.messageId, again))
      .finally(() => {
        this.#runningWithoutTurn -= 1
      })
    this.#options.onResumed(approval, resumed)
  }
}

const { error: LOST } = new ProtocolError('turn-lost', {
  message: 'The reply to this message was lost. You can ask again.',
}).toJSON()

async function* yieldAll(events: readonly Event[]): AsyncGenerator<Event> {
  yield* events
}
