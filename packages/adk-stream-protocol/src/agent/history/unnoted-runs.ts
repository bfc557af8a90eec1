import type { Event } from '@google/adk'
import { getFunctionCalls, getFunctionResponses } from '@google/adk'

import { isRecord } from '../../protocol/guards.ts'
import type { NodeNote } from './event-notes.ts'
import { readNotes } from './event-notes.ts'
import { isInterrupt } from './input-calls.ts'
import { findTurn } from './replay-turn.ts'

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
