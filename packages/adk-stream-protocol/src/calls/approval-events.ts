import type { Event, InvocationContext } from '@google/adk'
import { createEvent } from '@google/adk'
import type { Content } from '@google/genai'
import { z } from 'zod'

import { markFailed, PENDING, PENDING_INSIDE } from '../agent/call-responses.ts'
import { toAskedNote } from '../agent/events/approval-notes.ts'
import type { EventNotes, PausedNote } from '../agent/events/event-notes.ts'
import { writeNotes } from '../agent/events/event-notes.ts'
import { createFailureEvent } from '../agent/translate/failure-event.ts'
import { readOriginalCall } from '../agent/tool-call.ts'
import type { Approval } from '../approvals/approval.ts'
import { ProtocolError } from '../protocol/errors.ts'
import { CONFIRMATION_TOOL } from '../protocol/message.ts'
import type { RunState } from './run-state.ts'
import type { PreviewResult } from '../approvals/policy-previews.ts'

/** Returns the call that a confirmation request is about, or undefined if the request is incomplete. */
export function parseOriginalCall(
  args: Record<string, unknown> | undefined,
): { id: string; name: string; args: Record<string, unknown> } | undefined {
  const original = OriginalCall.safeParse(readOriginalCall(args))
  return original.success ? original.data : undefined
}

const OriginalCall = z.object({
  id: z.string(),
  name: z.string(),
  args: z.record(z.string(), z.unknown()).default({}),
})

/**
 * Stores the response event that ADK discards when one of its calls requests approval: the results of the other
 * calls, and placeholders for the calls that wait. It precedes the request, where ADK looks for confirmations that a
 * tool requested itself.
 */
export async function storeResponses(
  run: RunState,
  { session, sessionService }: InvocationContext,
  { event, pending }: { readonly event: Event; readonly pending: readonly string[] },
): Promise<void> {
  // A call of a parallel branch that is about to ask has a request of its own.
  const own = [...run.results].filter(
    ([id]) => pending.includes(id) || !(run.asking.has(id) || run.pausing.has(id)),
  )
  const parts = own.map(([id, { name, response }]) => ({
    functionResponse: { id, name, response },
  }))
  const failed = own.flatMap(([id]) => (run.failed.has(id) ? [id] : []))
  const decided = own.flatMap(([id]) => (pending.includes(id) ? [] : (run.decided.get(id) ?? [])))
  for (const [id] of own) run.results.delete(id)
  const { invocationId, author, branch, actions } = event
  const { requestedToolConfirmations } = actions
  const kept = createEvent({
    invocationId,
    content: { role: 'user', parts },
    actions: { requestedToolConfirmations },
    customMetadata: writeNotes({
      pending: [...pending],
      messageId: run.messageId,
      ...(failed.length > 0 && { failed }),
      ...(decided.length > 0 && { decided }),
    }),
    ...(author !== undefined && { author }),
    ...(branch !== undefined && { branch }),
  })
  await sessionService?.appendEvent({ session, event: kept })
  for (const { toolCallId } of decided) run.endingsStored.add(toolCallId)
  run.append(kept)
}

/** Adds to an event how the approvals of its calls ended and which calls failed. Returns undefined if there is nothing to add. */
export function annotateEndings(run: RunState, event: Event): Event | undefined {
  const failed: string[] = []
  const decided = (event.content?.parts ?? []).flatMap(({ functionResponse }) => {
    const id = functionResponse?.id ?? ''
    run.results.delete(id)
    if (run.failed.has(id)) failed.push(id)
    const note = run.decided.get(id)
    if (note) run.markEndingPending(id)
    return note ?? []
  })
  if (decided.length === 0 && failed.length === 0) return undefined
  const reported = decided.flatMap(({ toolCallId, outcome }) =>
    outcome === 'failed' ? [toolCallId] : [],
  )
  const notes = {
    ...(decided.length > 0 && { messageId: run.messageId, decided }),
    ...(failed.length > 0 && { failed }),
  }
  return {
    ...event,
    ...(event.content && { content: markFailures(event.content, reported) }),
    customMetadata: writeNotes(notes, event.customMetadata),
  }
}

/** Marks the results that the policy calls failures, for the model. */
function markFailures(content: Content, toolCallIds: readonly string[]): Content {
  if (toolCallIds.length === 0) return content
  const parts = content.parts?.map((part) => {
    const { functionResponse } = part
    if (!functionResponse?.response || !toolCallIds.includes(functionResponse.id ?? '')) return part
    const response = markFailed(functionResponse.response)
    return response === functionResponse.response
      ? part
      : { ...part, functionResponse: Object.assign({}, functionResponse, { response }) }
  })
  return { ...content, ...(parts && { parts }) }
}

