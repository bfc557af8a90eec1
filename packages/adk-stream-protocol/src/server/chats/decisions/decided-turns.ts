import { describeEnding } from '../../../agent/call-responses.ts'
import type { DecidedCallRef } from '../host/stored-calls.ts'
import type { Approval, Refusal } from '../../../approvals/approval.ts'
import { isDecided, isRefusal, wasUnasked } from '../../../approvals/approval.ts'
import type { Decision } from '../../../approvals/next-approval.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { Backend, LazyBackend } from '../backend.ts'
import { writeEnding } from '../turns/approval-endings.ts'
import { isTurnLeft, readCallState } from '../host/stored-calls.ts'
import type { TurnService } from '../turns/turn-service.ts'
import { RunningCallError } from '../turns/turn-responses.ts'
import { CallTakenError } from '../turns/turn-service.ts'
import { isStoreFailure, readError } from '../../../store/read-error.ts'
import { defer } from '../../../shared/async.ts'
import { toChatKey } from '../../../shared/chat-ref.ts'
import { keepNewest } from '../../../shared/collections.ts'
import type { Turn } from '../../../turns/turn.ts'

/** The result of recording a decision, and the turn that resumes with it. The turn fails if the decision is refused. */
interface DecidedTurn {
  readonly result: Approval | Refusal
  readonly turn: Promise<Turn>
}

interface DecidedTurnsParts {
  readonly backend: LazyBackend
  readonly turnService: Pick<TurnService, 'resume'>
  /** Called when a turn resumes that no decision of this moment has resumed, such as that of a crashed process. */
  readonly onRecovered: (approval: Approval, turn: Turn) => void
  readonly onError: (error: unknown) => void
}

/** Resumes the turns of calls that were decided, until the conversation shows the outcome. */
export class DecidedTurns {
  readonly #parts: DecidedTurnsParts
  /** When each approval without a question in its conversation was first found, by the clock of this process. */
  readonly #orphanFoundAt = new Map<string, number>()
  readonly #attempts = new ResumeAttempts()
  /** The calls whose turns or live sessions failed because the store did. */
  readonly #storeFailures = new Map<string, DecidedCallRef>()

  constructor(parts: DecidedTurnsParts) {
    this.#parts = parts
  }

