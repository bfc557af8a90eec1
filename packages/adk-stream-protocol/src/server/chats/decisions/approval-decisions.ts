import { setImmediate } from 'node:timers/promises'

import type { Approval, Refusal } from '../../../approvals/approval.ts'
import { isRefusal } from '../../../approvals/approval.ts'
import type { Decider } from '../../../approvals/deciders.ts'
import type { Ledger } from '../../../approvals/ledger.ts'
import type { Decision, DecisionMeans } from '../../../approvals/next-approval.ts'
import { isCompletedBy, refuseInChat } from '../../../approvals/next-approval.ts'
import { cancelIfOutdated } from '../../../calls/outdated-calls.ts'
import type { NamedApproval } from '../../../protocol/tool-results.ts'
import { createAwaitingApprovalError, readToolResult } from '../../../protocol/tool-results.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type {
  DecisionResponse,
  OutputResponse,
  Responses,
} from '../../../protocol/read-responses.ts'
import { isSameChat, type ChatRef } from '../../../shared/chat-ref.ts'
import type { Turn } from '../../../turns/turn.ts'
import type { Principal } from '../../auth/authenticate.ts'
import type { BridgeLimits } from '../../settings/limits.ts'
import type { Backend, LazyBackend } from '../backend.ts'
import { toAppChat } from '../backend.ts'
import type { ChatRuns } from '../chat-runs.ts'
import { cancelIfLost } from '../recovery/lost-questions.ts'
import { toAnswer } from '../turns/question-answers.ts'
import type { DecidedTurns } from './decided-turns.ts'
import {
  type RecordedDecision,
  checkResults,
  isDuplicate,
  isSettled,
  isVote,
  addTakenCount,
  toDecider,
  toError,
} from './decision-results.ts'
import { checkApproved, checkPayload, checkPreview } from '../host/policy-checks.ts'

export interface ApprovalDecisionsOptions {
  readonly backend: LazyBackend
  readonly limits: BridgeLimits
  readonly decidedTurns: Pick<DecidedTurns, 'decideAndResume'>
  readonly runs: Pick<ChatRuns, 'has' | 'decide' | 'mayStart' | 'approvalChanged'>
  /** Resumes the turn of an approval that was just decided, without a reader. */
  readonly resume: (approval: Approval) => void
}

/** Records the decisions of people about tool calls, and resumes the turns that wait for them. */
export class ApprovalDecisions {
  readonly #options: ApprovalDecisionsOptions

  constructor(options: ApprovalDecisionsOptions) {
    this.#options = options
  }

  /** Sorts results into decisions and outputs. Some clients send both under the id of an approval or of a call. */
  async resolve(chat: ChatRef, responses: Responses): Promise<Responses> {
    const decisions = [...responses.decisions]
    const outputs = [...responses.outputs]
    for (const [index, result] of responses.results.entries()) {
      if (index > 0) await setImmediate()
      const read = readToolResult(result, await this.find(chat, result.toolCallId))
      if ('decision' in read) decisions.push(read.decision)
      else outputs.push(read.output)
    }
    return this.#takeAnswers(chat, { ...responses, decisions, outputs, results: [] })
  }

