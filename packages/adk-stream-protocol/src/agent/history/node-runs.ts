import type { Event } from '@google/adk'
import { createEvent, getFunctionCalls, getFunctionResponses } from '@google/adk'
import type { FunctionCall } from '@google/genai'

import type { NodeNote } from './event-notes.ts'
import { readNotes } from './event-notes.ts'
import { INPUT_CALL, isInterrupt } from './input-calls.ts'
import { findTurn } from './replay-turn.ts'
import { readRunOf } from './unnoted-runs.ts'

/** The runs of the nodes of a workflow in one turn. */
export interface NodeRuns {
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
