import type { Context, Event, InvocationContext } from '@google/adk'
import { createEvent } from '@google/adk'

import { canWait } from '../../../agent/tree/can-wait.ts'
import { AWAITING_APPROVAL, makeStorable, toStoredResponse } from '../../../agent/call-responses.ts'
import type { DecidedNote, EventNotes } from '../../../agent/events/event-notes.ts'
import { writeNotes } from '../../../agent/events/event-notes.ts'
import type { ToolCall } from '../../../agent/tool-call.ts'
import type { Approval } from '../../../approvals/approval.ts'
import type { Ledger } from '../../../approvals/ledger.ts'
import type { CallKinds, TermsOptions } from '../../../calls/call-kind.ts'
import { asClientTool } from '../../../calls/client-tool.ts'
import type { CallEvent, CallState } from '../../../calls/next-call.ts'
import type { CallOutcome } from '../../../calls/run-call.ts'
import type { Pause, QuestionQueue, RunState } from '../../../calls/run-state.ts'
import type { RecordOutcome } from '../gemini/live-agent.ts'
import type { Deferred } from '../../../shared/async.ts'
import type { AppChatRef } from '../../../shared/chat-ref.ts'
import type { LiveInput } from './live-input.ts'
import type { LiveCallState, LiveMessages } from './live-message.ts'
import type { WaitingCall } from './live-snapshot.ts'
import type { SessionWriter } from './session-writer.ts'
import { repeatWhileAway } from './store-away.ts'

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
  /** When clients saw that it waits for them, by `performance.now()`. Undefined if it does not wait. */
  shownAt?: number | undefined
  /** Set if the model has a status of the call as its function response. */
  parking?: Parking
  /** Expires a call that was handed over to a client. */
  timer?: NodeJS.Timeout
  /** When it expires, in ms since 1970 by the clock of the database. */
  expiresAt?: number
  /** Whether the result is in the session. */
  isStored: boolean
  /** Resolves when an output that a client has sent is stored, or with false when it will not be stored here. */
  output?: Deferred<boolean>
  /** Whether the bridge follows the call, which was handed over to a client. */
  isFollowed: boolean
  /** Whether the result contains the text of an error, which clients must not see. */
  hidesError: boolean
  /** Whether it runs, and waits for the answer of a person to go on. */
  asksDuringRun: boolean
  /** Why the call, or the agent that it runs, cannot continue here. */
  loss?: unknown
  /** Aborted when nothing waits for the call any more. Ends its questions. */
  readonly unwanted: AbortController
}

/**
 * Whether a call is parked: its function response is a status, and its result follows as text. `sent`: the model may not have read the
 * status. `known`: the model has reacted to it.
 */
type Parking = 'sent' | 'known'

/** What the calls of a live session need of its conversation. */
export interface LiveCallsOptions {
  readonly chat: AppChatRef
  readonly messages: LiveMessages
  readonly input: LiveInput
  readonly session: SessionWriter
  readonly ledger: Ledger
  readonly terms: TermsOptions
  readonly kinds: CallKinds
  /** Runs a tool with the host's plugins and callbacks. `outer` is the run that an agent used as a tool runs in. */
  readonly runTool: (call: ToolCall, record: RecordOutcome, outer: RunState) => Promise<CallOutcome>
  /** Whether the conversation has not ended, and is not about to. */
  readonly isOpen: () => boolean
  /** Called when a result was stored in a message that is not streamed any more. */
  readonly onLateResult: (messageId: string) => void
  /** A client has so long to run this call. The bridge follows the call, also when this run has ended. */
  readonly onHandedOver: (
    call: Pick<Approval, 'chat' | 'messageId' | 'toolCallId'>,
    timeoutMs: number,
  ) => Promise<void>
  /** The conversation has the results of these calls, which were handed over. */
  readonly onDelivered: (chat: AppChatRef, toolCallIds: readonly string[]) => Promise<void>
  /** The questions of these calls were cancelled, and nobody continues them. */
  readonly onCancelled: (
    chat: AppChatRef,
    calls: readonly Pick<Approval, 'toolCallId'>[],
  ) => Promise<void>
  /** Another process has settled a call of this run and continues the conversation. */
  readonly onLost: () => void
  /** An error has ended the work on these calls here, before the conversation had their results. Returns whether a sweep continues them. */
  readonly onLeft: (toolCallIds: readonly string[], error: unknown) => boolean
  readonly onStateChange: (toolCallId: string, state: LiveCallState) => void
  readonly onError: (error: unknown) => void
}

/** The live session that calls are part of. */
export interface LiveSession extends LiveCallsOptions {
  readonly calls: Calls
  /** The questions that calls ask while they run. */
  readonly questions: QuestionQueue
}

/** The calls of a live run, as the work on one of them sees them. */
interface Calls {
  /** Applies an event that the work on a call produced, and performs its effects as part of that work. */
  advance(call: OpenCall, event: CallEvent): Promise<void>
  /** Applies an event to a call, and performs its effects in the background. Returns false if the event changed nothing. */
  apply(call: OpenCall, event: CallEvent): boolean
  isOpen(call: OpenCall): boolean
  remove(call: OpenCall): void
  /** Whether the run has ended. */
  readonly isClosed: boolean
}

export function createOpenCall(toolCall: ToolCall, isParked: boolean): OpenCall {
  return {
    ...toolCall,
    id: toolCall.toolContext.functionCallId ?? '',
    state: { name: 'new' },
    inside: new Set(),
    endings: [],
    isStored: false,
    isFollowed: false,
    hidesError: false,
    ...(isParked && { parking: 'known' }),
    asksDuringRun: false,
    unwanted: new AbortController(),
  }
}

