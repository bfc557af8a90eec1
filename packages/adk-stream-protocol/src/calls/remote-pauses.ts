import { randomUUID } from 'node:crypto'

import type { Event, InvocationContext, RemoteA2AAgent } from '@google/adk'
import {
  BaseTool,
  Context,
  createEvent,
  generateClientFunctionCallId,
  getFunctionCalls,
  getFunctionResponses,
  requestInputTool,
  ToolConfirmation,
} from '@google/adk'
import type { FunctionResponse, Part } from '@google/genai'

import type {
  RemoteEvents,
  RemoteMessage,
  RunRemote,
  RemotePause,
  RemoteTask,
} from '../agent/adk-workarounds/remote-agents.ts'
import {
  cancelRemoteTask,
  getRemoteTask,
  confineRemoteEvent,
  isRemoteEvent,
  readPause,
  readTask,
  readTaskStatus,
  toRemoteCall,
} from '../agent/adk-workarounds/remote-agents.ts'
import { PENDING, toResponse } from '../agent/call-responses.ts'
import { hasFinalResponse } from '../agent/history/cut-events.ts'
import type { RemoteCallNote } from '../agent/history/event-notes.ts'
import { readNotes, writeNotes } from '../agent/history/event-notes.ts'
import { INPUT_CALL, readCallName } from '../agent/history/input-calls.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { chatOf } from '../agent/tool-call.ts'
import type { Approval } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { CONFIRMATION_TOOL } from '../protocol/message.ts'
import { parseOriginalCall } from './approval-events.ts'
import type { CallRunner } from './call-runner.ts'
import type { TermsOptions } from './call-terms.ts'
import { checkCall, resolveQuestionTerms } from './call-terms.ts'
import type { RemoteCall, Unsent, RemoteQuestion, WaitingTask } from './remote-questions.ts'
import {
  describeUnsent,
  HELD,
  NOT_SENT,
  SENT,
  toAnswer,
  isShownInQuestion,
  toQuestions,
  REMOTE_CALL,
} from './remote-questions.ts'
import type { CallOutcome } from './run-call.ts'
import type { RunState } from './run-state.ts'

export interface RemotePausesOptions {
  readonly ledger: Ledger
  readonly runner: CallRunner
  /** Returns the run of the bridge that a remote agent is part of. */
  readonly runOf: (context: InvocationContext) => RunState | undefined
  readonly canWait: (call: ToolCall, run: RunState) => boolean
  readonly termsOf: (run: RunState) => TermsOptions
  /** Records the outcome of a claimed call. Returns false if another process has settled it. */
  readonly record: (call: ToolCall, run: RunState, outcome: CallOutcome) => Promise<boolean>
  readonly onError: (error: unknown) => void
}

/** A pause of a remote agent as the session has it. */
interface StoredPause extends RemoteTask {
  readonly calls: readonly RemoteCall[]
}

/** One run of a remote agent. */
interface RemoteRun {
  readonly agent: RemoteA2AAgent
  readonly context: InvocationContext
  readonly run: RunState
}

/** A call of a remote agent that a person approves. It runs at the remote agent. */
class RemoteTool extends BaseTool {
  constructor(name: string) {
    super({ name, description: 'A call of a remote agent.' })
  }

  override runAsync(): Promise<never> {
    return Promise.reject(new Error('A call of a remote agent does not run here.'))
  }
}

/**
 * Asks the person what remote A2A agents ask, and sends the answers to the tasks that wait. Everything that is needed for this is in
 * the session and in the ledger, so that any server can do it.
 */
export class RemotePauses {
  readonly #options: RemotePausesOptions
  /** The answers that a run has sent. A loop may run the same agent again. */
  readonly #sent = new WeakMap<RunState, Set<string>>()

  constructor(options: RemotePausesOptions) {
    this.#options = options
  }

  readonly run: RunRemote = (agent, context, start) => {
    const run = this.#options.runOf(context)
    if (!run) return confine(start())
    const remote = { agent, context, run }
    const pause = run.cause === 'responses' ? this.#findAnswered(remote) : undefined
    return pause ? this.#resume(remote, pause, start) : this.#relay(remote, start())
  }

