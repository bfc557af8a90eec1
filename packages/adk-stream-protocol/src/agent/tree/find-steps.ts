import { isDeepStrictEqual } from 'node:util'

import type { Event } from '@google/adk'
import {
  FINISH_TASK_SUCCESS_RESULT,
  FINISH_TASK_TOOL_NAME,
  getFunctionCalls,
  getFunctionResponses,
} from '@google/adk'

import { endsAgent } from '../events/event-calls.ts'
import { isCallWaiting } from '../translate/translation.ts'
import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import { readOriginalCall } from '../tool-call.ts'
import type { ProgressNote, StepNote } from '../events/event-notes.ts'
import { readNotes } from '../events/event-notes.ts'
import { replayTurn } from '../history/replay-turn.ts'
import { findTurn } from '../history/stored-turns.ts'
import { readRunOf } from './node-runs.ts'

/** An agent that stopped because one of its calls waited, and the steps that it is part of. */
export interface ResumePoint {
  /** The agent that made the call. */
  readonly agent: string
  /** Outermost first. */
  readonly steps: readonly StepNote[]
}

/**
 * Returns where a turn continues with the responses in its last event: at the agents whose calls have a response now, and, in a
 * `ParallelAgent`, at those whose calls got theirs earlier, while another branch still waited. Returns nothing if the calls are not
 * part of a step, or if the steps have continued without the response.
 */
export function findResumePoints(
  events: readonly Event[],
  messageId: string,
  isParallel: (agentName: string) => boolean,
): readonly ResumePoint[] {
  const last = events.at(-1)
  const turn = findTurn(events, messageId)
  if (!last || !turn) return []
  const points = new Map<string, ResumePoint>()
  for (const id of readRespondedIds(last)) {
    const call = turn.events.find((event) => getFunctionCalls(event).some((it) => it.id === id))
    const steps = call && readNotes(call).steps
    if (!steps || hasResponse(turn.events, id, last)) return []
    addPoint(points, { agent: call.author ?? '', steps })
  }
  if (points.size === 0) return []
  const responded = [...points.values()]
  for (const point of findSuspended(turn.events))
    if (responded.some((other) => areBranches(point, other, isParallel))) addPoint(points, point)
  return [...points.values()]
}

/** Whether a call waits for a response in a step of an agent. */
export function isStepWaiting(
  events: readonly Event[],
  messageId: string,
  agentName: string,
): boolean {
  return findWaiting(events, messageId).some(({ event }) =>
    readNotes(event).steps?.some(({ agent }) => agent === agentName),
  )
}

/** An agent in an ADK run. */
interface RunningAgent {
  readonly invocationId: string
  readonly agentName: string
  readonly branch: string | undefined
}

/**
 * Whether an agent must wait for responses that its turn waits for. In a `ParallelAgent`, other agents take the responses that the
 * run has brought for them. In a `ParallelWorker`, all branches have the same agent.
 */
export function isAgentWaiting(
  events: readonly Event[],
  messageId: string,
  { invocationId, agentName, branch }: RunningAgent,
): boolean {
  const waiting = findWaiting(events, messageId)
  if (waiting.length === 0) return false
  const first = events.find((event) => event.invocationId === invocationId)
  const brought = new Set(first && readRespondedIds(first))
  const isOwn = ({ author, nodeInfo, branch: of }: Event): boolean =>
    author === agentName && (nodeInfo === undefined || of === branch)
  return waiting.some(
    ({ id, approvalId, event }) =>
      isOwn(event) || !(brought.has(id) || brought.has(approvalId ?? '')),
  )
}

/** Returns the last progress of an agent in a turn. */
export function findProgress(
  events: readonly Event[],
  messageId: string,
  agentName: string,
): ProgressNote | undefined {
  const turn = findTurn(events, messageId)
  const notes = turn?.events.flatMap((event) => readNotes(event).progress ?? [])
  return notes?.findLast(({ agent }) => agent === agentName)
}

/** What a node of a workflow waits for. */
interface NodeCalls {
  /** The calls that the node has made and that wait. */
  readonly waiting: readonly string[]
  /** All calls of the turn that wait. */
  readonly turnWaiting: readonly string[]
  /** Whether an ADK run has brought a response to a call of the node. */
  readonly hasResponse: boolean
}

/** Returns the calls that a node of a workflow waits for, as an ADK run sees them. */
export function findNodeCalls(
  events: readonly Event[],
  messageId: string,
  { invocationId, path }: { readonly invocationId: string; readonly path: string },
): NodeCalls {
  const waiting = findWaiting(events, messageId)
  const first = events.find((event) => event.invocationId === invocationId)
  const brought = new Set(first && readRespondedIds(first))
  const own = waiting.filter(({ event }) => event.nodeInfo?.path === path)
  const answered = new Set(
    (findTurn(events, messageId)?.events ?? []).flatMap((event) =>
      getFunctionCalls(event).flatMap(({ id = '', name, args }) => {
        if (!brought.has(id)) return []
        return name === CONFIRMATION_TOOL ? (readOriginalId(args) ?? []) : id
      }),
    ),
  )
  return {
    waiting: own.map(({ id }) => id),
    turnWaiting: waiting.map(({ id }) => id),
    hasResponse: own.some(({ id }) => answered.has(id)),
  }
}