  /** Turns the outputs of calls that ask a question into decisions. */
  async #takeAnswers(chat: ChatRef, responses: Responses): Promise<Responses> {
    const decisions = [...responses.decisions]
    const outputs: OutputResponse[] = []
    for (const output of responses.outputs) {
      const question = await this.findQuestion(chat, output.toolCallId)
      if (question) decisions.push(toAnswer(question, output))
      else outputs.push(output)
    }
    return { ...responses, decisions, outputs }
  }

  /** Returns the question of a call. Returns undefined if the call asks none. */
  async findQuestion(chat: ChatRef, toolCallId: string): Promise<Approval | undefined> {
    const backend = await this.#options.backend.get()
    const found = await backend.ledger.findByCall(toAppChat(backend, chat), toolCallId)
    return found && backend.kinds.of(found).answer ? found : undefined
  }

  /** Returns the error for outputs that change nothing. If a call waits for a decision, the error says what to send. */
  async refuseOutputs(chat: ChatRef, outputs: Responses['outputs']): Promise<ProtocolError> {
    for (const { toolCallId } of outputs.toReversed()) {
      const known = await this.find(chat, toolCallId)
      if (known?.waits === true) return createAwaitingApprovalError(known)
    }
    return new ProtocolError('nothing-new', { message: NOTHING_WAITS })
  }

  /**
   * Records all decisions of a request, and returns the message that continues. If one decision is rejected, the turns of the others
   * resume without a reader and this method throws. Throws `nothing-new` if there is no message to read.
   */
  async decideAll(
    principal: Principal,
    chat: ChatRef,
    { decisions, outputs, messageId }: Responses,
  ): Promise<Continuation> {
    const backend = await this.#options.backend.get()
    // ADK runs several calls one after the other, and an open run runs its calls itself.
    const isAlone = decisions.length === 1 && outputs.length === 0 && !this.#options.runs.has(chat)
    const resumes = isAlone ? 'read' : undefined
    const entries = await this.#recordAll(backend, principal, { decisions, chat, resumes })
    const last = entries.at(-1)
    const taken = entries.map(({ result }) => result).filter(isSettled)
    const votes = entries.map(({ result }) => result).filter(isVote)
    const [vote] = votes
    if (vote) {
      // The client reads the outcomes of the others from the conversation, beside what is still asked.
      for (const entry of entries) this.#resume(entry)
      return { messageId: vote.messageId, seen: vote.id, taken, votes }
    }
    const [first] = taken
    if (first) return { messageId: first.messageId, seen: first.id, taken, turn: last?.turn }
    if (outputs.length > 0 && messageId !== undefined)
      return { messageId, seen: outputs.at(-1)?.toolCallId, taken: [] }
    // The last decision is the newest: a client may send all decisions of the message.
    return catchUp(backend, last)
  }

  /** Records decisions in order. If one is rejected, resumes the turns of the others and throws. */
  async #recordAll(
    backend: Backend,
    principal: Principal,
    { decisions, ...given }: Omit<GivenDecision, 'decision'> & Pick<Responses, 'decisions'>,
  ): Promise<Entry[]> {
    const entries: Entry[] = []
    try {
      // Check all payloads first, so that a request that is too large records nothing.
      for (const decision of decisions) checkPayload(decision, this.#options.limits)
      for (const decision of decisions) {
        // Each decision takes at least one transaction. Other requests run between them.
        if (entries.length > 0) await setImmediate()
        const recorded = await this.#record(backend, principal, { decision, ...given })
        entries.push({ decision, ...(await readOutcome(backend.ledger, decision, recorded)) })
      }
      checkResults(entries)
    } catch (error) {
      const taken = entries.map(({ result }) => result).filter(isSettled)
      for (const result of taken) this.#options.resume(result)
      const recorded = entries.filter(({ result }) => !isRefusedDecision(result))
      const kept = new Set(recorded.map(({ decision }) => decision))
      const refused = decisions.filter((decision) => !kept.has(decision))
      for (const decision of refused)
        await noteRefused(backend, { ...given, decision }, { principal, error })
      throw addTakenCount(error, taken.length, decisions.length)
    }
    for (const { decision, result } of entries)
      if (isRefusal(result)) await this.#reportRepeated(backend, decision.approvalId)
    return entries
  }

  /** AP131: records decisions about approvals that are still pending, and ignores decisions about others, or that were refused before. */
  async decideEarlier(
    principal: Principal,
    chat: ChatRef,
    decisions: readonly DecisionResponse[],
  ): Promise<void> {
    if (decisions.length === 0) return
    const backend = await this.#options.backend.get()
    const pending = await backend.ledger.pendingOf(toAppChat(backend, chat))
    const open = new Set(pending.flatMap(({ id, refusedInChat }) => (refusedInChat ? [] : id)))
    for (const decision of decisions.filter(({ approvalId }) => open.has(approvalId)))
      await this.decideInBackground(principal, chat, decision)
  }

  /**
   * Records a decision of a request that continues another message, and resumes its turn without a reader. Returns the error if it is
   * refused. Throws if it is invalid, or cannot be recorded.
   */
  async decideInBackground(
    principal: Principal,
    chat: ChatRef,
    decision: DecisionResponse,
  ): Promise<ProtocolError | undefined> {
    const backend = await this.#options.backend.get()
    const given = { decision, chat, resumes: 'background' } as const
    try {
      const recorded = await this.#record(backend, principal, given)
      this.#resume(recorded)
      if (!isRefusedDecision(recorded.result)) return undefined
      const error = toError(recorded.result)
      await noteRefused(backend, given, { principal, error })
      return error
    } catch (error) {
      await noteRefused(backend, given, { principal, error })
      throw error
    } finally {
      // Other requests run between several decisions.
      await setImmediate()
    }
  }

  /**
   * Records a decision from the chat, and resumes the turn without a reader. A repeated decision with the same outcome succeeds and has
   * no effect: a client that lost its connection cannot know whether the first one arrived (WS7).
   */
  async decide(principal: Principal, chat: ChatRef, decision: DecisionResponse): Promise<Approval> {
    const backend = await this.#options.backend.get()
    const resumes = 'background'
    const recorded = await this.#record(backend, principal, { decision, chat, resumes })
    const { result } = recorded
    this.#resume(recorded)
    if (!isRefusal(result)) return result
    const current = await backend.ledger.get(decision.approvalId, toDecider(principal))
    if (!current || !isDuplicate(current, decision, result)) throw toError(result)
    this.#options.runs.approvalChanged(current)
    return current
  }

  /** Records a decision from outside the chat, such as an inbox, and resumes the turn without a reader. */
  async decideById(
    principal: Principal,
    decision: DecisionResponse,
    means?: DecisionMeans,
  ): Promise<Approval> {
    const backend = await this.#options.backend.get()
    const given = { decision, resumes: 'background', ...(means && { means }) } as const
    const recorded = await this.#record(backend, principal, given)
    const { result } = recorded
    if (isRefusal(result)) {
      if (result.refused === 'already-decided')
        await this.#reportRepeated(backend, decision.approvalId)
      throw toError(result)
    }
    this.#resume(recorded)
    // Start the call before the HTTP response is written.
    if (isSettled(result)) await setImmediate()
    return result
  }

  /** Answers a question that only the server answers (`answeredBy`), and resumes the turn without a reader. `principal` is who was asked. */
  async answerByServer(principal: Principal, approvalId: string): Promise<void> {
    const backend = await this.#options.backend.get()
    const decision = { approvalId, approved: true }
    const given = { decision, resumes: 'background', byServer: true } as const
    const recorded = await this.#record(backend, principal, given)
    if (isRefusal(recorded.result)) throw toError(recorded.result)
    this.#resume(recorded)
  }

  /**
   * Records the decision of a message in the chat. The caller resumes the turn when the message is stored. Returns undefined if the
   * decision is refused, for example because another one arrived first.
   */
  async recordInChat(
    principal: Principal,
    chat: ChatRef,
    given: { readonly decision: DecisionResponse; readonly means: DecisionMeans },
  ): Promise<Approval | undefined> {
    const backend = await this.#options.backend.get()
    const { result } = await this.#record(backend, principal, { ...given, chat })
    return isRefusal(result) ? undefined : result
  }

  /** Finds the approval that an id names in a chat: its own id, or the id of its call. */
  async find(chat: ChatRef, id: string): Promise<NamedApproval | undefined> {
    const backend = await this.#options.backend.get()
    const { ledger } = backend
    const own = await ledger.get(id)
    const isOwn = own !== undefined && isSameChat(own.chat, chat)
    const found = isOwn ? own : await ledger.findByCall(toAppChat(backend, chat), id)
    if (!found) return undefined
    const { id: approvalId, toolCallId, toolName, messageId, state } = found
    const waits = state.name === 'requested'
    const by = isOwn ? 'approval' : 'call'
    const isQuestion = backend.kinds.of(found).answer !== undefined
    return { by, approvalId, toolCallId, toolName, messageId, waits, isQuestion }
  }

  /** An open run that missed the first of two decisions continues. */
  async #reportRepeated({ ledger }: Backend, approvalId: string): Promise<void> {
    const current = await ledger.get(approvalId)
    if (current) this.#options.runs.approvalChanged(current)
  }

  /** Resumes the turn of a decided approval, unless its call continues already. */
  #resume({ result, continues }: Recorded): void {
    if (isSettled(result) && !continues) this.#options.resume(result)
  }

  /** Checks a decision and records it. With `resumes`, the turn of the call resumes in the same step, if the chat is free. */
  async #record(backend: Backend, principal: Principal, given: GivenDecision): Promise<Recorded> {
    const { limits } = this.#options
    const by = toDecider(principal)
    const { resumes, decision: sent } = given
    checkPayload(sent, limits)
    const approval = await findGiven(backend.ledger, given, by)
    if (!approval) return toRecorded({ refused: 'unknown-approval' })
    // RQ184: throws if the bridge does not have the agent of the chat, because the turn could not resume.
    await backend.agents.of(approval.chat)
    const refusal = await checkApproved(backend, approval, { sent, by, limits })
    if (refusal) return toRecorded(refusal)
    if (sent.approved && !sent.editedArgs) {
      const outdated = await this.#cancelIfOutdated(backend, approval)
      if (outdated) return toRecorded(outdated)
    }
    const means = await chooseMeans(backend, given, by)
    if (isRefusalOf(means)) return toRecorded(means)
    const decision = toDecision({ ...given, ...(means && { means }) }, by)
    const checked = await checkPreview(backend, approval, { decision, digest: sent.preview })
    if (isRefusal(checked)) return toRecorded(checked)
    const seen = checked.seen && { preview: checked.seen }
    return this.#decide(backend, { approval, resumes }, { ...decision, ...seen })
  }

  /** AP1045: cancels a call that its tool no longer accepts, and lets the agent continue without it. */
  async #cancelIfOutdated(backend: Backend, approval: Approval): Promise<Refusal | undefined> {
    const { chat, toolName, terms } = approval
    // The list of an MCP server takes time, and may fail: its calls are checked when they are claimed.
    if (!terms.fitsSchema || terms.claims) return undefined
    const tool = await backend.findTool(chat, toolName)
    const current = tool && (await cancelIfOutdated(backend.ledger, approval, tool))
    if (!current || current.state.name === approval.state.name) return undefined
    this.#options.resume(current)
    return { refused: 'cancelled' }
  }

  /** Records a decision where its call runs: in the open run that asked, under the chat lock, or only in the ledger. */
  async #decide(
    { ledger, kinds }: Backend,
    { approval, resumes }: { readonly approval: Approval; readonly resumes: Resumption },
    decision: Decision,
  ): Promise<Recorded> {
    const { runs, decidedTurns } = this.#options
    // The call that asked runs, here or in another process, and reads the decision from the ledger.
    if (kinds.isAskedDuringCall(approval)) {
      await cancelIfLost(ledger, approval)
      return { result: await ledger.decide(approval.id, decision), continues: true }
    }
    const decidedInRun = await runs.decide(approval, decision)
    if (decidedInRun) return { result: decidedInRun, continues: true }
    if (resumes && isCompletedBy(approval, decision) && (await runs.mayStart(approval))) {
      const isRead = resumes === 'read'
      const decided = await decidedTurns.decideAndResume(approval, decision, { isRead })
      if (decided) return { ...decided, continues: true }
    }
    return { result: await ledger.decide(approval.id, decision, approval), continues: false }
  }
}