  /** Yields the events of a remote agent. If it waits at the end, asks the person. */
  async *#relay(remote: RemoteRun, events: RemoteEvents): RemoteEvents {
    let last: { readonly event: Event; readonly pause: RemotePause } | undefined
    for await (const event of events) {
      const pause = readPause(event)
      // A server may repeat the state of a task before it continues.
      if (last && !pause && !event.partial) {
        confineRemoteEvent(last.event, { isWaiting: false })
        yield last.event
        last = undefined
      }
      if (pause) last = { event, pause }
      else {
        confineRemoteEvent(event)
        yield event
      }
    }
    if (last) yield* this.#ask(remote, last.event, last.pause)
  }

  /** Yields the calls that stand for a pause, and the requests to the person. If it cannot be asked, yields what the agent said. */
  async *#ask(remote: RemoteRun, event: Event, pause: RemotePause): RemoteEvents {
    const { agent, context, run } = remote
    const questions = toQuestions(agent.name, pause)
    const asked = questions && (await this.#resolveTerms(remote, questions))
    if (!asked) {
      confineRemoteEvent(event)
      yield event
      return
    }
    const calls = asked.map(({ toolCallId, question }) => ({
      id: toolCallId,
      name: question.toolName,
      args: question.args,
    }))
    for (const { toolCallId, question, terms } of asked) {
      run.asking.set(toolCallId, { ...terms, title: question.title })
      run.results.set(toolCallId, { name: question.toolName, response: PENDING })
    }
    const shown = questions.flatMap((question) => toShownCall(remote, question))
    if (isShownInQuestion(pause, questions) && event.content?.parts)
      event.content.parts = event.content.parts.slice(0, -pause.partCount)
    confineRemoteEvent(event, { isWaiting: false })
    const parts = [
      ...(event.content?.parts ?? []).filter(({ text }) => text !== ''),
      ...calls.map((functionCall) => ({ functionCall })),
    ]
    const inputs = calls.filter(({ name }) => name === INPUT_CALL)
    yield {
      ...event,
      content: { role: 'model', parts },
      longRunningToolIds: inputs.map(({ id }) => id),
      customMetadata: writeNotes(
        { remote: asked.map(({ toolCallId, question }) => toNote(toolCallId, question)) },
        event.customMetadata,
      ),
    }
    if (shown.length > 0) yield createReply(context, agent, shown)
    yield createRequest(context, agent, calls)
  }

  /** Returns the questions with their terms. Returns undefined if one of them cannot be asked here. */
  async #resolveTerms({ context, run }: RemoteRun, questions: readonly RemoteQuestion[]) {
    const { canWait, termsOf } = this.#options
    const asked: { toolCallId: string; question: RemoteQuestion; terms: ResolvedTerms }[] = []
    for (const question of questions) {
      // The remote server must not choose the id: the ledger knows calls by their ids.
      const toolCallId = `${REMOTE_CALL}${randomUUID()}`
      const call = toToolCall(context, { toolCallId, ...question })
      if (!canWait(call, run)) return undefined
      const terms = await resolveTerms(call, question, termsOf(run))
      if (!terms) return undefined
      asked.push({ toolCallId, question, terms })
    }
    return asked
  }

  /** Returns the pause that the responses of a run are for. Returns undefined if this run has continued it, or if there is none. */
  #findAnswered({ agent, context, run }: RemoteRun): StoredPause | undefined {
    const { events } = context.session
    const first = events.find(({ invocationId }) => invocationId === context.invocationId)
    const responded = new Set(
      (first ? getFunctionResponses(first) : []).flatMap(({ id = '' }) => [
        id,
        ...findConfirmed(events, id),
      ]),
    )
    const sent = this.#sent.get(run) ?? new Set<string>()
    const event = events.find(
      (candidate) =>
        candidate.author === agent.name &&
        readNotes(candidate).remote?.some(
          ({ toolCallId }) => responded.has(toolCallId) && !sent.has(toolCallId),
        ),
    )
    const task = event && readTask(event)
    if (!task) return undefined
    const notes = readNotes(event).remote ?? []
    const calls = getFunctionCalls(event).flatMap(({ id, name = '', args = {} }) => {
      const note = notes.find(({ toolCallId }) => toolCallId === id)
      return note ? { ...note, toolName: readCallName(name), args } : []
    })
    this.#sent.set(run, new Set([...sent, ...notes.map(({ toolCallId }) => toolCallId)]))
    return { ...task, calls }
  }

  /** Settles the calls that were decided. When all of them are, sends the answers to the task and yields its reply. */
  async *#resume(
    remote: RemoteRun,
    pause: StoredPause,
    start: (message?: RemoteMessage) => RemoteEvents,
  ): RemoteEvents {
    const { agent, context, run } = remote
    const { ledger } = this.#options
    const find = async ({ toolCallId }: RemoteCall): Promise<Approval | undefined> =>
      ledger.findByCall(chatOf(context.session), toolCallId)
    const isSettled = ({ toolCallId }: RemoteCall): boolean =>
      context.session.events.some((event) => hasFinalResponse(event, toolCallId))
    const settled: FunctionResponse[] = []
    const claimed: ToolCall[] = []
    let isOpen = false
    let isSent = false
    let mayBeSent = false
    for (const call of pause.calls) {
      const before = (await find(call))?.state.name
      if (before === 'requested') isOpen = true
      else if (!isSettled(call)) {
        // A server that crashed may have sent the answer, or the denial.
        if (before === 'succeeded' || before === 'denied') mayBeSent = true
        const resumed = toToolCall(context, call)
        const response = await this.#options.runner.runForAdk(resumed, run)
        if (response) settled.push(toFunctionResponse(resumed, response))
        else claimed.push(resumed)
        // A server that crashed has sent the approval, and has not stored the reply.
        if (response?.['sent'] === true && resumed.tool instanceof RemoteTool) isSent = true
      }
    }
    const record = async (outcome: CallOutcome): Promise<void> => {
      for (const call of claimed) {
        if (!(await this.#options.record(call, run, outcome))) throw run.markLost()
        const response = toResponse(outcome.result)
        settled.push(toFunctionResponse(call, response))
        run.results.set(call.toolContext.functionCallId ?? '', { name: call.tool.name, response })
      }
    }
    if (isOpen) {
      // AP8: the agent continues when it has all answers.
      await record({ by: 'tool', result: HELD })
      if (settled.length > 0) yield createReply(context, agent, settled)
      return
    }
    const approvals = await Promise.all(pause.calls.map(find))
    const parts = isSent ? 'sent' : toAnswer(pause.calls, approvals)
    if (typeof parts === 'string') {
      await record({ by: 'failure', result: NOT_SENT, error: new Error(parts), hidden: false })
      if (settled.length > 0) yield createReply(context, agent, settled)
      yield createText(context, agent, await this.#end(agent, pause, parts))
      return
    }
    const messageId = `answer-${pause.calls[0]?.toolCallId ?? ''}`
    const { taskId, contextId } = pause
    // An approval that is sent now was not sent before, nor anything together with it.
    const isRepeated = mayBeSent && claimed.length === 0
    const reply = isRepeated ? await this.#findReply(remote, pause, messageId) : undefined
    if (reply) {
      if (settled.length > 0) yield createReply(context, agent, settled)
      yield* this.#relay(remote, only(reply))
      return
    }
    const events = start({
      messageId,
      parts,
      taskId,
      ...(contextId !== undefined && { contextId }),
    })
    const first = await events.next()
    const failure = first.done ? undefined : readSendFailure(first.value)
    await record(
      failure
        ? { by: 'failure', result: NOT_SENT, error: failure, hidden: false }
        : { by: 'tool', result: SENT },
    )
    if (settled.length > 0) yield createReply(context, agent, settled)
    if (!first.done) yield* this.#relay(remote, prepend(first.value, events))
  }

  /** Returns what a task has replied to an answer that may have been sent. Returns undefined if the task still waits for the answer. */
  async #findReply(
    { agent, context }: RemoteRun,
    pause: StoredPause,
    messageId: string,
  ): Promise<Event | undefined> {
    try {
      const { event, messageIds } = readTaskStatus(await getRemoteTask(agent, pause.taskId))
      const waiting = readPause(event)
      const isReceived = messageIds.includes(messageId)
      if (waiting && !isReceived && asksTheSame(agent, waiting, pause)) return undefined
      const parts = event.content?.parts ?? []
      return parts.length > 0 || waiting
        ? { ...event, ...pickAuthor(context, agent) }
        : createText(context, agent, describeUnsent('sent', agent.name))
    } catch (error) {
      this.#options.onError(error)
      return createText(context, agent, describeUnsent('unknown', agent.name))
    }
  }

  /** Cancels tasks whose questions were cancelled and whose agents do not continue. Never rejects. */
  async cancel(
    tasks: readonly WaitingTask[],
    findAgent: (name: string) => RemoteA2AAgent | undefined,
  ): Promise<void> {
    for (const { agent: name, taskId } of tasks) {
      try {
        const agent = findAgent(name)
        if (agent) await cancelRemoteTask(agent, taskId)
      } catch (error) {
        this.#options.onError(error)
      }
    }
  }

  /** Ends a task that gets no answer. Returns what to tell the person and the model. */
  async #end(agent: RemoteA2AAgent, { taskId }: RemoteTask, ending: Unsent): Promise<string> {
    const said = describeUnsent(ending, agent.name)
    if (ending !== 'declined' && ending !== 'expired' && ending !== 'cancelled') return said
    try {
      await cancelRemoteTask(agent, taskId)
      return `${said} Its task was cancelled.`
    } catch (error) {
      this.#options.onError(error)
      return `${said} Its task could not be cancelled and may still wait.`
    }
  }
}

