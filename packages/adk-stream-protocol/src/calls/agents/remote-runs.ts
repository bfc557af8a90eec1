import type { Event, RemoteA2AAgent } from '@google/adk'
import { createEvent, getFunctionCalls, getFunctionResponses } from '@google/adk'
import type { FunctionResponse } from '@google/genai'

import type {
  RemoteEvents,
  RemoteMessage,
  RunRemote,
  RemotePause,
  RemoteTask,
} from '../../agent/tree/remote-agents.ts'
import {
  cancelRemoteTask,
  getRemoteTask,
  confineRemoteEvent,
  isRemoteEvent,
  readPause,
  readTask,
  readTaskStatus,
} from '../../agent/tree/remote-agents.ts'
import { toError } from '../../agent/adk-workarounds/guard-tool.ts'
import { toResponse, describeEnding } from '../../agent/call-responses.ts'
import { hasFinalResponse } from '../../agent/events/event-calls.ts'
import { readNotes } from '../../agent/events/event-notes.ts'
import { readCallName } from '../../agent/events/input-names.ts'
import type { ToolCall } from '../../agent/tool-call.ts'
import { chatOf } from '../../agent/tool-call.ts'
import type { Approval } from '../../approvals/approval.ts'
import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import { parseOriginalCall } from '../approval-events.ts'
import type { RemoteHost, RemoteRun } from './remote-pauses.ts'
import { createReply, forwardEvents, pickAuthor, RemoteTool, toToolCall } from './remote-pauses.ts'
import type { RemoteCall, WaitingTask } from './remote-questions.ts'
import { toQuestions } from './remote-questions.ts'
import type { CallOutcome } from '../run-call.ts'
import type { RunState } from '../run-state.ts'

/**
 * Returns a function that runs remote A2A agents: it asks the person what they ask, and sends the answers to the tasks that wait.
 * Everything that is needed for this is in the session and in the ledger, so that any server can do it.
 */
export function createRemoteRuns(host: RemoteHost): RunRemote {
  return (agent, context, start) => {
    const run = host.runOf(context)
    if (!run) return confine(start())
    const remote = { agent, context, run, host }
    const pause = run.cause === 'responses' ? findAnswered(remote) : undefined
    const begin: typeof start = (message) => explainFailures(remote, start(message))
    return pause ? resume(remote, pause, begin) : forwardEvents(remote, begin())
  }
}

/** Cancels tasks whose questions were cancelled and whose agents do not continue. Never rejects. */
export async function cancelTasks(
  tasks: readonly WaitingTask[],
  findAgent: (name: string) => RemoteA2AAgent | undefined,
  onError: (error: unknown) => void,
): Promise<void> {
  for (const { agent: name, taskId } of tasks) {
    try {
      const agent = findAgent(name)
      if (agent) await cancelRemoteTask(agent, taskId)
    } catch (error) {
      onError(error)
    }
  }
}

/** The calls whose answers a run has sent. A loop may run the same agent again. */
const answers = new WeakMap<RunState, Set<string>>()

/** A pause of a remote agent as the session has it. */
interface StoredPause extends RemoteTask {
  readonly calls: readonly RemoteCall[]
}

