import type { Event } from '@google/adk'
import type { Content, FunctionResponse } from '@google/genai'

import { toStoredResponse } from '../../../agent/call-responses.ts'
import type { Continuation } from '../../../agent/tree/interrupted-turn.ts'
import { findContinuation } from '../../../agent/tree/interrupted-turn.ts'
import type { ReplayedTurn } from '../../../agent/history/replay-turn.ts'
import { asClientTool } from '../../../calls/client-tool.ts'
import { CONFIRMATION_TOOL } from '../../../protocol/message.ts'
import type { Call, Translation } from '../../../agent/translate/translation.ts'
import type { Approval, Refusal } from '../../../approvals/approval.ts'
import { isDecided } from '../../../approvals/approval.ts'
import type { Decision } from '../../../approvals/next-approval.ts'
import { ProtocolError } from '../../../protocol/errors.ts'
import type { OutputResponse } from '../../../protocol/read-responses.ts'
import type { AgentHost } from '../host/agent-host.ts'
import type { Backend } from '../backend.ts'
import { readAnswer, settleQuestions } from './question-answers.ts'
import type { Deferred } from '../../../shared/async.ts'
import type { AppChatRef } from '../../../shared/chat-ref.ts'
import type { Turn } from '../../../turns/turn.ts'
import { isClosing } from '../../../turns/turn.ts'
import { readError } from '../../../store/read-error.ts'
import { listResumable } from '../host/stored-calls.ts'
import type { TurnRunsOptions } from './turn-runs.ts'
import { replayStored } from './turn-runs.ts'

/** The responses that a paused turn resumes with. */
export interface TurnResponses {
  /** The results of clients. Decisions are in the ledger. */
  readonly outputs: readonly OutputResponse[]
  /** Called when outputs are stored. */
  readonly onStored?: () => void
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

export interface PendingDecision {
  readonly approval: Approval
  readonly decision: Decision
  /** Receives the result of recording the decision. */
  readonly result: Deferred<Approval | Refusal>
}

interface Completion extends OutputResponse {
  /** Called when the result is stored. */
  readonly onStored: () => void
}

/** A turn cannot resume, because it waits for calls that still run. */
export class RunningCallError extends ProtocolError {
  readonly approvals: readonly Approval[]