/** Returns what another process needs to continue a call. Returns undefined if the call does not wait for a client. */
export function toWaitingCall(
  { id, tool, state, approvalId, expiresAt, parking }: OpenCall,
  messages: LiveMessages,
): WaitingCall | undefined {
  const isAsked = state.name === 'asked' && approvalId !== undefined
  const isHandedOver = state.name === 'delivered' && state.isWaiting && expiresAt !== undefined
  const isPaused = state.name === 'paused' && state.isWaiting
  if (state.isCancelled || (!isAsked && !isHandedOver && !isPaused)) return undefined
  const call = {
    toolCallId: id,
    toolName: tool.name,
    messageId: messages.messageIdOf(id),
    ...(parking && { isParked: true }),
  }
  if (isPaused) return { ...call, isPaused }
  return { ...call, ...(isAsked ? { approvalId } : { expiresAt }) }
}

/** Stores an event of a call, and streams it in its message. */
export async function writeEvent(
  { messages, session, isOpen, onLateResult }: LiveSession,
  toolCallId: string,
  event: Event,
): Promise<void> {
  const message = messages.ofCall(toolCallId)
  if (messages.isUnstored(toolCallId)) return
  if (isOpen()) await session.appendResult(event)
  else await session.appendResponse(event, [toolCallId])
  if (isOpen() && !message.isStopped) messages.stream(message, event)
  else onLateResult(message.messageId)
}

/** Stores an event of a call, or of the agent that it runs. A message that is not being streamed shows it later. */
export async function writeEventInside(
  { messages, session, isOpen }: LiveSession,
  toolCallId: string,
  event: Event,
): Promise<void> {
  if (messages.isUnstored(toolCallId)) return
  if (!isOpen()) return session.appendResponse(event, [toolCallId])
  await session.append(event)
  const message = messages.ofCall(toolCallId)
  if (message.isStreaming) message.push(event)
}

/** Tells the model that a call waits for a person. */
export function sendPending(live: LiveSession, { id, tool, state }: OpenCall): void {
  if (!state.isCancelled && !live.calls.isClosed) live.input.sendPending(id, tool.name)
}

/** Stores the result of a call, sends it to the model, and ends the call. `isOutput`: a client has sent the result. */
export async function settleCall(
  live: LiveSession,
  call: OpenCall,
  response: Record<string, unknown>,
  {
    note,
    isOutput = false,
  }: { readonly note?: DecidedNote | undefined; readonly isOutput?: boolean } = {},
): Promise<void> {
  const { id } = call
  const event = toResultEvent(call, { response, note, messageId: live.messages.messageIdOf(id) })
  for (const error of makeStorable(event)) live.onError(error)
  // The result of a client is in no ledger, so it is stored before the model learns of it, whenever the store works again. LV881: so is
  // that of a decided call, or the model would reply twice. After the end of the session, a sweep stores it.
  const isNeeded = (): boolean =>
    live.calls.isOpen(call) && !(live.calls.isClosed && !asClientTool(call.tool))
  const store = (step: () => Promise<void>): Promise<void> =>
    asClientTool(call.tool) || wasAsked(call) ? repeatWhileAway(step, isNeeded) : step()
  if (!call.isStored) await store(() => writeEvent(live, id, event))
  call.isStored = true
  if (isOutput) call.output?.resolve(true)
  await store(() => reportEndings(live, call, note))
  if (call.isFollowed) await store(() => live.onDelivered(live.chat, [id]))
  if (!call.state.isCancelled && !live.calls.isClosed) {
    live.messages.ofCall(id).hasOutput = false
    sendResult(live, call, toStoredResponse(response))
  }
  live.calls.remove(call)
}

export function sendResult(
  { messages, input }: LiveSession,
  { id, tool: { name }, toolArgs: args, parking }: OpenCall,
  response: Record<string, unknown>,
): void {
  const message = messages.ofCall(id)
  if (parking) input.sendParkedResult(message, { id, name, args, response })
  else input.sendResult(message, { id, name, response })
}

/** Records that the conversation shows the outcomes of approvals. */
export async function reportEndings(
  { ledger, chat }: LiveSession,
  call: OpenCall,
  note: DecidedNote | undefined,
): Promise<void> {
  const { length } = call.endings
  const endings = [...call.endings, ...(note ? [call.id] : [])]
  if (endings.length > 0) await ledger.markReported(chat, endings)
  call.endings.splice(0, length)
}

/** Records a call inside the agent that a call runs, for which an approval is requested. */
export function addInside({ messages }: LiveSession, call: OpenCall, toolCallId: string): void {
  call.inside.add(toolCallId)
  messages.addCalls(messages.ofCall(call.id), [toolCallId], false)
}

/** Creates the event with the result of a call. */
function toResultEvent(
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
export function isAsking({ state, asksDuringRun }: OpenCall): boolean {
  return (
    asksDuringRun || state.name === 'asked' || state.name === 'deciding' || state.name === 'paused'
  )
}

/** Whether a call can wait for an approval. A live run uses a copy of the agent, and never runs a workflow. */
export function canCallWait(call: ToolCall): boolean {
  return canWait(call, () => true)
}

export function contextOf({ toolContext }: ToolCall): InvocationContext {
  return toolContext.invocationContext
}

/** The status of a call that was approved and has not ended. */
const UNDER_WAY = {
  status: 'running',
  note: 'Approved and under way. It has not ended: do not say that it is done, and do not call it again. The result comes later.',
} as const

/** Returns the function response that parks a call. */
export function toParkedResponse(isDecided: boolean): Record<string, unknown> {
  return isDecided ? { ...UNDER_WAY } : { ...AWAITING_APPROVAL }
}
