import { randomUUID } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'

import type { Event } from '@google/adk'
import type { Content } from '@google/genai'

import { NO_ANSWER } from '../../calls/browser-output.ts'
import { asBrowserTool } from '../../calls/browser-tool.ts'
import { readAsked } from '../../agent/history/cut-events.ts'
import { toReplay } from '../../agent/history/replay-chunks.ts'
import type { ReplayedTurn } from '../../agent/history/stored-turns.ts'
import {
  closeAtPause,
  findPause,
  markPauses,
  replayTurn,
} from '../../agent/history/stored-turns.ts'
import type { TranslationOptions } from '../../agent/translate/translate-event.ts'
import type { Call } from '../../agent/translate/translation.ts'
import type { Approval, ApprovalChat, ApprovalStateName } from '../../approvals/approval.ts'
import { isRefusal } from '../../approvals/refusal.ts'
import type { Chunk } from '../../protocol/chunk.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import type { OutputAnswer } from '../../protocol/read-answers.ts'
import type { MessageRequest } from '../../protocol/stream-request.ts'
import type { BrowserCall } from '../../store/browser-call-store.ts'
import type { RunOutcome, RunTurnOptions } from '../../turns/run-turn.ts'
import { runTurn } from '../../turns/run-turn.ts'
import type { AsyncQueue } from '../../shared/async-queue.ts'
import type { Turn } from '../../turns/turn.ts'
import type { ChatKey, TurnRegistry } from '../../turns/turn-registry.ts'
import {
  afterCancelling,
  cancelPending,
  OrphanedApprovals,
  writeEnding,
} from './approval-endings.ts'
import {
  collectResponses,
  findCompletionFault,
  findForeignOutput,
  isBlockedByRunningCall,
  refuseForeignOutput,
} from './turn-responses.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { Backend, LazyBackend } from './backend.ts'
import { toApprovalChat } from './backend.ts'
import type { AgentRequest, ChosenAgent } from './chat-agents.ts'
import type { TurnInfo } from '../options.ts'
import type { StateDelta } from './request-context.ts'
import { traceTurn } from './trace-turn.ts'
import { ResumeAttempts } from './resume-attempts.ts'

export interface TurnServiceOptions extends TranslationOptions {
  readonly whilePending: 'keep' | 'cancel'
  readonly whenShortened: 'keep' | 'rewind'
  readonly onChunk: ((chunk: Chunk, turn: TurnInfo) => void) | undefined
  readonly onError: (error: unknown) => void
  /** Hears of every turn that begins, and of every one that goes on with something. */
  readonly onTurn: (turn: TurnInfo) => void
}

export interface TurnResponses {
  /** What ran on the client. Decisions are in the ledger. */
  readonly outputs: readonly OutputAnswer[]
  /** Whether nobody reads the turn that goes on. Default false. */
  readonly background?: boolean
  /** An approval that the client has seen asked; it reads from the pause after it. Default: the last pause. */
  readonly seen?: string
  /** An approval that was just given, and whose call may start before the turn goes on. */
  readonly approval?: Approval
  /** Whether only the result of a call that has run is replayed; allowed while the bridge is closing. Default false. */
  readonly finishes?: boolean
  /** The final result of a long-running call, from the application. */
  readonly completion?: Completion
  /** The refusal for a client to whom the turn has nothing to tell. Default: `nothing-new`. */
  readonly refuse?: () => Promise<ProtocolError>
}

interface Completion extends OutputAnswer {
  /** Called when the result is stored. */
  readonly onStored: () => void
}

/** A call in the conversation of a chat. */
interface FoundCall {
  /** The assistant message that made the call. */
  readonly messageId: string
  readonly call: Call
}

/** What a live run tells of a message. */
export interface LiveStream {
  readonly events: AsyncQueue<Event>
  /** Whether calls still run at the end of the events. */
  readonly leavesCalls: () => boolean
  /** Whether the message was replayed before, up to a pause. */
  readonly resumes: boolean
  readonly background: boolean
  readonly graceMs: number
}

/** Begins turns, and goes on with those that were answered. */
export class TurnService {
  readonly #backend: LazyBackend
  readonly #turns: TurnRegistry
  readonly #options: TurnServiceOptions
  readonly #orphans = new OrphanedApprovals()
  readonly #attempts = new ResumeAttempts()
  /** Turns whose run ended with an error. */
  readonly #failed = new WeakSet<Turn>()
  /** Calls that run without a turn, and whose result is to be replayed when they end. */
  #runningWithoutTurn = 0