/** Returns the pause that the responses of a run are for. Returns undefined if this run has continued it, or if there is none. */
function findAnswered({ agent, context, run }: RemoteRun): StoredPause | undefined {
  const { events } = context.session
  const sent = answers.get(run) ?? new Set<string>()
  const first = events.find(({ invocationId }) => invocationId === context.invocationId)
  const responded = new Set(
    (first ? getFunctionResponses(first) : []).flatMap(({ id = '' }) => [
      id,
      ...findConfirmed(events, id),
    ]),
  )
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
  for (const { toolCallId } of notes) sent.add(toolCallId)
  answers.set(run, sent)
  return { ...task, calls }
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

/** Settles the calls that were decided. When all of them are, sends the answers to the task and yields its reply. */
async function* resume(
  remote: RemoteRun,
  pause: StoredPause,
  start: (message?: RemoteMessage) => RemoteEvents,
): RemoteEvents {
  const decided = await claimDecided(remote, pause.calls)
  if (decided.isOpen) {
    // AP8: the agent continues when it has all answers.
    yield* settle(remote, decided, { by: 'tool', result: HELD })
    return
  }
  const approvals = await Promise.all(pause.calls.map((call) => findApproval(remote, call)))
  const parts = decided.isSent ? 'sent' : toAnswer(pause.calls, approvals)
  if (typeof parts === 'string') {
    yield* settle(remote, decided, toFailure(new Error(parts)))
    yield createText(remote, await endTask(remote, pause, parts))
    return
  }
  const messageId = `answer-${pause.calls[0]?.toolCallId ?? ''}`
  const { taskId, contextId } = pause
  // An approval that is sent now was not sent before, nor anything together with it.
  const isRepeated = decided.mayBeSent && decided.claimed.length === 0
  const reply = isRepeated ? await findReply(remote, pause, messageId) : undefined
  if (reply) {
    yield* settle(remote, decided)
    yield* forwardEvents(remote, only(reply))
    return
  }
  const events = start({ messageId, parts, taskId, ...(contextId !== undefined && { contextId }) })
  const first = await events.next()
  const failure = first.done ? undefined : readSendFailure(first.value)
  yield* settle(remote, decided, failure ? toFailure(failure) : { by: 'tool', result: SENT })
  if (!first.done) yield* forwardEvents(remote, prepend(first.value, events))
}

/** The calls of a pause that were decided. */
interface ResumedCalls {
  /** The responses to calls that do not run here. */
  readonly settled: FunctionResponse[]
  /** The calls whose answer is sent now. */
  readonly claimed: ToolCall[]
  /** Whether other calls wait for a decision. */
  isOpen: boolean
  /** Whether a server that crashed has sent an approval, and has not stored the reply. */
  isSent: boolean
  /** Whether a server that crashed may have sent an answer, or a denial. */
  mayBeSent: boolean
}

async function claimDecided(
  remote: RemoteRun,
  calls: readonly RemoteCall[],
): Promise<ResumedCalls> {
  const { context, run, host } = remote
  const { events } = context.session
  const found: ResumedCalls = {
    settled: [],
    claimed: [],
    isOpen: false,
    isSent: false,
    mayBeSent: false,
  }
  for (const call of calls) {
    const before = (await findApproval(remote, call))?.state.name
    if (before === 'requested') found.isOpen = true
    else if (!events.some((event) => hasFinalResponse(event, call.toolCallId))) {
      if (before === 'succeeded' || before === 'denied') found.mayBeSent = true
      const resumed = toToolCall(context, call)
      const response = await host.claim(resumed, run)
      if (response) found.settled.push(toFunctionResponse(resumed, response))
      else found.claimed.push(resumed)
      if (response?.['sent'] === true && resumed.tool instanceof RemoteTool) found.isSent = true
    }
  }
  return found
}

/** Yields the responses to decided calls. `outcome` is that of the claimed ones, and is recorded first. */
async function* settle(
  remote: RemoteRun,
  { settled, claimed }: ResumedCalls,
  outcome?: CallOutcome,
): RemoteEvents {
  const { run, host } = remote
  const responses = [...settled]
  for (const call of outcome ? claimed : []) {
    if (!outcome || !(await host.record(call, run, outcome))) throw run.markLost()
    const response = toResponse(outcome.result)
    responses.push(toFunctionResponse(call, response))
    run.results.set(call.toolContext.functionCallId ?? '', { name: call.tool.name, response })
  }
  if (responses.length > 0) yield createReply(remote, responses)
}

function toFailure(error: Error): CallOutcome {
  return { by: 'failure', result: NOT_SENT, error, hidden: false }
}

function findApproval(
  { context, host }: RemoteRun,
  { toolCallId }: RemoteCall,
): Promise<Approval | undefined> {
  return host.ledger.findByCall(chatOf(context.session), toolCallId)
}

function toFunctionResponse(
  { tool, toolContext }: ToolCall,
  response: Record<string, unknown>,
): FunctionResponse {
  return { id: toolContext.functionCallId ?? '', name: tool.name, response }
}

function createText(remote: RemoteRun, text: string): Event {
  return createEvent({ ...pickAuthor(remote), content: { role: 'model', parts: [{ text }] } })
}

/** Returns what a task has replied to an answer that may have been sent. Returns undefined if the task still waits for the answer. */
async function findReply(
  remote: RemoteRun,
  pause: StoredPause,
  messageId: string,
): Promise<Event | undefined> {
  const { agent, host } = remote
  try {
    const { event, messageIds } = readTaskStatus(await getRemoteTask(agent, pause.taskId))
    const waiting = readPause(event)
    const isReceived = messageIds.includes(messageId)
    if (waiting && !isReceived && asksTheSame(agent, waiting, pause)) return undefined
    const parts = event.content?.parts ?? []
    return parts.length > 0 || waiting
      ? { ...event, ...pickAuthor(remote) }
      : createText(remote, describeUnsent('sent', agent.name))
  } catch (error) {
    host.onError(error)
    return createText(remote, describeUnsent('unknown', agent.name))
  }
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

/** Ends a task that gets no answer. Returns what to tell the person and the model. */
async function endTask(
  { agent, host }: RemoteRun,
  { taskId }: RemoteTask,
  ending: Unsent,
): Promise<string> {
  const said = describeUnsent(ending, agent.name)
  if (ending !== 'declined' && ending !== 'expired' && ending !== 'cancelled') return said
  try {
    await cancelRemoteTask(agent, taskId)
    return `${said} Its task was cancelled.`
  } catch (error) {
    host.onError(error)
    return `${said} Its task could not be cancelled and may still wait.`
  }
}

/** Returns the error of a message that was not sent. ADK yields it as an event. */
function readSendFailure(event: Event): Error | undefined {
  return event.errorMessage !== undefined && !isRemoteEvent(event)
    ? new Error(event.errorMessage)
    : undefined
}

/** Yields the events of a remote agent. If it fails, a sentence says so: ADK 2.0.0 makes an event without words, or throws if it cannot read the agent's card. */
async function* explainFailures(remote: RemoteRun, events: RemoteEvents): RemoteEvents {
  try {
    for await (const event of events) {
      const failure = readSendFailure(event)
      yield failure ? { ...explain(remote, failure), errorMessage: failure.message } : event
    }
  } catch (error) {
    const failure = toError(error)
    yield { ...explain(remote, failure), errorMessage: failure.message }
  }
}

/** Matches the responses of servers with other versions of A2A to a message of version 0.3. */
const OTHER_VERSION = /protocol version|VERSION_NOT_SUPPORTED|Expected 'text\/event-stream'/

function explain(remote: RemoteRun, failure: Error): Event {
  const { agent, host } = remote
  const isOtherVersion = OTHER_VERSION.test(failure.message)
  const hint = isOtherVersion
    ? ' Its server seems to speak another version of A2A. ADK 2.0.0 speaks 0.3: on that server, run `npm install @a2a-js/sdk@0.3`.'
    : ''
  host.onError(
    new Error(`The remote agent ${agent.name} failed: ${failure.message}${hint}`, {
      cause: failure,
    }),
  )
  const reason = isOtherVersion
    ? 'its server seems to speak another version of A2A'
    : 'it cannot be reached, or its server refused the message'
  return createText(remote, `The remote agent ${agent.name} failed: ${reason}.`)
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

/** Why a task gets no answer. */
type Unsent = 'declined' | 'expired' | 'cancelled' | 'unknown' | 'failed' | 'sent'

/** Returns what to tell the person and the model. */
function describeUnsent(ending: Unsent, agent: string): string {
  return ENDINGS[ending](agent)
}

const ENDINGS: Readonly<Record<Unsent, (agent: string) => string>> = {
  declined: (agent) => `The question of the agent ${agent} was declined.`,
  expired: (agent) => `The question of the agent ${agent} expired without an answer.`,
  cancelled: (agent) => `The question of the agent ${agent} was cancelled.`,
  unknown: (agent) =>
    `The server stopped while it sent the response to the agent ${agent}. The agent may or may not have received it.`,
  failed: (agent) => `The response could not be sent to the agent ${agent}.`,
  sent: (agent) =>
    `The response was sent to the agent ${agent}, and the server stopped before it replied.`,
}

/** The result of an approved call of a remote agent. */
const SENT = {
  confirmed: true,
  sent: true,
  note: 'The approval was sent to the remote agent.',
}
/** The result of an approved call whose approval waits for other answers. */
const HELD = {
  confirmed: true,
  sent: false,
  note: 'The approval is sent when the other questions of the remote agent have an answer.',
}
/** The result of an approved call whose approval was not sent. */
const NOT_SENT = { error: 'The approval was not sent to the remote agent.' }

/** Returns the parts that answer a pause, or why it gets no answer. */
function toAnswer(
  calls: readonly RemoteCall[],
  approvals: readonly (Approval | undefined)[],
): RemoteMessage['parts'] | Unsent {
  const parts: RemoteMessage['parts'] = []
  for (const [index, call] of calls.entries()) {
    const approval = approvals[index]
    const name = approval?.state.name ?? 'cancelled'
    if (name === 'expired' || name === 'cancelled' || name === 'unknown' || name === 'failed')
      return name
    // An agent that asked with words would take any words for an answer.
    if (name === 'denied' && !call.request) return 'declined'
    if (approval) parts.push(toPart(call, approval))
  }
  return parts
}

function toPart(
  { request, signsIn }: RemoteCall,
  approval: Approval,
): RemoteMessage['parts'][number] {
  const { state, terms } = approval
  const payload = 'payload' in state ? state.payload : undefined
  if (!request) {
    const text = typeof payload === 'string' ? payload : JSON.stringify(payload ?? null)
    return { kind: 'text', text: signsIn ? 'Continue.' : text }
  }
  const isDenied = state.name === 'denied'
  const chosen = payload ?? terms.payload
  const confirmed = { confirmed: true, ...(chosen !== undefined && { payload: chosen }) }
  const decision = isDenied ? { confirmed: false } : confirmed
  const answer = isDenied ? describeEnding(approval)?.response : toResponse(payload)
  const response = terms.kind === undefined ? decision : answer
  return {
    kind: 'data',
    data: { ...request, response },
    metadata: { adk_type: 'function_response' },
  }
}
