import type { Event, InvocationContext } from '@google/adk'
import {
  createEvent,
  generateClientFunctionCallId,
  isAgentTool,
  ToolConfirmation,
} from '@google/adk'
import type { Part } from '@google/genai'

import { PENDING_INSIDE, toApprovedNote } from '../../agent/call-responses.ts'
import type { PausedNote } from '../../agent/events/event-notes.ts'
import { readNotes, writeNotes } from '../../agent/events/event-notes.ts'
import type { ToolCall } from '../../agent/tool-call.ts'
import { chatOf, findCall } from '../../agent/tool-call.ts'
import type { Ledger } from '../../approvals/ledger.ts'
import { isRecord } from '../../protocol/guards.ts'
import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import type { RunState } from '../run-state.ts'

/** Returns the ids of calls that ADK has resumed and that wait for approvals inside again. */
export function findPausedAgain(run: RunState, { content }: Event): string[] {
  return (content?.parts ?? []).flatMap(({ functionResponse }) =>
    functionResponse?.id !== undefined && run.pausing.has(functionResponse.id)
      ? [functionResponse.id]
      : [],
  )
}

/**
 * Pauses calls that ADK has resumed. ADK 2.0.0 requests a confirmation only when the model makes a call, and not when the call asks
 * again, so this stores the request. It is one event, so that a crash leaves all of the pause or nothing; the placeholder of the first
 * pause is still there. Returns the rest of ADK's event.
 */
export async function pauseAgain(
  run: RunState,
  { session, sessionService, invocationId, branch }: InvocationContext,
  { event, toolCallIds }: { readonly event: Event; readonly toolCallIds: readonly string[] },
): Promise<Event> {
  const paused: PausedNote[] = []
  const requests: Part[] = []
  for (const toolCallId of toolCallIds) {
    const call = findCall(session.events, toolCallId)
    const pause = run.takePause(toolCallId)
    if (!call || !pause) continue
    const confirmationId = generateClientFunctionCallId()
    paused.push({ ...pause, toolCallId, confirmationId })
    const args = { originalFunctionCall: { ...call }, toolConfirmation: CONFIRMATION }
    requests.push({ functionCall: { id: confirmationId, name: CONFIRMATION_TOOL, args } })
    run.results.delete(toolCallId)
  }
  const { messageId } = run
  const from = {
    invocationId,
    ...(event.author !== undefined && { author: event.author }),
    ...(branch !== undefined && { branch }),
  }
  const kept = createEvent({
    ...from,
    content: { role: 'user', parts: requests },
    longRunningToolIds: paused.map(({ confirmationId }) => confirmationId),
    customMetadata: writeNotes({ messageId, asked: [], paused }),
  })
  await sessionService?.appendEvent({ session, event: kept })
  run.append(kept)
  return withoutResponses(event, toolCallIds)
}

const CONFIRMATION = new ToolConfirmation({ confirmed: false })

/** Returns an event without the responses of some calls and without their requests. */
function withoutResponses(event: Event, toolCallIds: readonly string[]): Event {
  const { content, ...rest } = event
  const parts = content?.parts?.filter(
    ({ functionResponse }) => !toolCallIds.includes(functionResponse?.id ?? ''),
  )
  return {
    ...rest,
    actions: { ...event.actions, requestedToolConfirmations: {} },
    // Gemini rejects content without parts.
    ...(parts && parts.length > 0 && { content: { ...content, parts } }),
  }
}

/**
 * Restores the pause of an approved call of an agent, if a crash kept it from being stored: the approval has ended because the call
 * waits for approvals inside, and the session has the events of the agent. Returns undefined for any other call.
 */
export async function restorePause(
  { tool, toolContext }: ToolCall,
  run: RunState,
  ledger: Ledger,
): Promise<PausedNote | undefined> {
  if (!isAgentTool(tool)) return undefined
  const { invocationContext } = toolContext
  const { session } = invocationContext
  const toolCallId = toolContext.functionCallId ?? ''
  const { events } = run.rootOf(invocationContext).session
  const last = events.findLast((event) => readNotes(event).nested?.toolCallId === toolCallId)
  const { nested } = last ? readNotes(last) : {}
  const approval = nested && (await ledger.findByCall(chatOf(session), toolCallId))
  if (approval?.state.name !== 'succeeded' || !isPendingInside(approval.state.output))
    return undefined
  const { outcome: _outcome, at: _at, ...decided } = toApprovedNote(approval)
  run.decided.set(toolCallId, decided)
  return { toolCallId, confirmationId: '', session: nested?.session ?? '', asked: [] }
}

function isPendingInside(output: unknown): boolean {
  return isRecord(output) && output['note'] === PENDING_INSIDE.note
}