  constructor(approvals: readonly Approval[]) {
    super('approval-decided')
    this.approvals = approvals
  }
}

type Calls = Translation['calls']

interface ResponsesInTurn {
  readonly chat: AppChatRef
  readonly responses: TurnResponses
}

type RunOptions = Pick<TurnRunsOptions, 'onTurn' | 'onLateResults' | 'onError' | 'exposeState'>

/** Throws if a turn cannot resume with these responses. */
export async function checkResponses(
  backend: Backend,
  { state, chunks }: ReplayedTurn,
  { chat, responses, pause }: ResponsesInTurn & { readonly pause: number },
): Promise<void> {
  const { outputs, completion, background = false, refuse } = responses
  if (completion) {
    const call = state.calls.get(completion.toolCallId)
    const fault = await findCompletionFault(call, backend, chat)
    if (fault) throw fault
    return
  }
  const running = await findBlockingCalls(state, backend, chat)
  if (running.length > 0) throw new RunningCallError(running)
  if (await collectResponses(state, backend, { chat, outputs })) return
  // Clients repeat the outputs of all calls of a message. Invalid ones are ignored if another response is valid.
  const foreign = await findForeignOutput(state, backend, { chat, outputs })
  if (foreign) throw refuseForeignOutput(foreign)
  // AP130: after an empty stream, a client would resend the same request again and again.
  const isEmpty = pause >= chunks.length
  if (isEmpty && !background) throw (await refuse?.()) ?? new ProtocolError('nothing-new')
}

/** Yields the events of all runs that the responses allow. More responses may arrive during a run. */
export async function* runResponses(
  backend: Backend,
  { id: turn, messageId, signal }: Turn,
  given: ResponsesInTurn & { readonly options: RunOptions },
): AsyncGenerator<Event> {
  const { host, ledger } = backend
  const { chat, responses, options } = given
  const sent = new Set<string>()
  for (;;) {
    const isFirst = sent.size === 0
    const content = await nextContent(backend, messageId, { ...given, isFirst }).catch(
      (error: unknown) => {
        if (isFirst) throw readError(error)
        // AP825: the agent has replied. A sweep continues with further responses.
        options.onError(error)
      },
    )
    // AP80: another server may have taken over the chat, and have written what this turn was to write.
    const isLost = isFirst && !content && !(await ledger.locks.stillHolds(chat))
    if (isLost && !signal.aborted) throw new ProtocolError('turn-lost')
    if (!content || signal.aborted) return
    const ids = readIds(content)
    if (ids.every((id) => sent.has(id))) {
      // Sending the same responses again would not help.
      if (responses.background) return
      throw new ProtocolError('internal', STUCK)
    }
    // EV1: report a turn only if it has work to do.
    if (isFirst) options.onTurn({ ...chat, messageId, turn })
    for (const id of ids) sent.add(id)
    const run = await prepareRun(backend, messageId, { ...given, content, ids }).catch(
      (error: unknown) => {
        // AP825: a failure of the store is not one of the agent, after which the call would end without a reply.
        throw readError(error)
      },
    )
    yield* host.resume(chat, messageId, { ...run.resumed, signal })
    await run.onEnded?.(signal).catch(options.onError)
  }
}

/** How a turn resumes with responses. */
interface PreparedRun {
  readonly resumed: Omit<Parameters<AgentHost['resume']>[2], 'signal'>
  /** Records what the run has done with the responses. */
  readonly onEnded?: (signal: AbortSignal) => Promise<void>
}

interface NextResponses extends ResponsesInTurn {
  readonly options: RunOptions
  readonly content: Content
  /** The calls and confirmations that the content responds to. */
  readonly ids: readonly string[]
}

async function prepareRun(
  backend: Backend,
  messageId: string,
  { chat, responses, options, content, ids }: NextResponses,
): Promise<PreparedRun> {
  const { host, ledger } = backend
  const { outputs, completion } = responses
  if (completion && ids.includes(completion.toolCallId)) {
    const noted = await host.toCompletion(chat, content)
    return { resumed: { ...noted, onStored: completion.onStored } }
  }
  const settled = await settleQuestions(backend, chat, content)
  let isStored = false
  const onStored = (): void => {
    isStored = true
    responses.onStored?.()
  }
  const onLateResults = (): void => options.onLateResults({ ...chat, messageId })
  const notes = settled && { notes: settled.notes }
  const onEnded = async (signal: AbortSignal): Promise<void> => {
    // AP661: another server checks whether the workflow has continued with the answer.
    if (settled && isStored && !isClosing(signal))
      await ledger.markReported(chat, settled.toolCallIds)
    const delivered = outputs.map(({ toolCallId }) => toolCallId).filter((id) => ids.includes(id))
    if (delivered.length > 0) await backend.waitingCalls.onDelivered(backend, chat, delivered)
  }
  return { resumed: { content, ...notes, onStored, onLateResults }, onEnded }
}

/** Returns the content that the agent continues with: the responses that have arrived, or what a server has left. */
async function nextContent(
  backend: Backend,
  messageId: string,
  {
    chat,
    responses,
    options,
    isFirst,
  }: ResponsesInTurn & { readonly options: RunOptions; readonly isFirst: boolean },
): Promise<Content | undefined> {
  const { outputs, completion, continueAfter } = responses
  const replayed = await replayStored(backend, chat, { messageId, options })
  const inputs = { chat, outputs, completion }
  const collected = replayed && (await collectResponses(replayed.state, backend, inputs))
  return collected === undefined && isFirst && continueAfter
    ? findContinuing(backend, continueAfter)
    : collected
}

/** AP130: sent as an error, because a client whose call does not end would resend the same request. */
const STUCK = {
  message: 'The response is recorded, but the agent did not continue. Load the conversation again.',
}

function readIds(content: Content | undefined): string[] {
  return content?.parts?.map((part) => part.functionResponse?.id ?? '') ?? []
}

/** AP661: returns the content that continues a turn, if nothing has continued it meanwhile. */
export async function findContinuing(
  { sessions }: Backend,
  approval: Approval,
): Promise<Content | undefined> {
  const stored = await sessions.findTurn(approval.chat, approval.messageId)
  const found = stored && findContinuation(stored, approval)
  return found && toContinuation(found)
}

/** The inputs for the calls of a turn. Decisions are in the ledger. */
interface TurnInputs {
  readonly chat: AppChatRef
  /** The results of clients. */
  readonly outputs: readonly OutputResponse[]
  /** The final result of a long-running call, from the application. */
  readonly completion?: OutputResponse | undefined
}

/**
 * Converts responses to the content that ADK resumes a paused turn with: confirmations for decided approvals, results of clients.
 * Returns undefined if there is no response yet.
 */
async function collectResponses(
  { calls }: Translation,
  backend: Backend,
  { chat, outputs, completion }: TurnInputs,
): Promise<Content | undefined> {
  const { ledger } = backend
  const approvals: Approval[] = []
  const results: FunctionResponse[] = []
  for (const [id, call] of calls) {
    const { toolName: name, state, completed } = call
    if (completion?.toolCallId === id && !completed)
      results.push({ id, name, response: toCompletion(completion.result) })
    const approval = state === 'asked' ? await ledger.findByCall(chat, id) : undefined
    if (approval && !isOwnQuestion(backend, approval, call)) {
      approvals.push(approval)
      continue
    }
    const output = state === 'waiting' && outputs.find(({ toolCallId }) => toolCallId === id)
    const given = output ? await readOutput(backend, chat, { name, output }) : undefined
    const response = approval ? readAnswer(approval) : given
    if (response) results.push({ id, name, response })
  }
  // ADK hides events with confirmations from the model, so results are sent first, in an event of their own.
  const responses =
    results.length > 0 ? results : await toConfirmations(backend, { approvals, calls })
  if (responses.length === 0) return undefined
  return { role: 'user', parts: responses.map((functionResponse) => ({ functionResponse })) }
}

/** Returns the response for a client's output. BT3: only the application completes other long-running tools. */
async function readOutput(
  { findTool }: Pick<Backend, 'findTool'>,
  chat: AppChatRef,
  { name, output }: { readonly name: string; readonly output: OutputResponse },
): Promise<Record<string, unknown> | undefined> {
  const tool = await findTool(chat, name)
  return tool && asClientTool(tool)?.toResponse(output.result)
}

/** Whether an approval is a question of the agent of the chat. An agent inside takes the answer itself, when its call resumes. */
function isOwnQuestion({ kinds }: Backend, approval: Approval, { madeBy }: Call): boolean {
  return kinds.isAnswerResult(approval) && madeBy === undefined
}

function toCompletion(result: OutputResponse['result']): Record<string, unknown> {
  return 'errorText' in result ? { error: result.errorText } : toStoredResponse(result.output)
}

/** Returns the first call for which a client sent an output although only the application may complete it (BT3). */
async function findForeignOutput(
  { calls }: Translation,
  { findTool }: Pick<Backend, 'findTool'>,
  { chat, outputs }: Pick<TurnInputs, 'chat' | 'outputs'>,
): Promise<{ readonly toolName: string } | undefined> {
  for (const { toolCallId } of outputs) {
    const call = calls.get(toolCallId)
    if (call?.state !== 'waiting') continue
    const tool = await findTool(chat, call.toolName)
    if (!tool || !asClientTool(tool)) return call
  }
  return undefined
}

/** Creates the error for a client's output of a call that only the application completes. */
export function refuseForeignOutput({ toolName }: { readonly toolName: string }): ProtocolError {
  return new ProtocolError('not-client-output', {
    message: `A page cannot submit the result of ${toolName}: the application on the server completes this call (bridge.completeCall). Nothing was changed.`,
  })
}

/** Returns an error if the application cannot complete a call. */
async function findCompletionFault(
  call: Call | undefined,
  { findTool }: Pick<Backend, 'findTool'>,
  chat: AppChatRef,
): Promise<ProtocolError | undefined> {
  if (!call) return new ProtocolError('unknown-call')
  if (call.completed) return new ProtocolError('call-completed')
  // The agent that made the call does not wait for it.
  if (call.madeBy !== undefined) return new ProtocolError('not-completable')
  const tool = await findTool(chat, call.toolName)
  const isOpen = call.state === 'waiting' || (call.state === 'settled' && tool?.isLongRunning)
  const hasRun = call.approval === undefined || call.approval.state === 'approved'
  if (isOpen && hasRun && !(tool && asClientTool(tool))) return undefined
  return new ProtocolError('not-completable')
}

/**
 * AP65: calls run one after the other, each on the state that the previous one left. A call that has started is confirmed first. A call
 * that may end without a result is confirmed alone: after the result of another call, ADK 2.0.0 runs every confirmed call again that has
 * none.
 */
async function toConfirmations(
  { host, findTool }: Pick<Backend, 'host' | 'findTool'>,
  { approvals, calls }: { readonly approvals: readonly Approval[]; readonly calls: Calls },
): Promise<FunctionResponse[]> {
  const running = approvals.filter((approval) => host.isRunning(approval))
  if (running.length > 0) return running.map(({ id }) => toConfirmation(id, true))
  const decided = approvals.filter(isDecided)
  const own = decided.filter(({ toolCallId }) => calls.get(toolCallId)?.madeBy === undefined)
  const confirmed = listResumable(calls, decided).map((id) => toConfirmation(id, true))
  const isAlone = own.length + confirmed.length === 1
  const mayStayOpen: FunctionResponse[] = []
  for (const { id, state, chat, toolName } of own) {
    const isApproved = state.name === 'approved'
    const tool = isApproved && !isAlone ? await findTool(chat, toolName) : undefined
    const list = tool?.isLongRunning ? mayStayOpen : confirmed
    list.push(toConfirmation(id, isApproved))
  }
  return confirmed.length > 0 ? confirmed : mayStayOpen.slice(0, 1)
}

/** Whether the turn of an approval can resume in this process, which may have started the call at the decision. */
function canResume(approval: Approval, host: Pick<AgentHost, 'isRunning'>): boolean {
  return isDecided(approval) || host.isRunning(approval)
}

/**
 * Returns the calls that still run, in a stopped run or in another process, if a paused turn waits only for them. A client that resumes
 * it would receive nothing and retry at once (AP11).
 */
async function findBlockingCalls(
  { calls }: Translation,
  { ledger, host }: Pick<Backend, 'ledger' | 'host'>,
  chat: AppChatRef,
): Promise<Approval[]> {
  const approvals: Approval[] = []
  for (const [id, { state }] of calls) {
    const approval = state === 'asked' ? await ledger.findByCall(chat, id) : undefined
    if (approval) approvals.push(approval)
  }
  if (approvals.some((approval) => canResume(approval, host))) return []
  return approvals.filter(({ state }) => state.name === 'executing')
}

/** Returns the content that continues a turn. The ledger knows how a confirmed call has ended, so it does not run again. */
function toContinuation(found: Continuation): Content {
  const functionResponse =
    'answer' in found ? found.answer : toConfirmation(found.confirmationId, true)
  return { role: 'user', parts: [{ functionResponse }] }
}

// The ledger decides whether the call runs. The confirmation only makes ADK call the tool.
function toConfirmation(id: string, confirmed: boolean): FunctionResponse {
  return { id, name: CONFIRMATION_TOOL, response: { confirmed } }
}
