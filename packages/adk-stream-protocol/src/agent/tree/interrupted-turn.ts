import type { Event, BaseSessionService, Session } from '@google/adk'
import { getFunctionResponses, createEvent } from '@google/adk'
import type { FunctionCall, FunctionResponse, Part } from '@google/genai'

import type { Chunk, TextKind } from '../../protocol/chunk.ts'
import { isDelta } from '../../protocol/chunk.ts'
import { STOPPED } from '../call-responses.ts'
import { isAdkRequest } from '../tool-call.ts'
import type { Translation } from '../translate/translation.ts'
import { isCallWaiting } from '../translate/translation.ts'
import { hasFinalResponse } from '../events/event-calls.ts'
import { findInner, readNotes, writeNotes } from '../events/event-notes.ts'
import { endsAgent } from '../events/event-calls.ts'
import { waitsForResult } from '../events/input-names.ts'
import { type StoredTurn, splitTurns } from '../history/stored-turns.ts'
import { replayTurn } from '../history/replay-turn.ts'

/** How often a turn is continued. Each attempt adds events to the session. */
const MAX_ATTEMPTS = 5

/** What makes ADK continue a turn: another confirmation of a call, or the answer to a question once more. */
export type Continuation =
  | { readonly confirmationId: string }
  | { readonly answer: FunctionResponse }

/**
 * Returns what makes ADK continue a turn whose server stopped after it had stored the result of a call, or an answer. Returns undefined
 * if the turn waits for something, if a person stopped it, or if it has ended. Without a workflow, it also returns undefined if anything
 * was stored after the result: a tool may have started then, and must not start twice.
 */
export function findContinuation(turn: StoredTurn, decided: DecidedCall): Continuation | undefined {
  return continuationOf(turn.events, stateOf(turn), decided)
}

/** Whether another server continues a turn: it waits, or has not ended after the result of an approved call. */
export function canBeContinued(turn: StoredTurn): boolean {
  const state = stateOf(turn)
  return [...state.calls.values()].some(isCallWaiting) || isToContinue(turn, state)
}

function isToContinue({ events }: StoredTurn, state: Translation): boolean {
  return [...state.calls].some(([toolCallId, { approval }]) => {
    const { approvalId: id } = approval ?? {}
    return id !== undefined && continuationOf(events, state, { id, toolCallId }) !== undefined
  })
}

/** AP1948: stores that the newest turn was stopped, if it was to continue: the next message starts a turn, and only the newest one continues. */
export async function endUncontinued(service: BaseSessionService, session: Session): Promise<void> {
  const turn = splitTurns(session.events).at(-1)
  if (!turn || !isToContinue(turn, stateOf(turn))) return
  const { messageId, firstEvent, events } = turn
  const { invocationId, author = 'model' } =
    events.findLast((event) => event.author !== 'user') ?? firstEvent
  await storePartialReply(service, session, { parts: [], author, invocationId, messageId })
}

/** Whether a turn is a workflow that has continued after a decision or an answer, so that its agents reply again after a crash. */
export function repeatsReplies({ events, resumedBy }: StoredTurn): boolean {
  return resumedBy.size > 0 && findWorkflow(events) !== undefined
}

interface DecidedCall {
  /** The id of the approval. */
  readonly id: string
  readonly toolCallId: string
  /** What the approval was about. A question has a kind. */
  readonly terms?: { readonly kind?: string | undefined }
}

type Calls = Translation['calls']

function stateOf(turn: StoredTurn): Translation {
  return replayTurn(turn).state
}

function continuationOf(
  events: readonly Event[],
  { calls, stop }: Translation,
  { id: approvalId, toolCallId, terms }: DecidedCall,
): Continuation | undefined {
  if (stop === 'stopped') return undefined
  const open = [...calls.values()].filter((call) => call.state !== 'settled' || isCallWaiting(call))
  const root = findWorkflow(events)
  if (root !== undefined) {
    // A call that ran when the server stopped does not run again. The agent learns that its outcome is unknown.
    const isOver = open.some(({ state }) => state !== 'running') || hasEnded(events, root)
    return isOver ? undefined : confirmAgain(events, approvalId)
  }
  const outerId = findOutermost(calls, toolCallId)
  if (open.length > 0 || !endsWithResult(events, outerId)) return undefined
  const isOuter = outerId === toolCallId
  if (terms?.kind === undefined)
    return confirmAgain(events, isOuter ? approvalId : calls.get(outerId)?.resumedBy)
  return isOuter && terms.kind === 'input' ? answerAgain(events, toolCallId) : undefined
}