/**
 * Adds the times of a model call to an event that the model wrote, because ADK's timestamp does not say when the call ended. Changes
 * the event in place: an event that a plugin returns would hide it from the plugins of the application.
 */
export function noteModelTimes(run: RunState, event: Event): void {
  const model = run.modelTimes(event.branch)
  if (model && !Object.isFrozen(event))
    event.customMetadata = writeNotes({ model }, event.customMetadata)
}

/** Adds to an event of the model that its long-running calls have not been checked for an approval. Changes the event in place. */
export function noteUnchecked(event: Event): void {
  const { longRunningToolIds: unchecked = [] } = event
  if (unchecked.length > 0 && !Object.isFrozen(event))
    event.customMetadata = writeNotes({ unchecked }, event.customMetadata)
}

/** Creates an event without content, with notes about calls. */
export function createCallNote(
  { invocationId, agent }: InvocationContext,
  notes: EventNotes,
): Event {
  const customMetadata = writeNotes(notes)
  return createEvent({ invocationId, customMetadata, ...(agent && { author: agent.name }) })
}

/** Stores that the model has not replied. ADK 2.0.0 yields no event for a response without a candidate and without usage. */
export async function storeSilence(run: RunState, context: InvocationContext): Promise<void> {
  const { session, sessionService, agent } = context
  const failure = new ProtocolError('model-mistake')
  const event = createFailureEvent(run.messageId, agent?.name ?? '', failure)
  await sessionService?.appendEvent({ session, event })
  run.append(event)
}

/** Stores that an approved call was handed over to the client. ADK stores nothing for a call without a result. */
export async function storeHandover(
  run: RunState,
  context: InvocationContext,
  { toolCallId, ...offer }: Pick<EventNotes, 'offered'> & { readonly toolCallId: string },
): Promise<void> {
  const { session, sessionService } = context
  const notes = { handedOver: [toolCallId], ...offer, messageId: run.messageId }
  const event = createCallNote(context, notes)
  await sessionService?.appendEvent({ session, event })
  run.endingsStored.add(toolCallId)
  run.append(event)
}

/**
 * Returns the two events that ADK itself writes over SSE when a call needs approval: a placeholder result and the confirmation request.
 * So an approval requested in a live session can be decided in any mode, and after a restart.
 */
export function toApprovalEvents(
  approval: Approval,
  made: PreviewResult,
  context: InvocationContext,
): readonly [placeholder: Event, request: Event] {
  const { id, messageId, toolCallId, toolName: name, args, terms } = approval
  return toRequestEvents(context, {
    id,
    call: { id: toolCallId, name, args },
    hint: terms.hint ?? `Approve ${name}?`,
    response: PENDING,
    notes: { asked: [toAskedNote(approval, made)], messageId },
  })
}

/** Returns the same events for a call that waits for approvals inside the agent that it runs. */
export function toPauseEvents(
  paused: PausedNote,
  { name, args, messageId }: Pick<Request['call'], 'name' | 'args'> & { messageId: string },
  context: InvocationContext,
): readonly [placeholder: Event, request: Event] {
  return toRequestEvents(context, {
    id: paused.confirmationId,
    call: { id: paused.toolCallId, name, args },
    hint: `Wait for approvals inside ${name}.`,
    response: PENDING_INSIDE,
    notes: { asked: [], paused: [paused], messageId },
  })
}

/** A confirmation request. */
interface Request {
  readonly id: string
  readonly call: {
    readonly id: string
    readonly name: string
    readonly args: Readonly<Record<string, unknown>>
  }
  readonly hint: string
  /** The placeholder result of the call. */
  readonly response: Readonly<Record<string, unknown>>
  readonly notes: EventNotes & { readonly messageId: string }
}

function toRequestEvents(
  { invocationId, agent, branch }: InvocationContext,
  { id: requestId, call, hint, response, notes }: Request,
): readonly [placeholder: Event, request: Event] {
  const { id, name } = call
  const toolConfirmation = { hint, confirmed: false }
  const base = {
    invocationId,
    ...(agent && { author: agent.name }),
    ...(branch !== undefined && { branch }),
  }
  const actions = { requestedToolConfirmations: { [id]: toolConfirmation } }
  const functionResponse = { id, name, response: { ...response } }
  const placeholder = createEvent({
    ...base,
    content: { role: 'user', parts: [{ functionResponse }] },
    actions,
    customMetadata: writeNotes({ pending: [id], messageId: notes.messageId }),
  })
  const request = createEvent({
    ...base,
    content: {
      role: 'user',
      parts: [
        {
          functionCall: {
            id: requestId,
            name: CONFIRMATION_TOOL,
            args: { originalFunctionCall: call, toolConfirmation },
          },
        },
      ],
    },
    longRunningToolIds: [requestId],
    actions: { ...actions, skipSummarization: true },
    customMetadata: writeNotes(notes),
  })
  return [placeholder, request]
}
