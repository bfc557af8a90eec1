import type { Event } from '@google/adk'
import { createEvent, getFunctionCalls, getFunctionResponses } from '@google/adk'
import type { FunctionCall } from '@google/genai'

import { isRecord } from '../../protocol/guards.ts'
import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import { hasFinalResponse } from '../events/event-calls.ts'
import type { NodeNote, ProgressNote, StepNote } from '../events/event-notes.ts'
import { readNotes } from '../events/event-notes.ts'
import { INPUT_CALL, isInterrupt } from '../events/input-names.ts'
import { findTurn } from '../history/stored-turns.ts'

/** The runs of the nodes of a workflow in one turn. */
interface NodeRuns {
  /** The runs in the order of their first notes. A run that has waited is one run. */
  readonly runs: readonly NodeNote[]
  /** The questions of nodes, by the id that the node gave. */
  readonly questions: ReadonlyMap<string, NodeQuestion>
}

/** A `RequestInput` of a node. */
interface NodeQuestion {
  readonly call: FunctionCall
  /** The response for the workflow, if there is one. */
  response?: Record<string, unknown>
  /** Whether the response is an answer, and not the reason why there is none. */
  isAnswer?: boolean
}

/** Returns the notes about nodes of a turn, in the order in which they were stored. */
export function readNodeNotes(events: readonly Event[], messageId: string): NodeNote[] {
  const turn = findTurn(events, messageId)?.events ?? []
  return turn.flatMap((event) => readNotes(event).node ?? [])
}

/** Reads the runs of nodes from the stored events of a turn. Those before the last end of the given workflow are left out. */
export function readNodeRuns(
  events: readonly Event[],
  messageId: string,
  workflowPath?: string,
): NodeRuns {
  const since =
    workflowPath === undefined
      ? (findTurn(events, messageId)?.events ?? [])
      : readRunOf(events, messageId, workflowPath)
  const runs: NodeNote[] = []
  const questions = new Map<string, NodeQuestion>()
  for (const event of since) {
    for (const call of getFunctionCalls(event))
      if (isInterrupt(call)) questions.set(String(call.args?.['interruptId']), { call })
    if (event.author === 'user') addResponses(event, questions)
    const { node } = readNotes(event)
    if (!node) continue
    const index = runs.findLastIndex(({ path }) => path === node.path)
    const last = runs[index]
    if (!last || last.state === 'done') runs.push(node)
    // A run that continues after a pause has the same input and answers.
    else runs[index] = node.state === 'started' ? { ...last, ...node } : node
  }
  return { runs, questions }
}

/** Adds the responses in an event to the questions that they are about. The first one counts. */
function addResponses(event: Event, questions: ReadonlyMap<string, NodeQuestion>): void {
  const { decided = [] } = readNotes(event)
  for (const { id, response = {} } of getFunctionResponses(event)) {
    const question = [...questions.values()].find(({ call }) => call.id === id)
    if (!question || question.response) continue
    const note = decided.find(({ toolCallId }) => toolCallId === id)
    const isAnswer = note === undefined || note.state === 'approved'
    question.isAnswer = isAnswer
    // ADK takes any value out of `result`.
    question.response =
      note && isAnswer && 'approvedPayload' in note ? { result: note.approvedPayload } : response
  }
}

/**
 * Returns the events from which ADK reads which nodes have ended. ADK's own events are not enough: it takes every text of an agent for
 * its result, runs a node again that ended without a result, and continues an older turn with a new message.
 */
export function toResumeEvents(
  { runs, questions }: NodeRuns,
  { invocationId, isAgent }: { invocationId: string; isAgent: (path: string) => boolean },
): Event[] {
  // The bridge itself continues the agents that wait.
  const kept = runs.filter(
    ({ path, state, interrupts = [] }) =>
      state === 'done' || (interrupts.length > 0 && !isAgent(path)),
  )
  // A function waits for the questions of the nodes that it runs. ADK accepts one answer to each question.
  const ids = new Set(
    kept.flatMap(({ state, interrupts = [] }) => (state === 'done' ? [] : interrupts)),
  )
  const parts = [...ids].flatMap((id) => {
    const response = questions.get(id)?.response
    return response ? { functionResponse: { id, name: INPUT_CALL, response } } : []
  })
  return [
    ...kept.map((run) => toRunEvent(run, { invocationId, questions })),
    ...(parts.length > 0
      ? [createEvent({ author: 'user', invocationId, content: { role: 'user', parts } })]
      : []),
  ]
}

function toRunEvent(
  run: NodeNote,
  { invocationId, questions }: Pick<NodeRuns, 'questions'> & { readonly invocationId: string },
): Event {
  const { path, state, branch, output, route, input, interrupts = [] } = run
  const from = {
    author: path,
    invocationId,
    nodeInfo: { path },
    ...(branch !== undefined && { branch }),
  }
  if (state !== 'done') {
    // ADK checks an answer with the schema of the question.
    const calls = interrupts.flatMap((id) => {
      const { call, isAnswer } = questions.get(id) ?? {}
      return call && isAnswer ? { functionCall: { ...call, id } } : []
    })
    return createEvent({
      ...from,
      longRunningToolIds: interrupts,
      actions: { agentState: { input } },
      ...(calls.length > 0 && { content: { role: 'model', parts: calls } }),
    })
  }
  const hasRoute = route !== undefined || output === undefined
  return createEvent({
    ...from,
    ...(output !== undefined && { output }),
    // Without a result or a route, ADK would run the node again. No edge has this route.
    ...(hasRoute && { route: (route ?? NO_ROUTE) as NonNullable<Event['route']> }),
  })
}

const NO_ROUTE = 'adk-stream-protocol:none'

