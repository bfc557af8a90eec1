import { randomUUID } from 'node:crypto'
import { setImmediate, setTimeout as delay } from 'node:timers/promises'

import type { Event } from '@google/adk'
import type { Content } from '@google/genai'

import { toRepliedNote } from '../../../agent/call-responses.ts'
import { findContinuation } from '../../../agent/history/interrupted-turn.ts'
import type { ReplayedTurn } from '../../../agent/history/replay-turn.ts'
import {
  closeAtPause,
  findResumeIndex,
  markPauses,
  replayTurn,
  toReplay,
} from '../../../agent/history/replay-turn.ts'
import { finishTranslation } from '../../../agent/translate/translate-event.ts'
import type { Approval, Refusal } from '../../../approvals/approval.ts'
import { isRefusal } from '../../../approvals/approval.ts'
import type { Ledger } from '../../../approvals/ledger.ts'
import type { Decision } from '../../../approvals/next-approval.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { OutputResponse } from '../../../protocol/read-responses.ts'
import type { MessageRequest } from '../../../protocol/stream-request.ts'
import type { AsyncQueue, Deferred } from '../../../shared/async.ts'
import { defer } from '../../../shared/async.ts'
import type { AppChatRef, ChatRef } from '../../../shared/chat-ref.ts'
import { runTurn } from '../../../turns/run-turn.ts'
import type { TurnRegistry } from '../../../turns/turn-registry.ts'
import type { Turn } from '../../../turns/turn.ts'
import { isClosing } from '../../../turns/turn.ts'
import type { Principal } from '../../auth/authenticate.ts'
import type { Backend, LazyBackend } from '../backend.ts'
import { toAppChat } from '../backend.ts'
import type { AgentRequest, ChosenAgent } from '../chat-agents.ts'
import type { StateDelta } from '../request-context.ts'
import { afterCancelling, cancelPending } from './approval-endings.ts'
import { settleQuestions } from './question-answers.ts'
import { checkRewind, prepareRewind } from './rewinds.ts'
import {
  collectResponses,
  findCompletionFault,
  findForeignOutput,
  isBlockedByRunningCall,
  refuseForeignOutput,
  toContinuation,
} from './turn-responses.ts'
import type { TurnRunsOptions } from './turn-runs.ts'
import { TurnRuns } from './turn-runs.ts'

export interface TurnServiceOptions extends TurnRunsOptions {
  readonly whilePending: 'keep' | 'cancel'
  /** Whether a live session has the call of an approval, or the call of the agent that made it. */
  readonly isLive: (approval: Approval) => Promise<boolean>
}

/** The responses that a paused turn resumes with. */
export interface TurnResponses {
  /** The results of browser tools. Decisions are in the ledger. */
  readonly outputs: readonly OutputResponse[]
  /** Whether the turn resumes without a reader. Default false. */
  readonly background?: boolean
  /** The approval or call after which the client continues to read. Default: the last pause. */
  readonly seen?: string
  /** An approval that was decided just now. Its call may start before the turn is loaded. */
  readonly approval?: Approval
  /** The approval whose outcome the turn reports. Default: `approval`. */
  readonly reports?: Approval
  /** A decision to record when the chat is locked. If the chat is not free, the turn does not start. */
  readonly decision?: PendingDecision
  /** Whether the turn only reports the result of a call that has run. This is allowed while the bridge closes. Default false. */
  readonly finishes?: boolean
  /** The final result of a long-running call, from the application. */
  readonly completion?: Completion
  /** AP661: the approval of a call after whose result the agent may not have continued. */
  readonly continueAfter?: Approval
  /** Returns the error for a client whose responses change nothing. Default: `nothing-new`. */
  readonly refuse?: () => Promise<ProtocolError>
}

/** A live session has the call that a turn was to resume, and continues it. */
export class LiveCallError extends ProtocolError {
  constructor() {
    super('nothing-new')
  }
}

interface PendingDecision {
  readonly approval: Approval
  readonly decision: Decision
  /** Receives the result of recording the decision. */
  readonly result: Deferred<Approval | Refusal>
}

interface Completion extends OutputResponse {
  /** Called when the result is stored. */
  readonly onStored: () => void
}

/** The events of one message of a live session. */
export interface LiveStream {
  readonly events: AsyncQueue<Event>
  /** Whether calls still run at the end of the events. */
  readonly leavesCalls: () => boolean
  /** Whether an earlier turn has sent this message up to a pause. */
  readonly resumes: boolean
  readonly background: boolean
  readonly graceMs: number
}

/** What a turn for a new message needs besides the message. */
interface StartOptions {
  readonly state: StateDelta
  readonly agent: ChosenAgent
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
  readonly #runs: TurnRuns
  /** The number of calls that run without a turn. Their turns resume when they end. */
  #runningWithoutTurn = 0

