import type { Event, InvocationContext, Session } from '@google/adk'
import {
  Context,
  generateClientFunctionCallId,
  requestInputTool,
  ToolConfirmation,
  createEvent,
  isAgentTool,
} from '@google/adk'
import type { FunctionCall, Part } from '@google/genai'

import { PENDING_INSIDE, toApprovedNote } from '../agent/call-responses.ts'
import type { AskedNote, PausedNote } from '../agent/events/event-notes.ts'
import { writeNotes, readNotes } from '../agent/events/event-notes.ts'
import { isInterrupt } from '../agent/events/input-calls.ts'
import type { ToolCall } from '../agent/tool-call.ts'
import { chatOf, findCall } from '../agent/tool-call.ts'
import type { Approval, ApprovalTerms } from '../approvals/approval.ts'
import { isRefusal } from '../approvals/approval.ts'
import type { Ledger } from '../approvals/ledger.ts'
import { previewApproval } from '../approvals/policy-previews.ts'
import type { ResolvedTerms } from '../approvals/policy.ts'
import { isRecord } from '../protocol/guards.ts'
import { CONFIRMATION_TOOL } from '../protocol/message.ts'
import { parseOriginalCall, storeResponses, toAskedNote } from './approval-events.ts'
import type { TermsOptions } from './call-kind.ts'
import { checkCall, withUserText } from './call-terms.ts'
import { nextCall } from './next-call.ts'
import type { RunState } from './run-state.ts'

interface RequestOptions extends TermsOptions {
  readonly ledger: Ledger
}

/** An event with the run that ADK yields it in. */
interface RunEvent {
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
    const note = await storeRequest(run, { session: context.session, part }, options)
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

/** Stores the questions of a workflow node in the ledger before clients see them. Returns undefined if the event has none. */
export async function storeNodeQuestions(
  { run, context, event }: RunEvent,
  options: RequestOptions,
): Promise<Event | undefined> {
  const asked: AskedNote[] = []
  for (const { functionCall } of event.content?.parts ?? []) {
    if (!functionCall || run.nested || !isInterrupt(functionCall)) continue
    const { toolCallId, terms, request } = await resolveNodeQuestion(functionCall, context, options)
    run.asking.set(toolCallId, terms)
    const note = await storeRequest(run, { session: context.session, part: request }, options)
    if (!note) throw new Error('The question of a workflow node cannot be asked.')
    asked.push(note)
  }
  if (asked.length === 0) return undefined
  const notes = { asked, messageId: run.messageId }
  return { ...event, customMetadata: writeNotes(notes, event.customMetadata) }
}

/** Stores one request with its terms in `run.asking`. Returns undefined if the part requests nothing, or the ledger refuses it. */
async function storeRequest(
  run: RunState,
  { session, part }: { readonly session: Session; readonly part: Part },
  options: RequestOptions,
): Promise<AskedNote | undefined> {
  const approval = await requestApproval(run, { session, part }, options.ledger)
  if (!approval) return undefined
  const preview = await previewApproval(approval, approval.chat.principalId, options)
  return toAskedNote(approval, preview)
}

async function requestApproval(
  run: RunState,
  { session, part: { functionCall } }: { readonly session: Session; readonly part: Part },
  ledger: Ledger,
): Promise<Approval | undefined> {
  const original = parseOriginalCall(functionCall?.args)
  const terms = original && run.asking.get(original.id)
  if (!terms || functionCall?.id === undefined) return undefined
  run.asking.delete(original.id)
  const { deadlineMs, ...rest } = terms
  const { live } = run.nested?.root.run ?? {}
  live?.onAsk(original.id)
  const requested = await ledger.request({
    id: functionCall.id,
    chat: chatOf(session),
    messageId: run.messageId,
    toolCallId: original.id,
    toolName: original.name,
    args: original.args,
    terms: describeTerms(rest, run, session),
    deadlineMs,
    ...(live && { live: true }),
  })
  // A call that repeats the id of an earlier one is not that call, even with the same arguments.
  if (!isRefusal(requested) && requested.id === functionCall.id) {
    const root = run.nested?.root.run ?? run
    root.requested.add(requested.id)
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
  { nested, messageId }: RunState,
  session: Session,
): ApprovalTerms {
  if (!nested) return withUserText(terms, session.events, messageId)
  // The user wrote to the agent of the chat, not to an agent that is used as a tool.
  return { ...withUserText(terms, nested.root.session.events, messageId), path: nested.path }
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

/** A `RequestInput` of a workflow node, as the ledger asks it. */
interface NodeQuestion {
  readonly toolCallId: string
  readonly terms: ResolvedTerms
  /** The request in the form in which ADK requests an approval. */
  readonly request: Part
}

/** Returns the terms of a `RequestInput`, on the same policy as questions of a model. Throws if a person cannot answer it. */
async function resolveNodeQuestion(
  { id = '', name = '', args = {} }: FunctionCall,
  invocationContext: InvocationContext,
  options: TermsOptions,
): Promise<NodeQuestion> {
  const { message } = args
  const hasMessage = typeof message === 'string' && message !== ''
  const toolArgs = { ...args, message: hasMessage ? message : 'The workflow needs your input.' }
  const toolContext = new Context({ invocationContext, functionCallId: id })
  const check = await checkCall({ tool: requestInputTool, toolArgs, toolContext }, options)
  if (check.verdict !== 'ask')
    throw new Error(
      `A RequestInput of a workflow node cannot be asked. ${check.verdict === 'refuse' ? check.response.error : ''}`,
    )
  const functionCall = {
    id: generateClientFunctionCallId(),
    name: CONFIRMATION_TOOL,
    args: { originalFunctionCall: { id, name, args } },
  }
  return { toolCallId: id, terms: check.terms, request: { functionCall } }
}

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
  const { session } = toolContext.invocationContext
  const toolCallId = toolContext.functionCallId ?? ''
  const { events } = run.nested?.root.session ?? session
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