/** Returns the call of the agent of the chat that a call was made in, at any depth. */
function findOutermost(calls: Calls, toolCallId: string): string {
  const madeBy = calls.get(toolCallId)?.madeBy
  return madeBy === undefined ? toolCallId : findOutermost(calls, madeBy)
}

/** Whether the agent has not continued after the result of a call, and has to. */
function endsWithResult(events: readonly Event[], toolCallId: string): boolean {
  const index = events.findLastIndex((event) => hasFinalResponse(event, toolCallId))
  const result = events[index]
  return result !== undefined && !endsAgent(result) && !events.slice(index + 1).some(isProgress)
}

function confirmAgain(
  events: readonly Event[],
  confirmationId: string | undefined,
): Continuation | undefined {
  const isLast = findResponses(events, confirmationId).length > MAX_ATTEMPTS
  return isLast || confirmationId === undefined ? undefined : { confirmationId }
}

function answerAgain(events: readonly Event[], toolCallId: string): Continuation | undefined {
  const answers = findResponses(events, toolCallId)
  const answer = answers.at(-1)
  return answer && answers.length <= MAX_ATTEMPTS ? { answer } : undefined
}

/** Returns the name of the workflow that a turn runs. */
function findWorkflow(events: readonly Event[]): string | undefined {
  const [path] = events.flatMap(({ nodeInfo }) => nodeInfo?.path ?? [])
  return path?.split('.')[0]
}

/** Whether a workflow has ended, or has failed. */
function hasEnded(events: readonly Event[], root: string): boolean {
  return events.some((event) => {
    const { node } = readNotes(event)
    const isDone = node?.path === root && node.state === 'done'
    return isDone || event.errorCode !== undefined
  })
}

function findResponses(events: readonly Event[], id: string | undefined): FunctionResponse[] {
  return events.flatMap(getFunctionResponses).filter((response) => response.id === id)
}

/** Whether an event shows that an agent has continued, apart from the next attempt to continue it. */
function isProgress(event: Event): boolean {
  const { node } = readNotes(event)
  if (event.author === 'user') return false
  const hasContent = (event.content?.parts ?? []).length > 0
  // A model may have nothing to say to a result.
  const hasReplied = hasContent || event.finishReason !== undefined
  return (
    hasReplied ||
    event.errorCode !== undefined ||
    node !== undefined ||
    findInner(event) !== undefined
  )
}

/** A reply that was interrupted: the streamed text and reasoning, in order. */
export interface PartialReply {
  readonly parts: readonly { readonly text: string; readonly thought: boolean }[]
  readonly author: string
  readonly invocationId: string
  /** The message that contains the reply. */
  readonly messageId: string
  /** The id of the event. Default: a new id. */
  readonly id?: string | undefined
  /** What the model has reported about the reply. */
  readonly report?: Pick<Event, 'usageMetadata' | 'modelVersion'> | undefined
}

/** Stores an interrupted reply. ADK only stores complete events. */
export async function storePartialReply(
  service: BaseSessionService,
  session: Session,
  { parts, author, invocationId, messageId, report, id }: PartialReply,
): Promise<void> {
  const content = {
    role: 'model',
    parts: parts.map(({ text, thought }) => ({ text, ...(thought && { thought }) })),
  }
  await service.appendEvent({
    session,
    event: createEvent({
      ...(id !== undefined && { id }),
      author,
      invocationId,
      interrupted: true,
      customMetadata: writeNotes({ messageId }),
      ...(parts.length > 0 && { content, ...report }),
    }),
  })
}

/**
 * Appends responses to calls that a stopped or crashed run left without a result. Gemini rejects a conversation with
 * an unanswered call, in this turn and in all later ones. `isFinal` says that clients have not seen the end of these calls.
 */
