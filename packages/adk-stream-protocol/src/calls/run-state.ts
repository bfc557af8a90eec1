import type { BaseSessionService, Event, InvocationContext, Session } from '@google/adk'
import { createEvent } from '@google/adk'

import type {
  DecidedNote,
  EventNotes,
  ModelTimes,
  CallQuestion,
} from '../agent/events/event-notes.ts'
import { writeNotes } from '../agent/events/event-notes.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { chatOf } from '../agent/tool-call.ts'
import type { Approval } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { defer } from '../shared/async.ts'
import type { AppChatRef } from '../shared/chat-ref.ts'
import { toChatKey } from '../shared/chat-ref.ts'
import { SparseMap, SparseSet } from '../shared/collections.ts'

/** Why the agent runs: for a new message, or for the responses that its turn waited for. */
export type RunCause = 'message' | 'responses'

/** The run of the chat's agent, in which agents used as tools run. */
export interface RootRun {
  readonly run: RunState
  readonly session: Session
  /** Undefined if the run has no session service. ADK allows that. */
  readonly sessions: BaseSessionService | undefined
  /** The fields of an event that the agent of the chat writes. */
  readonly author: Pick<Event, 'invocationId' | 'author' | 'branch'>
}

/** A run inside a call, when it was stopped. */
export interface StoppedRun {
  /** The call, which needs a response. */
  readonly call: { readonly id: string; readonly name: string }
  /** The results of approved calls inside, as notes for the session of the chat. */
  readonly results: ReadonlyMap<string, EventNotes>
}

/** What a call of an agent that is used as a tool waits for. */
export interface Pause {
  readonly session: string
  readonly asked: CallQuestion[]
}

/** What runs a call that ADK does not run: a live session. Several of its calls may run at once. */
interface OutsideRun {
  /** How long people may take if the policy does not say, in ms. */
  readonly deadlineMs: number | undefined
  /** Whether the call can wait for approvals inside. */
  readonly canWait: boolean
  /** Stores an event of the agent in the session of the chat. */
  readonly store: (event: Event) => Promise<void>
  /** Called before an approval of a call inside is requested, because a decision may arrive at once. */
  readonly onAsk: (toolCallId: string) => void
  /** Asks a person for something that the approved call needs while it runs. */
  readonly askFollowUp: (call: ToolCall, approval: Approval) => Promise<Record<string, unknown>>
  /** How the call asks while it runs. */
  readonly questions: OutsideQuestions
}

/** How such a call asks while it runs. */
export interface OutsideQuestions {
  /** Aborted when the session ends, or the model cancels the call. */
  readonly signal: AbortSignal
  /** Stores an event of the question in the session of the chat, and streams it. */
  readonly show: (event: Event) => Promise<void>
  /** Called when a person is asked, and before the end of the question is shown. */
  readonly onStateChange: (state: 'asked' | 'ended') => void
  /** The questions of the session. A person is asked one at a time. */
  readonly queue: QuestionQueue
}

/** The last question of running calls. Resolves when it has ended. */
export interface QuestionQueue {
  last: Promise<unknown>
}

/** The state of one run of the agent. A chat has at most one run at a time, besides the calls of a live session. */
export class RunState {
  readonly messageId: string
  readonly cause: RunCause
  /** Results of calls whose event has not arrived. ADK discards the event if another call in it requests approval. */
  readonly results = new SparseMap<
    string,
    { readonly name: string; readonly response: Record<string, unknown> }
  >()
  /** Calls that the next confirmation event will request approval for. */
  readonly asking = new SparseMap<string, ResolvedTerms>()
  /** The ids of approvals that are recorded, and whose requests are not stored in the session yet. */
  readonly requested = new SparseSet<string>()
  /** Claimed calls that ADK runs in sequence and that have not ended: call id → approval id. */
  readonly executing = new SparseMap<string, string>()
  /** Outcomes to add to the responses of their calls. */
  readonly decided = new SparseMap<string, DecidedNote>()
  /** Failed calls whose error message only the model may read. */
  readonly failed = new SparseSet<string>()
  /** Calls whose outcome is stored in the session. */
  readonly endingsStored = new SparseSet<string>()
  /** Calls of agents used as tools that the next confirmation event will pause. */
  readonly pausing = new SparseMap<string, Pause>()
  /** The runs of agents used as tools that have not ended or were stopped. */
  readonly inner = new SparseSet<RunState>()
  /** Set for a call that ADK does not run. */
  readonly outside: OutsideRun | undefined
  /** The questions that calls of this run ask while they run. A person is asked one at a time. */
  readonly questions: QuestionQueue
  /** Called when ADK has stored the message that starts the run. */
  onStored: (() => void) | undefined
  /** Called when an event must be shown before ADK yields its next one. */
  onShown: (() => void) | undefined
  /** The model calls of this run by branch. Agents of parallel branches call the model at the same time. */
  readonly #modelCalls = new SparseMap<string, { startedAt: number; firstAt?: number }>()
  /** The branches whose last model call has produced no event yet. */
  readonly #silentBranches = new SparseSet<string>()
  /** The agents, by branch and name, that are held. */
  readonly #held = new SparseSet<string>()
  readonly #endingsPending = new SparseSet<string>()
  #appended: Event[] = []
  #loss: Error | undefined