async function resolveTerms(
  call: ToolCall,
  question: RemoteQuestion,
  options: TermsOptions,
): Promise<ResolvedTerms | undefined> {
  if (question.kind === 'approval') {
    const { hint, payload } = question
    return resolveQuestionTerms(call, { hint, ...(payload !== undefined && { payload }) }, options)
  }
  const check = await checkCall(call, options)
  return check.verdict === 'ask' ? check.terms : undefined
}

function toToolCall(
  invocationContext: InvocationContext,
  { toolCallId, toolName, args }: Pick<RemoteCall, 'toolCallId' | 'toolName' | 'args'>,
): ToolCall {
  return {
    tool: toolName === INPUT_CALL ? requestInputTool : new RemoteTool(toolName),
    toolArgs: args,
    toolContext: new Context({ invocationContext, functionCallId: toolCallId }),
  }
}

function toNote(toolCallId: string, { request, signsIn }: RemoteQuestion): RemoteCallNote {
  return { toolCallId, ...(request && { request }), ...(signsIn && { signsIn }) }
}

/** Returns the ids of the calls that a confirmation is about. */
function findConfirmed(events: readonly Event[], confirmationId: string): string[] {
  return events.flatMap((event) =>
    getFunctionCalls(event).flatMap(({ id, name, args }) =>
      id === confirmationId && name === CONFIRMATION_TOOL
        ? (parseOriginalCall(args)?.id ?? [])
        : [],
    ),
  )
}