  constructor(backend: LazyBackend, turns: TurnRegistry, options: TurnServiceOptions) {
    this.#backend = backend
    this.#turns = turns
    this.#options = options
  }

  /** Whether results are to be replayed of calls that run without a turn. */
  get busy(): boolean {
    return this.#runningWithoutTurn > 0
  }

  /** Returns the agent for a message: the one that its chat has, or for a new chat the one to record. */
  async chooseAgent(
    principal: Principal,
    chat: ChatKey,
    request: AgentRequest,
  ): Promise<ChosenAgent> {
    const backend = await this.#backend.get()
    const key = toApprovalChat(backend, chat)
    const exists = (): Promise<boolean> => backend.host.exists(key)
    return backend.agents.choose(principal, key, { ...request, exists })
  }

  /** Records the agent of a chat that begins. */
  async recordAgent(chat: ChatKey, agent: ChosenAgent): Promise<void> {
    const backend = await this.#backend.get()
    await backend.agents.record(toApprovalChat(backend, chat), agent)
  }

  /** Answers a new message. */
  async start(
    chat: ChatKey,
    request: MessageRequest,
    { state, agent }: { readonly state: StateDelta; readonly agent: ChosenAgent },
  ): Promise<Turn> {
    const backend = await this.#backend.get()
    const key = toApprovalChat(backend, chat)
    const { replaces } = request
    const userMessageId = request.message.id ?? randomUUID()
    // Before a turn is stopped that nobody reads any more.
    if (replaces) await this.checkRewind(chat, userMessageId)
    const cancels = !replaces && this.#options.whilePending === 'cancel'
    return this.#turns.start(chat, randomUUID(), {
      prepare: async () => {
        if (replaces) await this.#prepareRewind(backend, key, userMessageId)
        await backend.agents.record(key, agent)
      },
      run: async (turn) => {
        const { messageId, signal } = turn
        this.#options.onTurn({ ...chat, messageId })
        const events = backend.host.run(key, request, { messageId, userMessageId, signal, state })
        const all = cancels ? afterCancelling(() => cancelPending(backend, key), events) : events
        await this.#run(backend, turn, { chat, events: all })
      },
    })
  }

  /** Sets what differs in the session state of a chat, where no message carries it. */
  async setState(chat: ChatKey, delta: StateDelta): Promise<void> {
    if (Object.keys(delta).length === 0) return
    const backend = await this.#backend.get()
    await backend.host.setState(toApprovalChat(backend, chat), delta)
  }

  /** Goes on with a turn as far as its answers reach. */
  async resume(chat: ChatKey, messageId: string, answers: TurnResponses): Promise<Turn> {
    const backend = await this.#backend.get()
    const key = toApprovalChat(backend, chat)
    await backend.agents.of(key)
    let replayed: ReplayedTurn | undefined
    return this.#turns.start(chat, messageId, {
      waitForRunning: true,
      background: answers.background === true,
      finishes: answers.finishes === true,
      prepare: async (turn) => {
        try {
          if (answers.approval)
            await this.#startCall(backend, turn, { key, approval: answers.approval })
          replayed = await this.#replay(backend, key, messageId)
          if (!replayed) throw new ProtocolError('nothing-new')
          const pause = findPause(replayed, answers.seen)
          await this.#check(backend, replayed, { key, answers, pause })
          await prefill(turn, replayed, { backend, key, pause })
        } catch (thrown) {
          if (answers.approval)
            this.#resumeWhenCallEnds(backend, { chat, approval: answers.approval })
          throw thrown
        }
      },
      run: async (turn) => {
        const events = this.#runResponses(backend, turn, { key, answers })
        await this.#run(backend, turn, { chat, events, ...(replayed && { from: replayed.state }) })
        if (answers.approval)
          this.#resumeWhenCallEnds(backend, { chat, approval: answers.approval })
      },
    })
  }

  /**
   * Completes a long-running call with its final result, once. Resolves when the result is stored; the model then goes on with
   * nobody reading.
   */
  async complete(chat: ChatKey, result: OutputAnswer): Promise<Turn> {
    const backend = await this.#backend.get()
    const key = toApprovalChat(backend, chat)
    const found = await this.findCall(chat, result.toolCallId)
    if (!found) throw new ProtocolError('unknown-call')
    const completion = { ...result, onStored: ignore }
    const stored = new Promise<void>((resolve) => {
      completion.onStored = resolve
    })
    const answers = { outputs: [], background: true, completion }
    const turn = await this.resume(chat, found.messageId, answers)
    await Promise.race([stored, turn.settled])
    const replayed = await this.#replay(backend, key, found.messageId)
    // The turn was stopped, or the server closes, before anything was stored.
    if (!replayed?.state.calls.get(result.toolCallId)?.completed)
      throw new ProtocolError('unavailable')
    return turn
  }

  /** Finds a call in the conversation of a chat; of a call that is being made, when its turn has ended. */
  async findCall(chat: ChatKey, toolCallId: string): Promise<FoundCall | undefined> {
    const found = await this.#findCall(chat, toolCallId)
    const running = found ? undefined : this.#turns.running(chat)
    if (!running) return found
    await running.settled
    return this.#findCall(chat, toolCallId)
  }

  async #findCall(chat: ChatKey, toolCallId: string): Promise<FoundCall | undefined> {
    const backend = await this.#backend.get()
    const turns = await backend.host.turns(toApprovalChat(backend, chat))
    for (const turn of turns.toReversed()) {
      const call = replayTurn(turn, this.#options).state.calls.get(toolCallId)
      if (call) return { messageId: turn.messageId, call }
    }
    return undefined
  }

  /** Refuses answers by which a turn cannot go on. */
  async #check(
    backend: Backend,
    { state, chunks }: ReplayedTurn,
    { key: chat, answers, pause }: { key: ApprovalChat; answers: TurnResponses; pause: number },
  ): Promise<void> {
    const { outputs, completion, background = false, refuse } = answers
    if (completion) {
      const call = state.calls.get(completion.toolCallId)
      const fault = await findCompletionFault(call, backend, chat)
      if (fault) throw fault
      return
    }
    if (await isBlockedByRunningCall(state, backend, chat))
      throw new ProtocolError('approval-decided')
    if (await collectResponses(state, backend, { chat, outputs })) return
    // Clients repeat the outputs of all calls of a message: beside an answer that counts, one that does not is ignored.
    const foreign = await findForeignOutput(state, backend, { chat, outputs })
    if (foreign) throw refuseForeignOutput(foreign)
    // AP130: a client that gets an empty answer sends the same again at once, and for ever.
    const isEmpty = pause >= chunks.length
    if (isEmpty && !background) throw (await refuse?.()) ?? new ProtocolError('nothing-new')
  }

  /**
   * AP132: the first message of the user that a client has removed, where its history ends before the stored one. Undefined if it
   * does not prove that, and if a call ran among what it removed which a person had approved.
   */
  async findRemoved(
    chat: ChatKey,
    { history, replaces }: Pick<MessageRequest, 'history' | 'replaces'>,
  ): Promise<string | undefined> {
    if (this.#options.whenShortened === 'keep' || replaces || history.length === 0) return undefined
    const backend = await this.#backend.get()
    if (!backend.host.rewindable) return undefined
    const turns = await backend.host.turns(toApprovalChat(backend, chat))
    const stored = turns.flatMap(({ userMessage, messageId }) => [userMessage.id, messageId])
    if (!history.every((id, index) => id === stored[index])) return undefined
    // A history that ends with a message of the user has lost an answer, and not been cut by a person.
    if (history.length % 2 !== 0) return undefined
    const removed = turns[history.length / 2]?.userMessage.id
    const isKept = removed !== undefined && (await this.#hasActed(backend, chat, removed))
    return isKept ? undefined : removed
  }

  /** AP170: refuses to take a chat back to before a message if a call that a person approved would disappear. */
  async checkRewind(chat: ChatKey, userMessageId: string): Promise<void> {
    const backend = await this.#backend.get()
    if (!backend.host.rewindable) throw new ProtocolError('not-rewindable')
    if (await this.#hasActed(backend, chat, userMessageId)) throw new ProtocolError('already-acted')
  }

  async #hasActed(backend: Backend, chat: ChatKey, userMessageId: string): Promise<boolean> {
    const cut = await backend.host.cut(toApprovalChat(backend, chat), userMessageId)
    for (const [id, end] of readAsked(cut?.removed ?? [])) {
      const approval = await backend.ledger.get(id)
      const state = approval?.state.name ?? end
      if (state !== undefined && !WITHOUT_EFFECT.has(state)) return true
    }
    return false
  }

  /** Cancels what waits in a chat that is about to be taken back. */
  async #prepareRewind(backend: Backend, key: ApprovalChat, userMessageId: string): Promise<void> {
    await this.checkRewind(key, userMessageId)
    await cancelPending(backend, key)
    // A person may have approved meanwhile.
    await this.checkRewind(key, userMessageId)
  }

  /** Takes a chat back to before a message, with what was asked after it, while nobody else writes in it. */
  async rewind(chat: ChatKey, userMessageId: string): Promise<void> {
    const backend = await this.#backend.get()
    if (!backend.host.rewindable) throw new ProtocolError('not-rewindable')
    const key = toApprovalChat(backend, chat)
    // What is being written would be taken back with the rest, and must not be written after that.
    await this.#turns.stop(chat)
    const { settled } = await this.#turns.start(chat, randomUUID(), {
      waitForRunning: true,
      background: true,
      prepare: async () => {
        await this.#prepareRewind(backend, key, userMessageId)
        await backend.host.rewind(key, userMessageId)
      },
      run: async ({ log }) => log.end(),
    })
    await settled
  }

  /** The person says something else: what waits is kept, or cancelled. A live run writes the ends of its own calls. */
  async cancelPending(chat: ChatKey, isLive: (approval: Approval) => boolean): Promise<void> {
    if (this.#options.whilePending === 'keep') return
    const backend = await this.#backend.get()
    await cancelPending(backend, toApprovalChat(backend, chat), { isWritten: isLive })
  }

  /** Tells a message of a live conversation, when the turn before has ended. */
  async streamLive(chat: ChatKey, messageId: string, live: LiveStream): Promise<Turn> {
    const { events, leavesCalls, resumes, background, graceMs } = live
    const backend = await this.#backend.get()
    const key = toApprovalChat(backend, chat)
    let replayed: ReplayedTurn | undefined
    return this.#turns.start(chat, messageId, {
      waitForRunning: true,
      background,
      graceMs,
      // New conversations are refused before; here, calls of one that is open have ended.
      finishes: true,
      prepare: async (turn) => {
        const stored = resumes ? await backend.host.turn(key, messageId) : undefined
        if (!stored) return
        // What is stored is replayed from there; what comes by the run after it.
        const storedIds = new Set(stored.runs.flat().map(({ id }) => id))
        events.removeThroughLast(({ id }) => storedIds.has(id))
        replayed = closeAtPause(replayTurn(stored, this.#options))
        const pause = replayed.pauses[0] ?? replayed.chunks.length
        await prefill(turn, replayed, { backend, key, pause })
      },
      run: async (turn) => {
        this.#options.onTurn({ ...chat, messageId })
        const from = replayed && { from: replayed.state }
        await this.#run(backend, turn, { chat, events, passSound: true, leavesCalls, ...from })
      },
    })
  }

  /** Tells a stored message once more, as it is, for clients that have not read all of it. Nothing goes on by it. */
  async replay(chat: ChatKey, messageId: string): Promise<Turn> {
    const backend = await this.#backend.get()
    const key = toApprovalChat(backend, chat)
    const { exposeState, onError } = this.#options
    let replayed: ReplayedTurn | undefined
    return this.#turns.start(chat, messageId, {
      waitForRunning: true,
      background: true,
      prepare: async (turn) => {
        replayed = await this.#replay(backend, key, messageId)
        if (!replayed) throw new ProtocolError('nothing-new')
        await prefill(turn, replayed, { backend, key, pause: replayed.chunks.length })
      },
      run: async (turn) => {
        const rest = { exposeState, onError, onChunk: undefined, leavesCalls: () => true }
        await runTurn(turn, noEvents(), { ...rest, ...(replayed && { from: replayed.state }) })
      },
    })
  }

  /** AP61: starts a call that was approved, now that the chat is taken for it and before its turn is even read. */
  async #startCall(
    { host }: Backend,
    { signal }: Turn,
    { key, approval }: { key: ApprovalChat; approval: Approval },
  ): Promise<void> {
    if (approval.state.name !== 'approved') return
    // The work of reading the turn would otherwise be done before the tool's first line.
    if (await host.startCall(key, approval, signal)) await setImmediate()
  }

  /** Goes on, when it has ended, with a call that was begun by a turn which was stopped before ADK came by for its result. */
  #resumeWhenCallEnds(
    { host }: Backend,
    { chat, approval }: { chat: ChatKey; approval: Approval },
  ): void {
    if (!host.isRunning(approval)) return
    const again = { outputs: [], background: true, finishes: true }
    this.#runningWithoutTurn += 1
    // Nobody waits for this promise. What cannot be replayed now is on record, and replayed to whoever reads the chat.
    host
      .settled(approval)
      .then(async () => this.resume(chat, approval.messageId, again))
      .catch(this.#options.onError)
      .finally(() => {
        this.#runningWithoutTurn -= 1
      })
  }

  /** Goes on with the turn in which a call waits for the client, with nobody reading. Refuses an output that nothing waits for. */
  async submitToolResult(chat: ChatKey, output: OutputAnswer): Promise<void> {
    const backend = await this.#backend.get()
    const found = await this.#findCall(chat, output.toolCallId)
    const key = toApprovalChat(backend, chat)
    const tool = found && (await backend.findTool(key, found.call.toolName))
    const isBrowserTool = tool !== undefined && asBrowserTool(tool) !== undefined
    const isWaiting = found?.call.state === 'waiting'
    // BT3: what another long-running tool waits for is not the client's to give.
    if (found && !isBrowserTool && (isWaiting || tool?.isLongRunning))
      throw refuseForeignOutput(found.call)
    if (!isWaiting || !isBrowserTool)
      throw new ProtocolError('nothing-new', { message: 'No call waits for this output.' })
    await this.resume(chat, found.messageId, { outputs: [output], background: true })
  }

  /** The stored message that holds a call. Undefined if the chat does not hold the call. */
  async messageOf(chat: ChatKey, toolCallId: string): Promise<string | undefined> {
    const found = await this.#findCall(chat, toolCallId)
    return found?.messageId
  }

  /** Goes on with the turn of an approval that was given or that ended, with nobody reading, until the conversation shows what came of it. */
  async resumeAfterDecision(approval: Approval, isNew = false): Promise<void> {
    const { chat, messageId } = approval
    const backend = await this.#backend.get()
    if (!(await backend.agents.has(chat))) return
    // What was given just now was asked, and its call is not kept waiting for a look.
    if (!isNew && (await this.callState(approval)) !== 'asked')
      return this.#orphans.reconcileOrphan(backend, approval)
    if (!this.#attempts.isDue(approval.id)) return
    const answers = { outputs: [], background: true, ...(isNew && { approval }) }
    const turn = await this.resume(chat, messageId, answers)
    await turn.settled
    if (turn.signal.aborted) return
    if ((await this.callState(approval)) !== 'asked') {
      this.#attempts.forget(approval.id)
      return
    }
    // ADK could not tell it, because the tool is gone for example. What has ended is written without ADK, or it would be tried for ever.
    const known = await backend.ledger.get(approval.id)
    if (known?.state.name === 'approved') await this.#recordAttempt(backend, known, turn)
    else if (known) await writeEnding(backend, known)
  }

  /** AP114: an approved call that did not start is tried again later, and cancelled when that leads to nothing. */
  async #recordAttempt(backend: Backend, approval: Approval, turn: Turn): Promise<void> {
    const end = this.#failed.has(turn) ? 'failed' : 'ended'
    if (this.#attempts.note(approval.id, end)) return
    const cancelled = await backend.ledger.cancel(approval.id, CANNOT_START)
    if (isRefusal(cancelled)) return
    await writeEnding(backend, cancelled)
    this.#options.onError(
      new Error(
        `The approved call ${approval.toolCallId} of ${approval.toolName} was cancelled: ADK did not start it, however often it was resumed.`,
      ),
    )
  }

  /** Goes on with a turn whose client gave no output in time, unless it did after all. */
  async expireBrowserCall(wait: BrowserCall): Promise<void> {
    const { chat, messageId, toolCallId } = wait
    const backend = await this.#backend.get()
    if (!(await backend.agents.has(chat))) return
    if ((await this.callState(wait)) === 'waiting') {
      const outputs = [{ toolCallId, result: { errorText: NO_ANSWER } }]
      const turn = await this.resume(chat, messageId, { outputs, background: true })
      await turn.settled
      // A server that closes leaves it to the next one.
      if (turn.signal.aborted) return
    }
    await backend.browserCalls.drop(chat, [toolCallId])
  }

  /** The events of all runs that the answers allow, one after the other: an answer may come while another is followed. */
  async *#runResponses(
    backend: Backend,
    { messageId, signal }: Turn,
    { key, answers }: { key: ApprovalChat; answers: TurnResponses },
  ): AsyncGenerator<Event> {
    const { outputs, completion, background = false } = answers
    const given = new Set<string>()
    for (;;) {
      const replayed = await this.#replay(backend, key, messageId)
      const all = { chat: key, outputs, completion }
      const content = replayed && (await collectResponses(replayed.state, backend, all))
      const ids = readIds(content)
      // What was given once and is still open is not settled by giving it again.
      const isStuck = content !== undefined && ids.every((id) => given.has(id))
      if (isStuck && !background && !signal.aborted) throw new ProtocolError('internal', STUCK)
      if (!content || signal.aborted || isStuck) return
      // EV3: who watches is replayed of what is done, not of a look that finds nothing to do.
      if (given.size === 0) this.#options.onTurn({ ...key, messageId })
      for (const id of ids) given.add(id)
      if (completion && ids.includes(completion.toolCallId)) {
        const { onStored } = completion
        const noted = await backend.host.toCompletion(key, content)
        yield* backend.host.resume(key, messageId, { ...noted, signal, onStored })
        continue
      }
      yield* backend.host.resume(key, messageId, { content, signal })
      const came = outputs.flatMap(({ toolCallId }) => (given.has(toolCallId) ? [toolCallId] : []))
      if (came.length > 0) await backend.browserCalls.drop(key, came)
    }
  }

  async #run(
    backend: Backend,
    turn: Turn,
    {
      chat,
      events,
      ...options
    }: { chat: ChatKey; events: AsyncIterable<Event> } & Pick<
      RunTurnOptions,
      'from' | 'passSound' | 'leavesCalls'
    >,
  ): Promise<void> {
    const { onChunk, onError, exposeState } = this.#options
    const info = { ...chat, messageId: turn.messageId }
    try {
      await traceTurn(info, async () => {
        const outcome = await runTurn(turn, events, {
          exposeState,
          onError,
          onChunk: onChunk && ((chunk) => onChunk(chunk, info)),
          ...options,
        })
        if (outcome.end === 'failed') this.#failed.add(turn)
        await backend.host.settle(toApprovalChat(backend, chat), outcome)
        // A live run gives clients their time itself.
        if (!options.passSound) await this.#watch(backend, info, outcome)
        return outcome
      })
    } catch (error) {
      // The answer is replayed; only the session could not be put in order, and the next turn tries again.
      onError(error)
    }
  }

  /** Gives clients their time to answer the calls that wait for them. */
  async #watch(
    backend: Backend,
    { messageId, ...chat }: TurnInfo,
    { waiting }: RunOutcome,
  ): Promise<void> {
    const key = toApprovalChat(backend, chat)
    for (const [toolCallId, toolName] of waiting) {
      const tool = await backend.findTool(key, toolName)
      const browser = tool && asBrowserTool(tool)
      const call = { chat: key, messageId, toolCallId }
      if (browser) await backend.browserCalls.add(call, browser.timeoutMs)
    }
  }

  /** The state of a call in its stored conversation. Undefined if the conversation does not hold the call. */
  async callState({ chat, messageId, toolCallId }: BrowserCall): Promise<string | undefined> {
    const replayed = await this.#replay(await this.#backend.get(), chat, messageId)
    return replayed?.state.calls.get(toolCallId)?.state
  }

  async #replay(
    { host }: Backend,
    key: ApprovalChat,
    messageId: string,
  ): Promise<ReplayedTurn | undefined> {
    const stored = await host.turn(key, messageId)
    return stored && closeAtPause(replayTurn(stored, this.#options))
  }
}

/** Approvals that have not led to a run, and that do not when they are cancelled. */
const WITHOUT_EFFECT: ReadonlySet<string> = new Set<ApprovalStateName>([
  'requested',
  'denied',
  'expired',
  'cancelled',
])

function ignore(): void {}
async function* noEvents(): AsyncGenerator<Event> {}

const CANNOT_START = 'the agent could not go on with it'

/** AP130: replayed as an error, because a client that gets an answer without an end of its call sends the same again. */
const STUCK = {
  message:
    'The answer is on record, but the agent did not go on by it. Load the conversation again.',
}

function readIds(content: Content | undefined): string[] {
  return content?.parts?.map((part) => part.functionResponse?.id ?? '') ?? []
}

/** Puts into the log what was replayed before, and marks where the clients that answer go on: none of them before a pause. */
async function prefill(
  turn: Turn,
  replayed: ReplayedTurn,
  { backend, key, pause }: { backend: Backend; key: ApprovalChat; pause: number },
): Promise<void> {
  const { chunks, state } = replayed
  const decided = new Set<string>()
  for (const [toolCallId, call] of state.calls) {
    const approval = call.approval && (await backend.ledger.findByCall(key, toolCallId))
    // Who reads all anew is not asked what was decided.
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