/** Returns the arguments of the last successful `finish_task` call in the current run of a node. */
export function findFinishedTask(
  events: readonly Event[],
  messageId: string,
  path: string,
): Record<string, unknown> | undefined {
  const run = readRunOf(events, messageId, path)
  const finished = new Set(
    run.flatMap((event) =>
      getFunctionResponses(event).flatMap(({ id, name, response }) =>
        name === FINISH_TASK_TOOL_NAME && response?.['result'] === FINISH_TASK_SUCCESS_RESULT
          ? (id ?? [])
          : [],
      ),
    ),
  )
  const own = run.filter(({ nodeInfo }) => nodeInfo?.path === path)
  return own.flatMap((event) => getFunctionCalls(event)).findLast(({ id = '' }) => finished.has(id))
    ?.args
}

function readOriginalId(args: Record<string, unknown> | undefined): string | undefined {
  const id = readOriginalCall(args)?.['id']
  return typeof id === 'string' ? id : undefined
}

interface WaitingCall {
  readonly id: string
  readonly approvalId: string | undefined
  /** The event with the call. */
  readonly event: Event
}

/** Returns the calls of a turn that wait for a decision or for a result from outside. */
function findWaiting(events: readonly Event[], messageId: string): WaitingCall[] {
  const turn = findTurn(events, messageId)
  if (!turn) return []
  const { calls } = replayTurn(turn).state
  return turn.events.flatMap((event) =>
    getFunctionCalls(event).flatMap(({ id = '' }) => {
      const call = calls.get(id)
      if (!call || !isCallWaiting(call)) return []
      return { id, approvalId: call.approval?.approvalId, event }
    }),
  )
}

/** Returns the ids of the calls and confirmation requests that an event responds to. */
function readRespondedIds(event: Event): string[] {
  const { input } = readNotes(event)
  const ids = getFunctionResponses(event).flatMap(({ id }) => id ?? [])
  return input ? [...ids, input.toolCallId] : ids
}

/**
 * Returns the agents that have received the response of a call and have not continued: the model is called again only when
 * all calls of the turn have a response (AP8).
 */
function findSuspended(events: readonly Event[]): ResumePoint[] {
  const agents = new Map<string, { point: ResumePoint; isSuspended: boolean }>()
  const callers = new Map<string, string>()
  for (const event of events) {
    const { steps, pending = [] } = readNotes(event)
    const { author: agent = '' } = event
    const responses = getFunctionResponses(event)
    for (const { id = '' } of responses) {
      const caller = pending.includes(id) ? undefined : agents.get(callers.get(id) ?? '')
      if (caller) caller.isSuspended = !endsAgent(event)
    }
    if (!steps || responses.length > 0) continue
    const key = toKey({ agent, steps })
    agents.set(key, { point: { agent, steps }, isSuspended: false })
    for (const { id = '' } of getFunctionCalls(event)) callers.set(id, key)
  }
  return [...agents.values()].flatMap(({ point, isSuspended }) => (isSuspended ? point : []))
}

/** Whether two agents wait in different branches of the same run of a `ParallelAgent`. */
function areBranches(
  { steps }: ResumePoint,
  { steps: others }: ResumePoint,
  isParallel: (agentName: string) => boolean,
): boolean {
  const index = steps.findIndex((step, at) => !isDeepStrictEqual(step, others[at]))
  const [own, other] = [steps[index], others[index]]
  return own !== undefined && own.agent === other?.agent && isParallel(own.agent)
}

/**
 * Whether a call has a result before an event, for example the first return value of a long-running tool. A confirmation may be
 * sent again: a server that received it may have crashed.
 */
function hasResponse(events: readonly Event[], callId: string, before: Event): boolean {
  return events.some(
    (event) =>
      event !== before &&
      event.id !== before.id &&
      !readNotes(event).pending?.includes(callId) &&
      getFunctionResponses(event).some(
        ({ id, name }) => id === callId && name !== CONFIRMATION_TOOL,
      ),
  )
}

function addPoint(points: Map<string, ResumePoint>, point: ResumePoint): void {
  points.set(toKey(point), point)
}

function toKey({ agent, steps }: ResumePoint): string {
  return JSON.stringify([
    agent,
    ...steps.map(({ agent: name, step, iteration }) => [name, step, iteration]),
  ])
}
