import { randomUUID } from 'node:crypto'

import type { Event } from '@google/adk'
import { getFunctionCalls, getFunctionResponses } from '@google/adk'

import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import { hasFinalResponse } from './cut-events.ts'
import { readNotes } from './event-notes.ts'
import { readRunOf } from './unnoted-runs.ts'

/** The start of the ids of the calls that the bridge makes for tools that are nodes of a workflow. */
const TOOL_NODE_CALL = 'tool-node-'

/** Whether the bridge made a call for a tool that is a node. */
export function isToolNodeCall(id = ''): boolean {
  return id.startsWith(TOOL_NODE_CALL)
}

/** Returns an id in the form that ADK gives to such a call: two names and `:` between them. */
export function createCallId(): string {
  return `${TOOL_NODE_CALL}${randomUUID()}:1`
}

/** The call of a tool that is a node, in the current run of the node. */
export interface ToolNodeCall {
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