/** Returns a response to the call of a remote agent that was shown before the agent asked for its approval. */
function toShownCall({ agent, context }: RemoteRun, question: RemoteQuestion): FunctionResponse[] {
  if (question.kind !== 'approval') return []
  const name = question.toolName.slice(agent.name.length + 1)
  const shown = toRemoteCall({ id: question.callId, name }, agent.name)
  const isShown = context.session.events.some((event) =>
    getFunctionCalls(event).some(({ id }) => id === shown.id),
  )
  return isShown ? [{ ...shown, response: { ...PENDING } }] : []
}

function toFunctionResponse(
  { tool, toolContext }: ToolCall,
  response: Record<string, unknown>,
): FunctionResponse {
  return { id: toolContext.functionCallId ?? '', name: tool.name, response }
}

type Author = Pick<InvocationContext, 'invocationId' | 'branch'>

function pickAuthor({ invocationId, branch }: Author, { name }: RemoteA2AAgent) {
  return { author: name, invocationId, ...(branch !== undefined && { branch }) }
}

function createAgentEvent(context: Author, agent: RemoteA2AAgent, parts: Part[]): Event {
  const role = parts.some(({ text }) => text !== undefined) ? 'model' : 'user'
  return createEvent({ ...pickAuthor(context, agent), content: { role, parts } })
}

function createReply(context: Author, agent: RemoteA2AAgent, responses: FunctionResponse[]): Event {
  const parts = responses.map((functionResponse) => ({ functionResponse }))
  return createAgentEvent(context, agent, parts)
}

function createText(context: Author, agent: RemoteA2AAgent, text: string): Event {
  return createAgentEvent(context, agent, [{ text }])
}

/** Creates the event with which ADK requests confirmations. */
function createRequest(
  context: Author,
  agent: RemoteA2AAgent,
  calls: readonly { id: string; name: string; args: Record<string, unknown> }[],
): Event {
  const confirmations = calls.map((originalFunctionCall) => ({
    id: generateClientFunctionCallId(),
    name: CONFIRMATION_TOOL,
    args: { originalFunctionCall },
  }))
  const parts = confirmations.map((functionCall) => ({ functionCall }))
  const event = createAgentEvent(context, agent, parts)
  for (const { id } of calls)
    event.actions.requestedToolConfirmations[id] = new ToolConfirmation({ confirmed: false })
  event.longRunningToolIds = confirmations.map(({ id }) => id)
  return event
}

/** Whether a task still asks what it asked in a pause. It may have received the answer, and wait for another one. */
function asksTheSame(
  { name }: RemoteA2AAgent,
  waiting: RemotePause,
  { calls }: StoredPause,
): boolean {
  const questions = toQuestions(name, waiting) ?? []
  return calls.every(({ request, args }, index) => {
    const now = questions[index]
    if (request) return now?.request?.id === request.id
    return now?.request === undefined && now?.args['message'] === args['message']
  })
}

/** Returns the error of a message that was not sent. ADK yields it as an event. */
function readSendFailure(event: Event): Error | undefined {
  return event.errorMessage !== undefined && !isRemoteEvent(event)
    ? new Error(event.errorMessage)
    : undefined
}

async function* confine(events: RemoteEvents): RemoteEvents {
  for await (const event of events) {
    confineRemoteEvent(event)
    yield event
  }
}

async function* only(event: Event): RemoteEvents {
  yield event
}

async function* prepend(first: Event, rest: RemoteEvents): RemoteEvents {
  yield first
  yield* rest
}