  /**
   * Records a decision that completes an approval, starts the call in the same commit, and resumes its turn. Returns undefined, and
   * records nothing, if the chat is not free: then the turn resumes when it is.
   */
  async decideAndResume(
    approval: Approval,
    decision: Decision,
    { isRead }: { readonly isRead: boolean },
  ): Promise<DecidedTurn | undefined> {
    const { id, chat, messageId } = approval
    const result = defer<Approval | Refusal>()
    const turn = this.#parts.turnService.resume(chat, messageId, {
      outputs: [],
      decision: { approval, decision, result },
      ...(isRead ? { seen: id } : { background: true }),
    })
    const decided = result.promise.then((outcome) => {
      if (isRead) this.#noteEnd(approval, turn)
      else this.finish(approval, turn)
      return { result: outcome, turn }
    })
    // If the chat is not free, the turn fails before the decision is recorded.
    const failed = turn.then(
      () => undefined,
      () => undefined,
    )
    return Promise.race([decided, failed])
  }

  /**
   * Resumes, without a reader, the turn of an approval that was decided or has ended. Resolves when the conversation shows the outcome.
   * `isNew` says that the approval was decided just now.
   */
  async resumeAfterDecision(approval: Approval, isNew = false): Promise<void> {
    const { chat, messageId } = approval
    const backend = await this.#parts.backend.get()
    if (!(await backend.agents.has(chat))) return
    // The conversation of a new decision contains the call, so its start is not delayed by a check.
    const callState = isNew ? 'asked' : await readCallState(backend, approval)
    if (callState !== 'asked') {
      const hasContinued = await this.#continue(approval)
      if (hasContinued) return
      // The process crashed while it ran a call that nobody was asked about. No question could resume the turn.
      const isLost = callState === 'running' && wasUnasked(approval) && describeEnding(approval)
      return isLost ? writeEnding(backend, approval) : this.#reconcileOrphan(backend, approval)
    }
    if (!this.#attempts.isDue(approval.id)) return
    const reports = isNew ? { approval } : { reports: approval }
    const responses = { outputs: [], background: true, ...reports }
    try {
      const turn = await this.#parts.turnService.resume(chat, messageId, responses)
      if (!isNew) this.#parts.onRecovered(approval, turn)
      await this.#checkOutcome(approval, turn)
    } catch (error) {
      // The open run reports the outcome, or a sweep does when another call of the message has ended.
      if (!(error instanceof CallTakenError || error instanceof RunningCallError)) throw error
    }
  }

  /** AP661: continues a turn whose server stopped between the result of a call and the reply. Returns false if there is nothing to do. */
  async #continue(approval: Approval): Promise<boolean> {
    const { backend, turnService, onRecovered } = this.#parts
    if (!(await isTurnLeft(await backend.get(), approval))) return false
    const { chat, messageId } = approval
    const responses = { outputs: [], background: true, continueAfter: approval }
    const turn = await turnService.resume(chat, messageId, responses).catch(unlessTaken)
    if (!turn) return true
    onRecovered(approval, turn)
    await turn.settled
    this.#noteStoreFailure(approval, turn)
    return true
  }

  /**
   * Reconciles an approval whose conversation does not contain the question: the conversation already shows the ending, the message was
   * removed, or the process crashed between the writes to ledger and session. An approved call is then cancelled, as no turn can resume.
   */
  async #reconcileOrphan(backend: Backend, approval: Approval): Promise<void> {
    const { ledger } = backend
    const { id, chat, toolCallId, state } = approval
    if (state.name !== 'approved') return ledger.markReported(chat, [toolCallId])
    // Another process may be about to store the question. Wait for as long as a lease.
    const foundAt = this.#orphanFoundAt.get(id) ?? performance.now()
    this.#orphanFoundAt.set(id, foundAt)
    keepNewest(this.#orphanFoundAt, MAX_KEPT)
    if (performance.now() - foundAt < ledger.leaseMs) return
    const cancelled = await ledger.cancel(id, LOST)
    this.#orphanFoundAt.delete(id)
    if (!isRefusal(cancelled)) await writeEnding(backend, cancelled)
  }

  /**
   * AP825: returns the approvals whose turns or live sessions failed because the store did, so that they can continue. The caller need
   * not wait for a lease: the work on them has ended here.
   */
  async takeStoreFailures(except: readonly string[]): Promise<Approval[]> {
    if (this.#storeFailures.size === 0) return []
    const { ledger } = await this.#parts.backend.get()
    const found: Approval[] = []
    const taken: string[] = []
    for (const [key, { chat, toolCallId }] of this.#storeFailures) {
      const approval = await ledger.findByCall(chat, toolCallId)
      // The outcome of a call that has ended may not be stored yet.
      if (approval?.state.name === 'executing') continue
      if (approval && except.includes(approval.id)) continue
      taken.push(key)
      if (approval && isDecided(approval)) found.push(approval)
    }
    // Not before: the store may fail again.
    for (const key of taken) this.#storeFailures.delete(key)
    return found
  }

  #noteEnd(approval: Approval, turn: Promise<Turn>): void {
    turn
      .then((opened) => opened.settled.then(() => this.#noteStoreFailure(approval, opened)))
      // The client receives this error.
      .catch((error: unknown) => void this.noteFailure(approval, error))
  }

  /** Lets a sweep continue a call, if the error that ended the work on it is one of the store. Returns whether it is. */
  noteFailure(call: DecidedCallRef, error: unknown): boolean {
    const isOfStore = isStoreFailure(readError(error).code)
    if (isOfStore) this.#addStoreFailure(call)
    return isOfStore
  }

  /** Returns whether a turn failed because the store did. A sweep then resumes it. */
  #noteStoreFailure(approval: Approval, turn: Turn): boolean {
    const hasFailed = isStoreFailure(turn.failure)
    if (hasFailed) this.#addStoreFailure(approval)
    return hasFailed
  }

  #addStoreFailure({ chat, toolCallId }: DecidedCallRef): void {
    this.#storeFailures.set(`${toChatKey(chat)}/${toolCallId}`, { chat, toolCallId })
    keepNewest(this.#storeFailures, MAX_KEPT)
  }

  /** Checks the outcome of a decided call when its turn has ended. If the turn fails, a sweep resumes it. */
  finish(approval: Approval, turn: Promise<Turn>): void {
    turn
      .then((opened) => this.#checkOutcome(approval, opened))
      .catch((error: unknown) => {
        this.noteFailure(approval, error)
        if (!isNothingNew(error)) this.#parts.onError(error)
      })
  }

  /** Checks, when the turn of a decision has ended, that the conversation shows the outcome. */
  async #checkOutcome(approval: Approval, turn: Turn): Promise<void> {
    await turn.settled
    // TU80: another server has the chat. If it does not report the outcome, a sweep does.
    if (turn.signal.aborted || turn.failure === 'turn-lost') return
    if (this.#noteStoreFailure(approval, turn)) return
    const backend = await this.#parts.backend.get()
    if ((await readCallState(backend, approval)) !== 'asked') {
      this.#attempts.forget(approval.id)
      return
    }
    // ADK could not report the outcome, for example because the tool no longer exists. Write the ending without ADK, to end the retries.
    const known = await backend.ledger.get(approval.id)
    if (known?.state.name === 'approved') await this.#recordAttempt(backend, known, turn)
    else if (known) await writeEnding(backend, known)
  }

  /** AP114: records that an approved call did not start. Cancels the call after too many attempts. */
  async #recordAttempt(backend: Backend, approval: Approval, turn: Turn): Promise<void> {
    // The cause of an error may be temporary, unless the agent does not have the tool: ADK then refuses to resume.
    const mayRecover = turn.failure !== undefined && !(await isToolGone(backend, approval))
    const end = mayRecover ? 'failed' : 'ended'
    if (this.#attempts.note(approval.id, end)) return
    const cancelled = await backend.ledger.cancel(approval.id, CANNOT_START)
    if (isRefusal(cancelled)) return
    await writeEnding(backend, cancelled)
    this.#parts.onError(
      new Error(
        `The approved call ${approval.toolCallId} of ${approval.toolName} was cancelled: ADK did not start it after several attempts.`,
      ),
    )
  }
}