  constructor(messageId: string, cause: RunCause, outside?: OutsideRun) {
    this.messageId = messageId
    this.cause = cause
    this.outside = outside
    this.questions = outside?.questions.queue ?? { last: Promise.resolve() }
  }

  /** The names of the agents from the one that called first to this one. Undefined for the agent of the chat. */
  get path(): readonly string[] | undefined {
    return undefined
  }

  /** Whether this is the run of the chat's agent, as opposed to one inside a call. */
  get isOfChat(): boolean {
    return this.path === undefined
  }

  /** The run of the chat's agent that this one is part of. */
  get chatRun(): RunState {
    return this
  }

  /** Returns the run of the chat's agent with its session, for a run with this context. */
  rootOf({ session, sessionService, invocationId, agent, branch }: InvocationContext): RootRun {
    const author = agent?.name ?? 'model'
    const from = { invocationId, author, ...(branch !== undefined && { branch }) }
    return { run: this, session, sessions: sessionService, author: from }
  }

  /** Returns what to store when this run was stopped inside a call. Undefined for the run of the chat's agent. */
  describeStopped(): StoppedRun | undefined {
    return undefined
  }

  /** Whether the model of an agent is not called before other calls of the turn have a response (AP8). */
  isHeld(context: InvocationContext, agentName: string): boolean {
    return this.#held.has(toHeldKey(context, agentName))
  }

  hold(context: InvocationContext, agentName: string): void {
    this.#held.add(toHeldKey(context, agentName))
  }

  unhold(context: InvocationContext, agentName: string): void {
    this.#held.delete(toHeldKey(context, agentName))
  }

  /** This run and all runs inside it. */
  get all(): RunState[] {
    return [this, ...[...this.inner].flatMap((run) => run.all)]
  }

  /**
   * Set if another process has settled a call of this run, or if the outcome of a call inside could not be stored. The run must end. ADK
   * would hide the error that a plugin throws.
   */
  get loss(): Error | undefined {
    return this.#loss
  }