const NOTHING_WAITS =
  'No call in this chat waits for this response. Load the conversation to see the current state.'

/** The message that continues after the decisions of a request. */
export interface Continuation {
  readonly messageId: string
  /** The approval or call after which the client continues to read. */
  readonly seen: string | undefined
  /** The approvals that this request decided. */
  readonly taken: readonly Approval[]
  /** The approvals for which this request recorded a vote, and which wait for other people. Default: none. */
  readonly votes?: readonly Approval[]
  /** The turn, if the decision was recorded under the chat lock. */
  readonly turn?: Promise<Turn> | undefined
}

/** How the turn of a decided call resumes with the decision: with or without a reader, or later if undefined. */
type Resumption = 'read' | 'background' | undefined

/** A decision as it arrives. */
interface GivenDecision {
  readonly decision: DecisionResponse
  /** The chat in which it was made. Undefined if it comes from outside, such as an inbox. */
  readonly chat?: ChatRef
  readonly resumes?: Resumption
  /** Set if the server answers the question. */
  readonly byServer?: true
  /** How the person decides, if not in a form and with credentials of their own. */
  readonly means?: DecisionMeans
}

/** Converts a decision to the form that the ledger records. A denial has neither edited arguments nor a payload. */
function toDecision({ decision: sent, byServer, means }: GivenDecision, by: Decider): Decision {
  const { approved, reason, editedArgs, payload } = sent
  return {
    by,
    approved,
    ...(reason !== undefined && { reason }),
    ...(editedArgs !== undefined && approved && { editedArgs }),
    ...(payload !== undefined && approved && { payload }),
    ...(byServer && { byServer }),
    ...(means && { means }),
  }
}

