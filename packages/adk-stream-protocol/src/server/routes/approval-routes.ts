import { setImmediate } from 'node:timers/promises'

import { isDeepStrictEqual } from 'node:util'

import { z } from 'zod'

import type { Approval } from '../../approvals/approval.ts'
import type { Decider } from '../../approvals/next-approval.ts'
import { argsToRun, isDecidedAloneBy } from '../../approvals/next-approval.ts'
import type { Refusal, RefusalCode } from '../../approvals/refusal.ts'
import { isRefusal } from '../../approvals/refusal.ts'
import type { ErrorCode } from '../../protocol/errors.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { UncheckedObject } from '../../protocol/raw-message.ts'
import type { Answers, DecisionAnswer } from '../../protocol/read-answers.ts'
import type { NamedApproval } from '../../protocol/read-tool-result.ts'
import { readToolResult, waitsForApproval } from '../../protocol/read-tool-result.ts'
import type { ChatKey } from '../../turns/turns.ts'
import { viewApproval, viewRecord } from './approval-view.ts'
import type { Principal } from '../auth/authenticate.ts'
import type { Backend, BackendOnDemand } from '../chats/backend.ts'
import { toApprovalChat } from '../chats/backend.ts'
import { readJson } from './chat-routes.ts'
import { checkEdit } from '../chats/policy-checks.ts'
import type { Reply } from '../http/exchange.ts'
import { reply } from '../http/exchange.ts'
import type { Edit } from '../chats/policy-checks.ts'
import type { BridgeLimits } from '../options.ts'
import type { Route, Visit } from '../http/route.ts'

export interface ApprovalDeskOptions {
  readonly backend: BackendOnDemand
  readonly limits: BridgeLimits
  /** Goes on with the turn of an approval that was just decided, with nobody reading. */
  readonly resume: (approval: Approval) => void
  /** A decision was repeated: a live conversation that has not heard of the first one goes on by this one. */
  readonly onRepeated: (approval: Approval) => void
}

/** What can be done with approvals: from a chat, and from anywhere else, such as an inbox, a bot or a phone. */
export class ApprovalDesk {
  readonly #options: ApprovalDeskOptions

  constructor(options: ApprovalDeskOptions) {
    this.#options = options
  }

