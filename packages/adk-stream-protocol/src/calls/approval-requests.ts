import type { Event, InvocationContext } from '@google/adk'
import type { Part } from '@google/genai'

import { toAskedNote } from '../agent/events/approval-notes.ts'
import type { AskedNote, PausedNote } from '../agent/events/event-notes.ts'
import { writeNotes } from '../agent/events/event-notes.ts'
import { chatOf } from '../agent/tool-call.ts'
import type { Approval, ApprovalTerms } from '../approvals/approval.ts'
import { isRefusal } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import { previewApproval } from '../approvals/policy-previews.ts'
import { parseOriginalCall, storeResponses } from './approval-events.ts'
import type { TermsOptions } from './call-kind.ts'
import { withUserText } from './call-terms.ts'
import { nextCall } from './next-call.ts'
import type { RunState } from './run-state.ts'

export interface RequestOptions extends TermsOptions {
  readonly ledger: Ledger
}

/** An event with the run that ADK yields it in. */
export interface RunEvent {
  readonly run: RunState
  readonly context: InvocationContext
  readonly event: Event
}

/** Stores the approval requests of an event in the ledger before clients see them (AP2). Returns the event with notes for clients. */
export async function storeRequests(
  { run, context, event }: RunEvent,
  options: RequestOptions,
): Promise<Event> {
  const asked: AskedNote[] = []
  const paused: PausedNote[] = []
  const parts: Part[] = []
  for (const part of event.content?.parts ?? []) {
    const pause = takePause(run, part)
    if (pause) {
      paused.push(pause)
      parts.push(part)
      continue
    }
    const note = await storeRequest(run, { context, part }, options)
    if (!note) continue
    asked.push(note)
    parts.push(part)
  }
  const pending = [...asked, ...paused].map(({ toolCallId }) => toolCallId)
  await storeResponses(run, context, { event, pending })
  const customMetadata = writeNotes(
    { asked, messageId: run.messageId, ...(paused.length > 0 && { paused }) },
    event.customMetadata,
  )
  const { content, ...rest } = event
  // Gemini rejects content without parts, in this turn and in all later ones.
  return { ...rest, ...(parts.length > 0 && { content: { ...content, parts } }), customMetadata }
}

/** A part that requests an approval, with the run that ADK yields it in. */
interface PartRequest {
  readonly context: InvocationContext
  readonly part: Part
}

/** Stores one request with its terms in `run.asking`. Returns undefined if the part requests nothing, or the ledger refuses it. */
export async function storeRequest(
  run: RunState,
  request: PartRequest,
  options: RequestOptions,
): Promise<AskedNote | undefined> {
  const approval = await requestApproval(run, request, options.ledger)
  if (!approval) return undefined
  const preview = await previewApproval(approval, approval.chat.principalId, options)
  return toAskedNote(approval, preview)
}

async function requestApproval(
  run: RunState,
  { context, part: { functionCall } }: PartRequest,
  ledger: Ledger,
): Promise<Approval | undefined> {
  const original = parseOriginalCall(functionCall?.args)
  const terms = original && run.asking.get(original.id)
  if (!terms || functionCall?.id === undefined) return undefined
  run.asking.delete(original.id)
  const { deadlineMs, ...rest } = terms
  const { chatRun } = run
  const { outside } = chatRun
  outside?.onAsk(original.id)
  const requested = await ledger.request({
    id: functionCall.id,
    chat: chatOf(context.session),
    messageId: run.messageId,
    toolCallId: original.id,
    toolName: original.name,
    args: original.args,
    terms: describeTerms(rest, run, context),
    deadlineMs,
    ...(outside && { isAwaited: true }),
  })
  // A call that repeats the id of an earlier one is not that call, even with the same arguments.
  if (!isRefusal(requested) && requested.id === functionCall.id) {
    chatRun.requested.add(requested.id)
    return requested
  }
  const refusal = isRefusal(requested) ? requested : ({ refused: 'mismatch' } as const)
  const refused = { type: 'request-refused', refusal } as const
  const [, [effect]] = nextCall({ name: 'requested' }, refused)
  if (effect?.type === 'settle')
    run.results.set(original.id, { name: original.name, response: effect.response })
  return undefined
}

function describeTerms(
  terms: ApprovalTerms,
  run: RunState,
  context: InvocationContext,
): ApprovalTerms {
  // The user wrote to the agent of the chat, not to an agent that is used as a tool.
  const { events } = run.rootOf(context).session
  const { path, messageId } = run
  return { ...withUserText(terms, events, messageId), ...(path && { path }) }
}

/** Returns the note for a call that waits for approvals inside its agent. Returns undefined for any other call. */
function takePause(run: RunState, { functionCall }: Part): PausedNote | undefined {
  const toolCallId = parseOriginalCall(functionCall?.args)?.id ?? ''
  const confirmationId = functionCall?.id
  const pause = confirmationId === undefined ? undefined : run.takePause(toolCallId)
  return pause && confirmationId !== undefined
    ? { toolCallId, confirmationId, ...pause }
    : undefined
}