  throwIfLost(): void {
    if (this.#loss) throw this.#loss
  }

  /** Marks the run as lost: another process has settled one of its calls, so neither ADK nor the client may receive the result. */
  markLost(loss: Error = new ProtocolError('turn-lost')): Error {
    this.#loss ??= loss
    return this.#loss
  }

  /** Called when the outcome of a call could not be stored. The error ends the run of the chat's agent by itself. */
  markUnstored(_error: unknown): void {}

  /** Gives up the calls that have not ended, because the run has failed. */
  abandonCalls(ledger: Pick<Ledger, 'abandon'>): void {
    for (const approvalId of this.executing.values()) ledger.abandon(approvalId)
  }

  /** Returns what a call waits for, once, and how its own approval ended, if it needed one. */
  takePause(toolCallId: string): (Pause & { readonly decided?: DecidedNote }) | undefined {
    const pause = this.pausing.get(toolCallId)
    this.pausing.delete(toolCallId)
    const decided = this.decided.get(toolCallId)
    if (pause && decided) this.markEndingPending(toolCallId)
    return pause && { ...pause, ...(decided && { decided }) }
  }

  modelStarted(branch = ''): void {
    this.#modelCalls.set(branch, { startedAt: Date.now() })
    this.#silentBranches.add(branch)
  }

  /** Call this for each event of a branch. */
  markEvent(branch = ''): void {
    if (this.#silentBranches.size > 0) this.#silentBranches.delete(branch)
  }

  /** Whether a model call of the run has produced no event. */
  get hasSilentModel(): boolean {
    return this.#silentBranches.size > 0
  }

  /** Call this for each partial event. */
  modelStreamed(branch = ''): void {
    this.markEvent(branch)
    const call = this.#modelCalls.get(branch)
    if (call) call.firstAt ??= Date.now()
  }

  /** Returns the times of the model call that has just produced a complete event. */
  modelTimes(branch = ''): ModelTimes | undefined {
    const call = this.#modelCalls.get(branch)
    return call && { ...call, endedAt: Date.now() }
  }

  /** Adds an event that the plugin has stored itself and that ADK will not yield. */
  append(event: Event): void {
    this.#appended.push(event)
  }

  /** Adds an event like `append`, and shows it while a call runs, before ADK yields its next event. */
  show(event: Event): void {
    this.append(event)
    this.onShown?.()
  }

  /** Marks the outcome of a call as part of an event that ADK is about to store. */
  markEndingPending(toolCallId: string): void {
    this.#endingsPending.add(toolCallId)
  }

  /** Call this for each event that ADK yields. ADK has stored it and all earlier events. */
  markStored(): void {
    this.requested.clear()
    if (this.#endingsPending.size === 0) return
    for (const toolCallId of this.#endingsPending) this.endingsStored.add(toolCallId)
    this.#endingsPending.clear()
  }

  get hasAppended(): boolean {
    return this.#appended.length > 0
  }

  /** Returns the events that were appended since the last call. */
  takeAppended(): Event[] {
    const taken = this.#appended
    this.#appended = []
    return taken
  }
}

function toHeldKey({ branch = '' }: InvocationContext, agentName: string): string {
  return `${branch} ${agentName}`
}

/** Finds the run that a callback of ADK belongs to. */
export class RunRegistry {
  readonly #byChat = new Map<string, RunState>()
  /** Runs by ADK invocation id. The tools of an abandoned run may still end while its chat has a new run. */
  readonly #byInvocation = new Map<string, RunState>()
  /** Runs of agents that are used as tools, by their sessions. */
  /** The runs with a session of their own. */
  readonly #bySession = new WeakMap<Session, RunState>()

  /** Registers a run of a chat. The caller must close it. */
  open(chat: AppChatRef, messageId: string, cause: RunCause): RunState {
    const run = new RunState(messageId, cause)
    this.#byChat.set(toChatKey(chat), run)
    return run
  }

  close(chat: AppChatRef, run: RunState): void {
    if (this.#byChat.get(toChatKey(chat)) === run) this.#byChat.delete(toChatKey(chat))
    this.release(run)
  }

  /** Registers a run with a session of its own. The caller must release it. */
  openIn(session: Session, run: RunState): void {
    this.#bySession.set(session, run)
  }

  release(run: RunState): void {
    for (const [id, bound] of this.#byInvocation) if (bound === run) this.#byInvocation.delete(id)
  }

  /** Returns undefined for runs of another program. */
  find({ session, invocationId }: InvocationContext): RunState | undefined {
    const run =
      this.#bySession.get(session) ??
      this.#byInvocation.get(invocationId) ??
      this.#byChat.get(toChatKey(chatOf(session)))
    if (run) this.#byInvocation.set(invocationId, run)
    return run
  }

  /** Like `find`, for a run that had a callback before. */
  findByInvocation(invocationId: string): RunState | undefined {
    return this.#byInvocation.get(invocationId)
  }
}

/** Creates an event without content for the session of the chat. */
export function createNote({ run, author }: RootRun, notes: EventNotes): Event {
  const customMetadata = writeNotes({ messageId: run.messageId, ...notes })
  return createEvent({ ...author, customMetadata })
}

/** Stores an event without content in the session of the chat. */
export async function storeNote(root: RootRun, notes: EventNotes): Promise<void> {
  const { run, session, sessions } = root
  const event = createNote(root, notes)
  if (run.outside) return run.outside.store(event)
  await sessions?.appendEvent({ session, event })
  run.append(event)
}

/** Yields the events of ADK, and `undefined` when the run shows an event before the next one: a call runs and asks a question. */
export async function* withShown(
  events: AsyncGenerator<Event>,
  run: RunState,
): AsyncGenerator<Event | undefined> {
  let next: Promise<IteratorResult<Event>> | undefined
  try {
    for (;;) {
      next ??= events.next()
      // It may fail while a shown event is being read.
      next.catch(() => undefined)
      const shown = defer<undefined>()
      run.onShown = () => shown.resolve(undefined)
      const result = run.hasAppended ? undefined : await Promise.race([next, shown.promise])
      if (result?.done === true) return
      if (result) next = undefined
      yield result?.value
    }
  } finally {
    run.onShown = undefined
    await events.return(undefined)
  }
}