/**
 * Returns the runs of workflow nodes that have ended or wait, as their own events show, and that have no note about it: the server
 * stopped between the two. As for ADK, a function that has given its result has ended.
 */
export function findUnnotedRuns(
  events: readonly Event[],
  messageId: string,
  isAgent: (path: string) => boolean,
): NodeNote[] {
  const turn = findTurn(events, messageId)?.events ?? []
  const found = new Map<string, NodeNote | undefined>()
  for (const event of turn) {
    const { node } = readNotes(event)
    const path = event.nodeInfo?.path
    if (node) found.delete(node.path)
    else if (path !== undefined)
      found.set(path, (isAgent(path) ? readAgentRun : readRun)(event, path, found.get(path)))
  }
  return [...found.values()].filter((note) => note !== undefined)
}

/** Whether the events of a node show that its current run has begun. */
export function hasBegun(events: readonly Event[], messageId: string, path: string): boolean {
  return readRunOf(events, messageId, path).some(
    (event) => event.nodeInfo?.path === path || readNotes(event).node?.path === path,
  )
}

/** Returns the name of the agent with which the current run of a node continues: the node itself, or one to which it has transferred. */
export function findLastAgent(
  events: readonly Event[],
  messageId: string,
  path: string,
): string | undefined {
  const last = readRunOf(events, messageId, path).findLast(
    ({ nodeInfo, content }) => nodeInfo?.path === path && (content?.parts ?? []).length > 0,
  )
  return last?.actions.transferToAgent ?? last?.author
}

/** Returns the events of a turn since a node has last ended. */
export function readRunOf(events: readonly Event[], messageId: string, path: string): Event[] {
  const turn = findTurn(events, messageId)?.events ?? []
  const end = turn.findLastIndex((event) => {
    const { node } = readNotes(event)
    return node?.path === path && node.state === 'done'
  })
  return turn.slice(end + 1)
}

type ReadRun = (event: Event, path: string, known: NodeNote | undefined) => NodeNote | undefined

/** An agent has ended if its last event is its result. */
const readAgentRun: ReadRun = (event, path, known) => {
  if ((event.content?.parts ?? []).length === 0) return known
  const { output, actions } = event
  if (output !== undefined) return { ...startOf(event, path), state: 'done', output }
  const isLast = actions.skipSummarization === true && getFunctionResponses(event).length > 0
  return isLast && !readNotes(event).pending
    ? { ...startOf(event, path), state: 'done' }
    : undefined
}

const readRun: ReadRun = (event, path, known) => {
  const { output = known?.output, route = known?.route, longRunningToolIds = [] } = event
  if (longRunningToolIds.length > 0) {
    const { agentState } = event.actions
    const input = isRecord(agentState) ? agentState['input'] : undefined
    const interrupts = longRunningToolIds.map((id) => readInterrupt(event, id))
    const started = input === undefined ? {} : { input }
    return { ...startOf(event, path), state: 'waiting', interrupts, ...started }
  }
  if (output === undefined && route === undefined) return known
  return {
    ...startOf(event, path),
    state: 'done',
    ...(output !== undefined && { output }),
    ...(route !== undefined && { route }),
  }
}

function startOf({ branch }: Event, path: string): Pick<NodeNote, 'path' | 'branch'> {
  return { path, ...(branch !== undefined && { branch }) }
}

/** Returns the id that a node gave to its question. The session has it under an id of its own. */
function readInterrupt(event: Event, id: string): string {
  const call = getFunctionCalls(event).find((it) => it.id === id)
  return call && isInterrupt(call) ? String(call.args?.['interruptId']) : id
}

/** The call of a tool that is a node, in the current run of the node. */
interface ToolNodeCall {
  readonly id: string
  /** Whether a person was asked, so that the ledger knows whether the call has run. */
  readonly isAsked: boolean
  /** The final response, if there is one. */
  readonly response: Record<string, unknown> | undefined
}

export function findToolNodeCall(
  events: readonly Event[],
  messageId: string,
  path: string,
): ToolNodeCall | undefined {
  const run = readRunOf(events, messageId, path)
  const id = run
    .filter(({ nodeInfo }) => nodeInfo?.path === path)
    .flatMap((event) => getFunctionCalls(event))
    .findLast(({ name }) => name !== CONFIRMATION_TOOL)?.id
  if (id === undefined) return undefined
  const isAsked = run.some((event) => {
    const { asked = [], paused = [] } = readNotes(event)
    return [...asked, ...paused].some(({ toolCallId }) => toolCallId === id)
  })
  const ended = run.findLast((event) => hasFinalResponse(event, id))
  const response = ended && getFunctionResponses(ended).find((it) => it.id === id)?.response
  return { id, isAsked, response }
}

/** Splits the path of a node into the path of its workflow and its name. */
export function splitPath(path: string): [workflowPath: string, name: string] {
  const end = path.lastIndexOf('.')
  return [path.slice(0, Math.max(end, 0)), path.slice(end + 1)]
}

/** Returns the steps that lead to a node: `flow.inner.node` is the node of `inner`, which is a node of `flow`. */
export function toSteps(path: string): StepNote[] {
  const names = path.split('.').map((name) => name.split('@')[0] ?? '')
  return names.slice(1).map((step, index) => ({ agent: names[index] ?? '', step }))
}

/** Returns the progress of a workflow with the ends of nodes that a server left without a note when it stopped. */
export function withEnds(
  progress: ProgressNote,
  path: string,
  runs: readonly NodeNote[],
): ProgressNote {
  const hasEnded = (name: string): boolean =>
    runs.findLast((run) => run.path === `${path}.${name}`)?.state === 'done'
  const steps = progress.steps.map(({ name, state }) => ({
    name,
    state: state === 'running' && hasEnded(name) ? ('done' as const) : state,
  }))
  return { ...progress, steps }
}