  readonly routes: readonly Route[] = [
    { method: 'GET', path: '/approvals', handle: (visit) => this.#list(visit) },
    { method: 'GET', path: '/approvals/:id', handle: (visit) => this.#show(visit) },
    { method: 'POST', path: '/approvals/:id', handle: (visit) => this.#decide(visit) },
    { method: 'DELETE', path: '/approvals/:id/vote', handle: (visit) => this.#withdraw(visit) },
  ]

  /** Tells decisions from outputs where a client answers under an id that may be of an approval or of a call. */
  async resolve(chat: ChatKey, answers: Answers): Promise<Answers> {
    const decisions = [...answers.decisions]
    const outputs = [...answers.outputs]
    for (const [index, result] of answers.results.entries()) {
      if (index > 0) await setImmediate()
      const read = readToolResult(result, await this.find(chat, result.toolCallId))
      if ('decision' in read) decisions.push(read.decision)
      else outputs.push(read.output)
    }
    return { ...answers, decisions, outputs, results: [] }
  }

  /** The refusal of answers by which nothing changes: it says what to send where a call waits for another answer. */
  async refuseOutputs(chat: ChatKey, outputs: Answers['outputs']): Promise<ProtocolError> {
    for (const { toolCallId } of outputs.toReversed()) {
      const known = await this.find(chat, toolCallId)
      if (known?.waits === true) return waitsForApproval(known)
    }
    return new ProtocolError('nothing-new', { message: NOTHING_WAITS })
  }

  /**
   * Enters the decisions of a chat's client. Says which message goes on by them; refuses when one of them does not stand, while
   * the others go on with nobody reading, and when there is nothing to catch up with.
   */
  async decideAll(
    principal: Principal,
    chat: ChatKey,
    { decisions, outputs, messageId }: Answers,
  ): Promise<Continuation> {
    const backend = await this.#options.backend.get()
    const entries: Entry[] = []
    // Before any of them is entered: a request that is too large is refused whole.
    for (const decision of decisions) checkPayload(decision, this.#options.limits)
    for (const decision of decisions) {
      // Each is one transaction or more, and what others ask must not wait for all of them.
      if (entries.length > 0) await setImmediate()
      const result = await this.#decideOne(backend, principal, { decision, chat })
      entries.push({ decision, result })
    }
    const taken = entries.flatMap(({ result }) => (isSettled(result) ? [result] : []))
    const fallen = entries.find((entry) => !stands(entry))
    if (fallen) {
      for (const approval of taken) this.#options.resume(approval)
      throw isRefusal(fallen.result) ? toError(fallen.result) : new ProtocolError('approval-voted')
    }
    for (const { decision, result } of entries)
      if (isRefusal(result)) await this.#repeat(backend, decision.approvalId)
    const [first] = taken
    if (first) return { messageId: first.messageId, seen: first.id, taken }
    if (outputs.length > 0 && messageId !== undefined)
      return { messageId, seen: outputs.at(-1)?.toolCallId, taken: [] }
    // The last one is the newest: a client may send all that it ever decided in this message.
    return catchUp(backend, entries.at(-1))
  }

  /** AP131: enters decisions about questions that are still open. Of those that were decided before, nothing is told. */
  async decideEarlier(
    principal: Principal,
    chat: ChatKey,
    decisions: readonly DecisionAnswer[],
  ): Promise<void> {
    const backend = await this.#options.backend.get()
    const pending = await backend.ledger.pendingOf(toApprovalChat(backend, chat))
    const open = new Set(pending.map(({ id }) => id))
    for (const decision of decisions.filter(({ approvalId }) => open.has(approvalId))) {
      const result = await this.#decideOne(backend, principal, { decision, chat })
      if (isSettled(result)) this.#options.resume(result)
      await setImmediate()
    }
  }

  /**
   * Decides from the chat, and goes on with the turn with nobody reading. A decision that was taken before, with the same outcome,
   * is taken again as it stands: a client that lost its connection cannot know whether it was heard (WS8).
   */
  async decide(principal: Principal, chat: ChatKey, decision: DecisionAnswer): Promise<Approval> {
    const backend = await this.#options.backend.get()
    const result = await this.#decideOne(backend, principal, { decision, chat })
    if (!isRefusal(result)) {
      if (isSettled(result)) this.#options.resume(result)
      return result
    }
    const standing = await backend.ledger.get(decision.approvalId, toDecider(principal))
    if (!standing || !isRepeat(standing, decision, result)) throw toError(result)
    this.#options.onRepeated(standing)
    return standing
  }

  async #repeat({ ledger }: Backend, approvalId: string): Promise<void> {
    const standing = await ledger.get(approvalId)
    if (standing) this.#options.onRepeated(standing)
  }

  /** The approval that an id stands for in a chat: its own, or that of the call that it is about. */
  async find(chat: ChatKey, id: string): Promise<NamedApproval | undefined> {
    const backend = await this.#options.backend.get()
    const { ledger } = backend
    const own = await ledger.get(id)
    const isOwn = own?.chat.chatId === chat.chatId && own.chat.principalId === chat.principalId
    const found = isOwn ? own : await ledger.findByCall(toApprovalChat(backend, chat), id)
    if (!found) return undefined
    const { id: approvalId, toolCallId, toolName, messageId, state } = found
    const waits = state.name === 'requested'
    return { by: isOwn ? 'approval' : 'call', approvalId, toolCallId, toolName, messageId, waits }
  }

  async #list({ principal, exchange }: Visit): Promise<Reply> {
    const { limit, after } = readPaging(exchange.url)
    const { ledger, refreshHint } = await this.#options.backend.get()
    const waitsFor = toDecider(principal)
    if (after !== undefined && !(await ledger.get(after, waitsFor))) {
      throw new ProtocolError('bad-request', { message: 'There is no page after this approval.' })
    }
    // One more than is shown tells whether there are more.
    const paging = { limit: limit + 1, ...(after !== undefined && { after }) }
    const found = await ledger.list({ waitsFor, ...paging })
    const approvals = await Promise.all(found.slice(0, limit).map(refreshHint))
    const next = found.length > limit ? approvals.at(-1)?.id : undefined
    return reply(200, {
      approvals: approvals.map((approval) => viewApproval(approval, principal)),
      ...(next !== undefined && { next }),
    })
  }

  async #withdraw({ principal, id }: Visit): Promise<Reply> {
    const { ledger } = await this.#options.backend.get()
    const result = await ledger.withdraw(id, toDecider(principal))
    if (isRefusal(result)) throw toError(result)
    return reply(200, { approval: viewApproval(result, principal) })
  }

  async #show({ principal, id }: Visit): Promise<Reply> {
    const { ledger, refreshHint } = await this.#options.backend.get()
    const approval = await ledger.get(id, toDecider(principal))
    if (!approval) throw new ProtocolError('unknown-approval')
    const history = []
    for await (const record of ledger.audit({ approvalId: id }))
      history.push(viewRecord(record, approval, principal))
    const current = await refreshHint(approval)
    return reply(200, { approval: viewApproval(current, principal), history })
  }

  async #decide({ principal, id, exchange }: Visit): Promise<Reply> {
    const body = DecisionBody.safeParse(await readJson(exchange, this.#options.limits))
    if (!body.success) throw new ProtocolError('bad-request', { message: BAD_BODY })
    const { approved, reason, args, payload } = body.data
    const backend = await this.#options.backend.get()
    const decision = {
      approvalId: id,
      approved,
      ...(reason !== undefined && { reason }),
      ...(args !== undefined && { editedArgs: args }),
      ...(payload !== undefined && { payload }),
    }
    const decided = await this.#decideOne(backend, principal, { decision })
    if (isRefusal(decided)) {
      if (decided.refused === 'already-decided') await this.#repeat(backend, id)
      throw toError(decided)
    }
    if (decided.state.name !== 'requested') {
      this.#options.resume(decided)
      // The call first, if it can start at once: it is what the person waits for, and not these words.
      await setImmediate()
    }
    return reply(200, { approval: viewApproval(decided, principal) })
  }

  async #decideOne(
    backend: Backend,
    principal: Principal,
    { decision, chat }: { decision: DecisionAnswer; chat?: ChatKey },
  ): Promise<Approval | Refusal> {
    const { ledger } = backend
    const by = toDecider(principal)
    const { approvalId, approved, reason, editedArgs, payload } = decision
    checkPayload(decision, this.#options.limits)
    const approval = await ledger.get(approvalId, by)
    const isForeign =
      chat &&
      (approval?.chat.chatId !== chat.chatId || approval.chat.principalId !== chat.principalId)
    if (!approval || isForeign) return { refused: 'unknown-approval' }
    // RQ184: without its agent nothing goes on by a decision.
    await backend.agents.of(approval.chat)
    // What was decided already is not judged again.
    if (approved && editedArgs && approval.state.name === 'requested') {
      this.#checkSize(editedArgs)
      const refusal = await refuseEdit(backend, approval, { args: editedArgs, by })
      if (refusal) return refusal
    }
    return ledger.decide(approvalId, {
      by,
      approved,
      ...(reason !== undefined && { reason }),
      ...(editedArgs !== undefined && approved && { editedArgs }),
      ...(payload !== undefined && approved && { payload }),
    })
  }

  /** Changed arguments are written and hashed several times, so they are measured before. */
  #checkSize(args: Readonly<Record<string, unknown>>): void {
    const { maxTextLength } = this.#options.limits
    if (JSON.stringify(args).length <= maxTextLength) return
    const message = `The changed arguments are longer than ${maxTextLength} characters of JSON.`
    throw new ProtocolError('too-large', { message })
  }
}

const NOTHING_WAITS =
  'Nothing in this chat waits for what the request answers. Load the conversation to see what became of it.'

/** Which message goes on by the decisions in a chat. */
interface Continuation {
  readonly messageId: string
  /** The approval that its client has seen asked, or the call that it has seen made. */
  readonly seen: string | undefined
  /** The approvals that were decided by this request. */
  readonly taken: readonly Approval[]
}

/** A decision and what the ledger made of it. */
interface Entry {
  readonly decision: DecisionAnswer
  readonly result: Approval | Refusal
}

const DecisionBody = z.strictObject({
  approved: z.boolean(),
  reason: z.string().max(2_000).optional(),
  args: UncheckedObject.optional(),
  payload: z.unknown().optional(),
})

const MAX_PAGE = 100

const Paging = z.object({
  limit: z.coerce.number().int().min(1).max(MAX_PAGE).default(MAX_PAGE),
  after: z.string().min(1).max(256).optional(),
})

function readPaging({ searchParams }: URL): z.infer<typeof Paging> {
  const paging = Paging.safeParse(Object.fromEntries(searchParams))
  if (paging.success) return paging.data
  const message = `\`limit\` is a number from 1 to ${MAX_PAGE}, \`after\` the \`next\` of the page before.`
  throw new ProtocolError('bad-request', { message })
}

const BAD_BODY =
  'Send { "approved": true or false, "reason"?: text, "args"?: changed arguments, "payload"?: what the tool asked for }.'

function checkPayload({ payload }: DecisionAnswer, { maxPayloadLength }: BridgeLimits): void {
  if (payload === undefined || JSON.stringify(payload).length <= maxPayloadLength) return
  throw new ProtocolError('too-large', {
    message: `The payload is longer than ${maxPayloadLength} characters of JSON. Send less.`,
  })
}

/** Throws on what the tool would refuse; gives a refusal for what this person alone may not make of the call. */
async function refuseEdit(
  { findTool, mayEdit }: Backend,
  approval: Approval,
  edit: Edit,
): Promise<Refusal | undefined> {
  checkEdit(await findTool(approval.chat, approval.toolName), edit.args)
  // All that the ledger refuses by itself is told by it: what was decided, and who may not decide, or not alone.
  const isOpen = approval.state.name === 'requested' && isDecidedAloneBy(approval.terms, edit.by)
  return isOpen && !(await mayEdit(approval, edit)) ? { refused: 'not-editable' } : undefined
}

/** The message in which a client finds what came of a decision that was taken before. */
async function catchUp({ ledger, host }: Backend, entry: Entry | undefined): Promise<Continuation> {
  const known = entry && (await ledger.get(entry.decision.approvalId))
  if (!known) throw new ProtocolError('nothing-new')
  const { id, chat, messageId } = known
  // The message may be gone: with its chat, or because the answer was made anew.
  const { result } = entry
  if (isRefusal(result) && !(await host.turn(chat, messageId))) throw toError(result)
  return { messageId, seen: id, taken: [] }
}

/**
 * Whether a client may go on with what it decided. Where it may not, it would keep a decision that was not taken, or the opposite
 * of what came of it: AI SDK 6 and 7 send the first again and again, and count the second as an invalid message.
 */
function stands({ decision: { approved }, result }: Entry): boolean {
  if (!isRefusal(result)) return isSettled(result)
  if (result.refused === 'already-decided') return approved === (result.state.name !== 'denied')
  // What ended without a decision is told as an error, which fits an approval that came too late.
  return approved && (result.refused === 'expired' || result.refused === 'cancelled')
}

/** Whether a decision that was refused is one that had been taken: the same answer, to run with the same arguments. */
function isRepeat(
  approval: Approval,
  { approved, editedArgs = approval.args, payload }: DecisionAnswer,
  { refused }: Refusal,
): boolean {
  // Only approvals are counted as votes; a denial decides at once.
  if (refused === 'already-voted') return approved
  if (refused !== 'already-decided') return false
  const wasApproved = approval.state.name !== 'denied'
  if (!approved) return !wasApproved
  const given = 'payload' in approval.state ? approval.state.payload : undefined
  return (
    wasApproved &&
    isDeepStrictEqual(editedArgs, argsToRun(approval)) &&
    isDeepStrictEqual(payload, given)
  )
}

/** Whether a decision was the last one needed. */
function isSettled(result: Approval | Refusal): result is Approval {
  return !isRefusal(result) && result.state.name !== 'requested'
}

function toDecider({ id, roles = [] }: Principal): Decider {
  return { id, roles }
}

const ERRORS: Record<RefusalCode, ErrorCode> = {
  'unknown-approval': 'unknown-approval',
  'not-allowed': 'not-allowed',
  'already-decided': 'approval-decided',
  'already-voted': 'approval-voted',
  'not-voted': 'not-voted',
  expired: 'approval-expired',
  cancelled: 'approval-cancelled',
  'not-editable': 'not-editable',
  'no-payload': 'no-payload',
  'not-approved': 'approval-decided',
  mismatch: 'approval-cancelled',
  'too-many-pending': 'approval-cancelled',
  'not-due': 'approval-decided',
}

function toError({ refused }: Refusal): ProtocolError {
  return new ProtocolError(ERRORS[refused])
}