/** Returns how a person decides. A decision by other means than a form and credentials cannot choose an offer. */
async function chooseMeans(
  { prior, ledger }: Backend,
  { decision: { offer }, means }: GivenDecision,
  by: Decider,
): Promise<DecisionMeans | Refusal | undefined> {
  if (offer === undefined) return means
  return prior && !means
    ? prior.choose(offer, by, ledger)
    : { refused: 'not-offered', message: NO_OFFER }
}

function isRefusalOf(means: DecisionMeans | Refusal | undefined): means is Refusal {
  return typeof means === 'object'
}

const NO_OFFER =
  'A grant cannot be chosen here. Decide without it, or choose it in the form with your own account.'

/** The result of recording a decision, and whether its call continues without a further step. */
interface Recorded {
  readonly result: Approval | Refusal
  readonly continues: boolean
  readonly turn?: Promise<Turn>
}

function toRecorded(result: Refusal): Recorded {
  return { result, continues: false }
}

type Entry = Recorded & RecordedDecision

/** AP13: a client sends the decisions of other people with its own. Returns the outcome of a decision that its principal cannot make. */
async function readOutcome(
  ledger: Ledger,
  { approvalId }: DecisionResponse,
  recorded: Recorded,
): Promise<Recorded> {
  if (!isRefusal(recorded.result) || recorded.result.refused !== 'not-allowed') return recorded
  const { state } = (await ledger.get(approvalId)) ?? {}
  if (!state || state.name === 'requested') return recorded
  return toRecorded({ refused: 'already-decided', state })
}

