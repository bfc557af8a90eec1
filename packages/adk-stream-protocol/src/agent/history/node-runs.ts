import type { Event } from '@google/adk'
import { createEvent } from '@google/adk'
import type { Part } from '@google/genai'

import type { NodeNote } from './event-notes.ts'
import { readNotes } from './event-notes.ts'
import { splitTurns } from './replay-turn.ts'

/** The runs of the nodes of a workflow in one turn. */
export interface NodeRuns {
  /** The runs in the order in which they started to wait or ended. A run that has waited is one run. */
  readonly runs: readonly NodeNote[]
  /** The responses that the turn has received. */
  readonly responses: readonly Part[]
}

/** Reads the runs of nodes from the stored events of a turn. Those before the last end of the given workflow are left out. */
export function readNodeRuns(
  events: readonly Event[],
  messageId: string,
  workflowPath?: string,
): NodeRuns {
  const turn = splitTurns(events).find((it) => it.messageId === messageId)?.events ?? []
  const start = turn.findLastIndex((event) => {
    const { node } = readNotes(event)
    return workflowPath !== undefined && node?.path === workflowPath && node.state === 'done'
  })
  const runs: NodeNote[] = []
  const current = turn.slice(start + 1)
  for (const { node } of current.map((event) => readNotes(event))) {
    if (!node) continue
    const waiting = runs.findLastIndex(({ path }) => path === node.path)
    if (runs[waiting]?.state === 'waiting') runs[waiting] = node
    else runs.push(node)
  }
  const responses = current.flatMap(({ author, content }) =>
    author === 'user' ? (content?.parts ?? []).filter((part) => part.functionResponse) : [],
  )
  return { runs, responses }
}

/**
 * Returns the events from which ADK reads which nodes have ended. ADK's own events are not enough: it takes every text of an agent for
 * its result, runs a node again that ended without a result, and continues an older turn with a new message.
 */
export function toResumeEvents(
  { runs, responses }: NodeRuns,
  { invocationId, isAgent }: { invocationId: string; isAgent: (path: string) => boolean },
): Event[] {
  // The bridge itself continues the agents that wait.
  const kept = runs.filter(({ path, state }) => state === 'done' || !isAgent(path))
  const waiting = new Set(kept.flatMap(({ interrupts = [] }) => interrupts))
  const parts = responses.filter(({ functionResponse }) => waiting.has(functionResponse?.id ?? ''))
  return [
    ...kept.map((run) => toRunEvent(run, invocationId)),
    ...(parts.length > 0
      ? [createEvent({ author: 'user', invocationId, content: { role: 'user', parts } })]
      : []),
  ]
}

function toRunEvent(run: NodeNote, invocationId: string): Event {
  const { path, state, branch, output, route, input, interrupts = [] } = run
  const from = {
    author: path,
    invocationId,
    nodeInfo: { path },
    ...(branch !== undefined && { branch }),
  }
  if (state === 'waiting')
    return createEvent({
      ...from,
      longRunningToolIds: interrupts,
      actions: { agentState: { input } },
    })
  const hasRoute = route !== undefined || output === undefined
  return createEvent({
    ...from,
    ...(output !== undefined && { output }),
    // Without a result or a route, ADK would run the node again. No edge has this route.
    ...(hasRoute && { route: (route ?? NO_ROUTE) as NonNullable<Event['route']> }),
  })
}

const NO_ROUTE = 'adk-stream-protocol:none'