/** Whether the agent no longer has the tool of a call. A toolset that cannot be listed may still have it. */
async function isToolGone(
  { findTool }: Backend,
  { chat, toolName, terms }: Approval,
): Promise<boolean> {
  if (terms.kind !== undefined) return false
  return findTool(chat, toolName).then(
    (tool) => tool === undefined,
    () => false,
  )
}

function unlessTaken(error: unknown): undefined {
  if (!(error instanceof CallTakenError)) throw error
}

function isNothingNew(error: unknown): boolean {
  return error instanceof ProtocolError && error.code === 'nothing-new'
}

const LOST = 'the server stopped before the question was part of the conversation'

const CANNOT_START = 'the agent could not continue with it'

/** How often a call is resumed that does not start although the run ends without an error. Another attempt would not change that. */
const MAX_WITHOUT_ERROR = 2
/** How often a call is resumed whose run fails. The cause may be temporary. */
const MAX_WITH_ERROR = 20
const FIRST_DELAY_MS = 250
const LONGEST_DELAY_MS = 60_000
const MAX_KEPT = 10_000

interface Attempts {
  readonly failed: number
  readonly ended: number
  readonly nextAt: number
}

/**
 * Counts the attempts to resume approved calls that did not start. Every attempt adds an event to the session, so the delay doubles and
 * the number of attempts is limited.
 */
export class ResumeAttempts {
  readonly #attempts = new Map<string, Attempts>()

  /** Whether it is time to try again. */
  isDue(approvalId: string): boolean {
    return performance.now() >= (this.#attempts.get(approvalId)?.nextAt ?? 0)
  }

  /** Records an attempt. Returns false if there must not be another one. */
  note(approvalId: string, end: 'failed' | 'ended'): boolean {
    const { failed, ended } = this.#attempts.get(approvalId) ?? { failed: 0, ended: 0 }
    const after = end === 'failed' ? { failed: failed + 1, ended } : { failed, ended: ended + 1 }
    if (after.failed >= MAX_WITH_ERROR || after.ended >= MAX_WITHOUT_ERROR) {
      this.forget(approvalId)
      return false
    }
    const delayMs = Math.min(FIRST_DELAY_MS * 2 ** (failed + ended), LONGEST_DELAY_MS)
    this.#attempts.set(approvalId, { ...after, nextAt: performance.now() + delayMs })
    // Another process may resume the call without notifying this one.
    keepNewest(this.#attempts, MAX_KEPT)
    return true
  }

  forget(approvalId: string): void {
    this.#attempts.delete(approvalId)
  }
}