/** Whether a decision was not recorded. A repeated vote was recorded before. */
function isRefusedDecision(result: Approval | Refusal): result is Refusal {
  return isRefusal(result) && result.refused !== 'already-voted'
}

/** AP1043: records that a decision was refused, so that it does not count when the client sends it again with a later message. */
async function noteRefused(
  { ledger, kinds }: Backend,
  given: GivenDecision,
  { principal, error }: { readonly principal: Principal; readonly error: unknown },
): Promise<void> {
  // After a failure of the server, the same decision can be sent again.
  if (!(error instanceof ProtocolError) || error.code === 'unavailable') return
  const by = toDecider(principal)
  const approval = await findGiven(ledger, given, by)
  if (approval?.state.name !== 'requested' || approval.refusedInChat) return
  // A decision that a client keeps has no answer to a question, and is refused again.
  if (!kinds.isAnswerResult(approval))
    await ledger.note(approval.id, refuseInChat({ by, code: error.code }))
}

/** Returns the approval that a decision is about, if the person may see it and it belongs to the chat of the decision. */
async function findGiven(
  ledger: Ledger,
  { chat, decision }: GivenDecision,
  by: Decider,
): Promise<Approval | undefined> {
  const { approvalId } = decision
  const recent = ledger.getRecent(approvalId, by)
  const approval =
    recent && isCheckedByLedger(recent, decision) ? recent : await ledger.get(approvalId, by)
  return approval && (!chat || isSameChat(approval.chat, chat)) ? approval : undefined
}

/** Whether only the ledger checks a decision. It detects that an approval is outdated; the other checks would report a wrong reason. */
function isCheckedByLedger(
  { terms }: Approval,
  { editedArgs, payload }: DecisionResponse,
): boolean {
  const isPlainCall = terms.kind === undefined && terms.preview === undefined
  return isPlainCall && editedArgs === undefined && payload === undefined
}

/** Returns the message that shows the outcome of an earlier decision. */
async function catchUp(
  { ledger, sessions }: Backend,
  entry: Entry | undefined,
): Promise<Continuation> {
  const known = entry && (await ledger.get(entry.decision.approvalId))
  if (!known) throw new ProtocolError('nothing-new')
  const { id, chat, messageId } = known
  // The chat may be deleted, or the message regenerated.
  const { result } = entry
  if (isRefusal(result) && !(await sessions.findTurn(chat, messageId))) throw toError(result)
  return { messageId, seen: id, taken: [] }
}
