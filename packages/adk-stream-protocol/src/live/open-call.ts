import type { Context, Event, InvocationContext } from '@google/adk'
import { createEvent } from '@google/adk'

import { AWAITING_APPROVAL } from '../agent/call-responses.ts'
import type { DecidedNote, EventNotes } from '../agent/history/event-notes.ts'
import { writeNotes } from '../agent/history/event-notes.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import type { ToolQuestion } from '../calls/call-terms.ts'
import type { CallState } from '../calls/next-call.ts'
import type { Pause } from '../calls/run-state.ts'
import type { WaitingCall } from './live-snapshot.ts'

/** A call of a live session that has not ended. `LiveCalls` changes it. */
export interface OpenCall extends Omit<ToolCall, 'toolContext'> {
  readonly id: string
  /** A call that continues after a pause has a new context, because the pause has stored the changes of the old one. */
  toolContext: Context
  state: CallState
  /** The calls inside the agent that the call runs for which an approval was requested. */
  readonly inside: Set<string>
  /** What the call waits for inside its agent. */
  pause?: Pause
  /** Calls whose outcomes the session has, and which are reported when the event of this call is stored. */
  endings: string[]
  /** The call's approval, if one was requested. */
  approvalId?: string
  /** Set if the model has a status of the call as its function response. */
  parking?: Parking
  /** Expires a browser call. */
  timer?: NodeJS.Timeout
  /** When it expires, in ms since 1970. */
  expiresAt?: number
  /** Whether the result is in the session. */
  isStored: boolean
  /** Whether the call is recorded in `browserCalls`. */
  isBrowserCall: boolean
  /** Whether the result contains the text of an error, which clients must not see. */
  hidesError: boolean
  /** Whether its MCP server waits for the answer of a person. */
  isEliciting: boolean
  /** Aborted when nothing waits for the call any more. Ends the questions of its MCP server. */
  readonly unwanted: AbortController
}

export function createOpenCall(toolCall: ToolCall, isParked: boolean): OpenCall {
  return {
    ...toolCall,
    id: toolCall.toolContext.functionCallId ?? '',
    state: { name: 'new' },
    inside: new Set(),
    endings: [],
    isStored: false,
    isBrowserCall: false,
    hidesError: false,
    ...(isParked && { parking: 'known' }),
    isEliciting: false,
    unwanted: new AbortController(),
  }
}

/** Returns what another process needs to continue a call. Returns undefined if the call does not wait for a client. */
export function toWaitingCall(
  { id, tool, state, approvalId, expiresAt, parking }: OpenCall,
  messageOf: (toolCallId: string) => string,
): WaitingCall | undefined {
  const isAsked = state.name === 'asked' && approvalId !== undefined
  const isHandedOver = state.name === 'delivered' && state.isWaiting && expiresAt !== undefined
  const isPaused = state.name === 'paused' && state.isWaiting
  if (state.isCancelled || (!isAsked && !isHandedOver && !isPaused)) return undefined
  const call = {
    toolCallId: id,
    toolName: tool.name,
    messageId: messageOf(id),
    ...(parking && { isParked: true }),
  }
  if (isPaused) return { ...call, isPaused }
  return { ...call, ...(isAsked ? { approvalId } : { expiresAt }) }
}

/** Creates the event with the result of a call. */
export function toResultEvent(
  call: OpenCall,
  {
    response,
    note,
    messageId,
  }: {
    readonly response: Record<string, unknown>
    readonly note: DecidedNote | undefined
    readonly messageId: string
  },
): Event {
  const { id, tool, toolContext, hidesError } = call
  const { invocationId, agent, branch } = contextOf(call)
  const notes: EventNotes = {
    messageId,
    ...(note && { decided: [note] }),
    ...(hidesError && { failed: [id] }),
  }
  const author = agent?.name
  return createEvent({
    invocationId,
    content: { role: 'user', parts: [{ functionResponse: { id, name: tool.name, response } }] },
    actions: toolContext.actions,
    customMetadata: writeNotes(notes),
    ...(author !== undefined && { author }),
    ...(branch !== undefined && { branch }),
  })
}

/** Whether an approval was requested for a call, or inside the agent that it runs. */
export function wasAsked({ approvalId, inside }: OpenCall): boolean {
  return approvalId !== undefined || inside.size > 0
}

/** Whether a call waits for a decision. */
export function isAsking({ state, isEliciting }: OpenCall): boolean {
  return (
    isEliciting || state.name === 'asked' || state.name === 'deciding' || state.name === 'paused'
  )
}

export function contextOf({ toolContext }: ToolCall): InvocationContext {
  return toolContext.invocationContext
}

/** Returns the confirmation that a tool has requested itself. */
export function readOwnQuestion({
  actions,
  functionCallId = '',
}: Context): ToolQuestion | undefined {
  return actions.requestedToolConfirmations[functionCallId]
}

/**
 * Whether a call is parked: its function response is a status, and its result follows as text. `sent`: the model may not have read the
 * status. `known`: the model has reacted to it.
 */
export type Parking = 'sent' | 'known'

/** The status of a call that was approved and has not ended. */
const UNDER_WAY = {
  status: 'running',
  note: 'Approved and under way. It has not ended: do not say that it is done, and do not call it again. The result comes later.',
} as const

/** Returns the function response that parks a call. */
export function toParkedResponse(isDecided: boolean): Record<string, unknown> {
  return isDecided ? { ...UNDER_WAY } : { ...AWAITING_APPROVAL }
}

/** A call that has ended. */
export interface EndedCall {
  readonly id: string
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  readonly response: Readonly<Record<string, unknown>>
}

/** Returns the text that gives the model the result of a parked call. It names the call, because several may be parked. */
export function describeParkedResult({ id, name, args, response }: EndedCall): string {
  const call = `${name}(${JSON.stringify(args)})`
  return `[Result of the call ${id}, ${call}, which waited for a person: ${JSON.stringify(response)}]`
}