export async function respondToDanglingCalls(
  service: BaseSessionService,
  session: Session,
  { isFinal = false }: { readonly isFinal?: boolean } = {},
): Promise<void> {
  for (const { event, calls } of findDanglingCalls(session.events)) {
    const parts = calls.map(({ id, name, waiting }) => ({
      functionResponse: {
        ...(id !== undefined && { id }),
        ...(name !== undefined && { name }),
        response: waiting ? STILL_WAITING : STOPPED,
      },
    }))
    const { invocationId, author, branch } = event
    const pending = calls.flatMap(({ id }) => id ?? [])
    await service.appendEvent({
      session,
      event: createEvent({
        invocationId,
        content: { role: 'user', parts },
        // The end of the stream has shown this to users. The text here is for the model.
        ...(!isFinal && { customMetadata: writeNotes({ pending }) }),
        ...(author !== undefined && { author }),
        ...(branch !== undefined && { branch }),
      }),
    })
  }
}

const STILL_WAITING = { status: 'pending', note: 'No result yet.' }

interface DanglingCalls {
  readonly event: Event
  readonly calls: readonly (FunctionCall & { readonly waiting: boolean })[]
}

function findDanglingCalls(events: readonly Event[]): DanglingCalls[] {
  const respondedIds = new Set<string | undefined>()
  // Each turn scans the whole conversation, and few of its events contain a call.
  const callEvents: Event[] = []
  for (const event of events) {
    for (const { functionCall, functionResponse } of event.content?.parts ?? []) {
      if (functionResponse) respondedIds.add(functionResponse.id)
      if (functionCall && callEvents.at(-1) !== event) callEvents.push(event)
    }
  }
  return callEvents.flatMap((event) => {
    // The model does not see ADK's own requests, so they need no response.
    const calls = (event.content?.parts ?? []).flatMap(({ functionCall }) =>
      functionCall && !isAdkRequest(functionCall) && !respondedIds.has(functionCall.id)
        ? [{ ...functionCall, waiting: isWaiting(events, event, functionCall) }]
        : [],
    )
    return calls.length === 0 ? [] : [{ event, calls }]
  })
}

function isWaiting(events: readonly Event[], event: Event, call: FunctionCall): boolean {
  const { id = '' } = call
  if (waitsForResult(event, call, readNotes(event))) return true
  return events.some((other) => {
    const { checked = [], handedOver = [] } = readNotes(other)
    return checked.includes(id) || handedOver.includes(id)
  })
}

/**
 * Returns the streamed text of a message that its stored events do not contain. The stored text of each kind is the beginning of the
 * streamed one, or the other way round. If neither is the case, returns nothing of that kind: text must never be stored twice.
 */
export function findUnstored(
  streamed: readonly Chunk[],
  stored: readonly Chunk[],
): PartialReply['parts'] {
  const lengthOfStored = (kind: TextKind): number => {
    const known = textOf(stored, kind)
    return textOf(streamed, kind).startsWith(known) ? known.length : Infinity
  }
  /** How many characters of each kind are stored and still to be skipped. */
  const skip = { text: lengthOfStored('text'), reasoning: lengthOfStored('reasoning') }
  const parts: { id: string; kind: TextKind; text: string }[] = []
  for (const chunk of streamed) {
    if (!isDelta(chunk)) continue
    const kind = kindOf(chunk)
    const text = chunk.delta.slice(skip[kind])
    skip[kind] = Math.max(0, skip[kind] - chunk.delta.length)
    if (text === '') continue
    const last = parts.at(-1)
    if (last?.id === chunk.id && last.kind === kind) last.text += text
    else parts.push({ id: chunk.id, kind, text })
  }
  return parts.map(({ kind, text }) => ({ text, thought: kind === 'reasoning' }))
}

/** Returns what an interrupted reply contains beyond the parts of it that are stored. */
export function findUnstoredParts(
  parts: PartialReply['parts'],
  stored: readonly Part[],
): PartialReply['parts'] {
  return findUnstored(parts.map(toDelta), stored.map(toDelta))
}

function toDelta({ text = '', thought = false }: Part, index: number): Chunk {
  return { type: thought ? 'reasoning-delta' : 'text-delta', id: String(index), delta: text }
}

function kindOf({ type }: { readonly type: `${TextKind}-delta` }): TextKind {
  return type === 'text-delta' ? 'text' : 'reasoning'
}

function textOf(chunks: readonly Chunk[], kind: TextKind): string {
  return chunks
    .map((chunk) => (isDelta(chunk) && kindOf(chunk) === kind ? chunk.delta : ''))
    .join('')
}