  constructor(backend: LazyBackend, turns: TurnRegistry, options: TurnServiceOptions) {
    this.#backend = backend
    this.#turns = turns
    this.#options = options
    this.#runs = new TurnRuns(turns, options)
  }

  /** Whether calls run without a turn. */
  get busy(): boolean {
    return this.#runningWithoutTurn > 0
  }

  /** Whether the run of a turn ended with an error. */
  hasFailed(turn: Turn): boolean {
    return this.#runs.hasFailed(turn)
  }

  /** Returns the agent of a chat, or the agent to record for a new chat. */
  async chooseAgent(
    principal: Principal,
    chat: ChatRef,
    request: AgentRequest,
  ): Promise<ChosenAgent> {
    const backend = await this.#backend.get()
    const key = toAppChat(backend, chat)
    const exists = (): Promise<boolean> => backend.sessions.exists(key)
    return backend.agents.choose(principal, key, { ...request, exists })
  }

  /** Records the agent of a new chat. */
  async recordAgent(chat: ChatRef, agent: ChosenAgent): Promise<void> {
    const backend = await this.#backend.get()
    await backend.agents.record(toAppChat(backend, chat), agent)
  }

  /** Starts a turn for a new message. */
  async start(
    chat: ChatRef,
    request: MessageRequest,
    { state, agent, reply }: StartOptions,
  ): Promise<Turn> {
    const backend = await this.#backend.get()
    const key = toAppChat(backend, chat)
    const { replaces } = request
    const userMessageId = request.message.id ?? randomUUID()
    // Check before `start` stops a turn that has no reader.
    if (replaces) await checkRewind(backend, key, userMessageId)
    const cancels = !replaces && this.#options.whilePending === 'cancel'
    let decided: Event | undefined
    return this.#turns.start(chat, randomUUID(), {
      reads: !replaces && !reply && !cancels,
      prepare: async ({ messageId }) => {
        if (replaces) await prepareRewind(backend, key, userMessageId)
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
        this.#options.onTurn({ ...chat, messageId })
        if (decided) return this.#runs.stream(backend, turn, { chat, events: yieldAll([decided]) })
        const events = backend.host.run(key, request, { messageId, userMessageId, signal, state })
        const all = cancels ? afterCancelling(() => cancelPending(backend, key), events) : events
        await this.#runs.stream(backend, turn, { chat, events: all })
      },
    })
  }

  /** Sets session state of a chat without a message. Writes only the values that differ. */
  async setState(chat: ChatRef, delta: StateDelta): Promise<void> {
    if (Object.keys(delta).length === 0) return
    const backend = await this.#backend.get()
    await backend.sessions.setState(toAppChat(backend, chat), delta)
  }

  /** Resumes a paused turn with responses. */
  async resume(chat: ChatRef, messageId: string, responses: TurnResponses): Promise<Turn> {
    const backend = await this.#backend.get()
    const key = toAppChat(backend, chat)
    await backend.agents.of(key)
    const { decision } = responses
    const approval = decision?.approval ?? responses.approval
    let replayed: ReplayedTurn | undefined
    return this.#turns.start(chat, messageId, {
      reads: approval !== undefined,
      waitForRunning: true,
      onlyIfFree: decision !== undefined,
      background: responses.background === true,
      finishes: responses.finishes === true,
      prepare: async (turn) => {
        // LV640: a live session may have taken the call while this turn waited for the chat.
        const reported = approval ?? responses.reports
        if (reported && (await this.#options.isLive(reported))) throw new LiveCallError()
        try {
          if (decision) await this.#recordDecision(backend, turn, decision)
          else if (approval) await this.#startCall(backend, turn, approval)
          const { continueAfter } = responses
          if (continueAfter && (await this.#continueAfter(backend, continueAfter)))
            await backend.sessions.endLostCalls(key)
          replayed = await this.#replay(backend, key, messageId)
          if (!replayed) throw new ProtocolError('nothing-new')
          const pause = findResumeIndex(replayed, responses.seen)
          await this.#check(backend, replayed, { key, responses, pause })
          await prefillTurn(turn, replayed, { ledger: backend.ledger, chat: key, pause })
        } catch (thrown) {
          if (approval) this.#resumeWhenCallEnds(backend, { chat, approval })
          throw thrown
        }
      },
      run: async (turn) => {
        const events = this.#runResponses(backend, turn, { key, responses })
        await this.#runs.stream(backend, turn, {
          chat,
          events,
          ...(replayed && { from: replayed.state }),
        })
        if (approval) this.#resumeWhenCallEnds(backend, { chat, approval })
      },
    })
  }

  /** Throws if a turn cannot resume with these responses. */
  async #check(
    backend: Backend,
    { state, chunks }: ReplayedTurn,
    { key: chat, responses, pause }: { key: AppChatRef; responses: TurnResponses; pause: number },
  ): Promise<void> {
    const { outputs, completion, background = false, refuse } = responses
    if (completion) {
      const call = state.calls.get(completion.toolCallId)
      const fault = await findCompletionFault(call, backend, chat)
      if (fault) throw fault
      return
    }
    if (await isBlockedByRunningCall(state, backend, chat))
      throw new ProtocolError('approval-decided')
    if (await collectResponses(state, backend, { chat, outputs })) return
    // Clients repeat the outputs of all calls of a message. Invalid ones are ignored if another response is valid.
    const foreign = await findForeignOutput(state, backend, { chat, outputs })
    if (foreign) throw refuseForeignOutput(foreign)
    // AP130: after an empty stream, a client would resend the same request again and again.
    const isEmpty = pause >= chunks.length
    if (isEmpty && !background) throw (await refuse?.()) ?? new ProtocolError('nothing-new')
  }

  /** Cancels the pending approvals of a chat if `whilePending` is `cancel`. A live session itself writes the ends of its calls. */
  async cancelPending(chat: ChatRef, isLive: (approval: Approval) => boolean): Promise<void> {
    if (this.#options.whilePending === 'keep') return
    const backend = await this.#backend.get()
    await cancelPending(backend, toAppChat(backend, chat), { isWritten: isLive })
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

  /** Streams a message of a live session when the previous turn has ended. */
  async streamLive(chat: ChatRef, messageId: string, live: LiveStream): Promise<Turn> {
    const { events, leavesCalls, resumes, background, graceMs } = live
    const backend = await this.#backend.get()
    const key = toAppChat(backend, chat)
    let replayed: ReplayedTurn | undefined
    return this.#turns.start(chat, messageId, {
      waitForRunning: true,
      background,
      graceMs,
      // Allowed while the bridge closes: the calls of an open session have ended. New sessions are refused earlier.
      finishes: true,
      prepare: async (turn) => {
        const stored = resumes ? await backend.sessions.findTurn(key, messageId) : undefined
        if (!stored) return
        // Replay the stored events, and take only later ones from the live session.
        const storedIds = new Set(stored.runs.flat().map(({ id }) => id))
        events.removeThroughLast(({ id }) => storedIds.has(id))
        replayed = closeAtPause(replayTurn(stored, this.#options))
        const pause = replayed.pauses[0] ?? replayed.chunks.length
        await prefillTurn(turn, replayed, { ledger: backend.ledger, chat: key, pause })
      },
      run: async (turn) => {
        this.#options.onTurn({ ...chat, messageId })
        const from = replayed && { from: replayed.state }
        await this.#runs.stream(backend, turn, {
          chat,
          events,
          passSound: true,
          leavesCalls,
          ...from,
        })
      },
    })
  }

  /** Streams a stored message again for clients that have not read all of it. Does not run the agent. */
  async replay(chat: ChatRef, messageId: string): Promise<Turn> {
    const backend = await this.#backend.get()
    const key = toAppChat(backend, chat)
    const { exposeState, onError } = this.#options
    let replayed: ReplayedTurn | undefined
    return this.#turns.start(chat, messageId, {
      waitForRunning: true,
      background: true,
      isReplay: true,
      prepare: async (turn) => {
        replayed = await this.#replay(backend, key, messageId)
        if (!replayed) throw new ProtocolError('nothing-new')
        await prefillTurn(turn, replayed, {
          ledger: backend.ledger,
          chat: key,
          pause: replayed.chunks.length,
        })
      },
      run: async (turn) => {
        const rest = { exposeState, onError, onChunk: undefined, leavesCalls: () => true }
        await runTurn(turn, noEvents(), { ...rest, ...(replayed && { from: replayed.state }) })
      },
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
    const replayed = await this.#replay(backend, key, messageId)
    const pause = replayed && findResumeIndex(replayed, seen)
    if (!replayed || pause === undefined || pause >= replayed.chunks.length) return undefined
    const turn = this.#turns.createReplay(messageId)
    await prefillTurn(turn, replayed, { ledger: backend.ledger, chat: key, pause })
    for (const chunk of finishTranslation(replayed.state, 'left')) turn.log.append(chunk)
    turn.log.end()
    turn.settle()
    return turn
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
    host
      .settled(approval)
      .then(async () => this.resume(chat, approval.messageId, again))
      .catch(this.#options.onError)
      .finally(() => {
        this.#runningWithoutTurn -= 1
      })
  }

  /** Yields the events of all runs that the responses allow. More responses may arrive during a run. */
  async *#runResponses(
    backend: Backend,
    { messageId, signal }: Turn,
    { key, responses }: { key: AppChatRef; responses: TurnResponses },
  ): AsyncGenerator<Event> {
    const { outputs, completion, background = false } = responses
    const sent = new Set<string>()
    for (;;) {
      const replayed = await this.#replay(backend, key, messageId)
      const all = { chat: key, outputs, completion }
      const collected = replayed && (await collectResponses(replayed.state, backend, all))
      const isFirst = sent.size === 0 && collected === undefined
      const after = isFirst ? responses.continueAfter : undefined
      const content = after ? await this.#continueAfter(backend, after) : collected
      const ids = readIds(content)
      // Sending the same responses again would not help.
      const isStuck = content !== undefined && ids.every((id) => sent.has(id))
      if (isStuck && !background && !signal.aborted) throw new ProtocolError('internal', STUCK)
      // AP80: another server may have taken over the chat, and have written what this turn was to write.
      const isLost = sent.size === 0 && !content && !(await backend.ledger.locks.stillHolds(key))
      if (isLost && !signal.aborted) throw new ProtocolError('turn-lost')
      if (!content || signal.aborted || isStuck) return
      // EV3: report a turn only if it has work to do.
      if (sent.size === 0) this.#options.onTurn({ ...key, messageId })
      for (const id of ids) sent.add(id)
      if (completion && ids.includes(completion.toolCallId)) {
        const { onStored } = completion
        const noted = await backend.host.toCompletion(key, content)
        yield* backend.host.resume(key, messageId, { ...noted, signal, onStored })
        continue
      }
      const settled = await settleQuestions(backend.ledger, key, content)
      let isStored = false
      const onStored = (): void => {
        isStored = true
      }
      const notes = settled && { notes: settled.notes }
      yield* backend.host.resume(key, messageId, { content, ...notes, signal, onStored })
      // AP661: another server checks whether the workflow has continued with the answer.
      if (settled && isStored && !isClosing(signal))
        await backend.ledger.markReported(key, settled.toolCallIds)
      const delivered = outputs.flatMap(({ toolCallId }) =>
        sent.has(toolCallId) ? [toolCallId] : [],
      )
      if (delivered.length > 0) await backend.browserCalls.drop(key, delivered)
    }
  }

  /** AP661: returns the content that continues a turn, if nothing has continued it meanwhile. */
  async #continueAfter({ sessions }: Backend, approval: Approval): Promise<Content | undefined> {
    const stored = await sessions.findTurn(approval.chat, approval.messageId)
    const found = stored && findContinuation(stored, approval)
    return found && toContinuation(found)
  }

  async #replay(
    { sessions }: Backend,
    key: AppChatRef,
    messageId: string,
  ): Promise<ReplayedTurn | undefined> {
    const stored = await sessions.findTurn(key, messageId)
    return stored && closeAtPause(replayTurn(stored, this.#options))
  }
}

async function* noEvents(): AsyncGenerator<Event> {}

async function* yieldAll(events: readonly Event[]): AsyncGenerator<Event> {
  yield* events
}

/** AP130: sent as an error, because a client whose call does not end would resend the same request. */
const STUCK = {
  message: 'The response is recorded, but the agent did not continue. Load the conversation again.',
}

function readIds(content: Content | undefined): string[] {
  return content?.parts?.map((part) => part.functionResponse?.id ?? '') ?? []
}

/** Writes the stored part of a turn into its log, and marks the pauses from which clients continue to read. */
async function prefillTurn(
  turn: Turn,
  replayed: ReplayedTurn,
  {
    ledger,
    chat,
    pause,
  }: { readonly ledger: Ledger; readonly chat: AppChatRef; readonly pause: number },
): Promise<void> {
  const { chunks, state } = replayed
  const decided = new Set<string>()
  for (const [toolCallId, call] of state.calls) {
    const approval = call.approval && (await ledger.findByCall(chat, toolCallId))
    // A client that reads from the start must not be asked again.
    if (approval && approval.state.name !== 'requested') decided.add(toolCallId)
  }
  const before = toReplay(chunks.slice(0, pause), (toolCallId) => decided.has(toolCallId))
  turn.log.append({ type: 'start', messageId: turn.messageId })
  for (const chunk of before) turn.log.append(chunk)
  turn.log.markPause()
  const marks = markPauses(replayed)
  for (let index = pause; index <= chunks.length; index += 1) {
    for (const seen of marks.get(index) ?? []) turn.log.markPause(seen)
    const chunk = chunks[index]
    if (chunk) turn.log.append(chunk)
  }
}
