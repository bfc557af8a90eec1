import type { BaseSessionService, Event, Session } from '@google/adk'
import { createEvent } from '@google/adk'
import type { FunctionCall } from '@google/genai'

import type { Chunk, TextKind } from '../../protocol/chunk.ts'
import { isDelta } from '../../protocol/chunk.ts'
import { isAdkRequest } from '../tool-call.ts'
import { writeNotes } from './event-notes.ts'

/** A reply that was interrupted: the streamed text and reasoning, in order. */
export interface PartialReply {
  readonly parts: readonly { readonly text: string; readonly thought: boolean }[]
  readonly author: string
  readonly invocationId: string
  /** The message that contains the reply. */
  readonly messageId: string
}

/** Stores an interrupted reply. ADK only stores complete events. */
export async function storePartialReply(
  service: BaseSessionService,
  session: Session,
  { parts, author, invocationId, messageId }: PartialReply,
): Promise<void> {
  const content = {
    role: 'model',
    parts: parts.map(({ text, thought }) => ({ text, ...(thought && { thought }) })),
  }
  await service.appendEvent({
    session,
    event: createEvent({
      author,
      invocationId,
      interrupted: true,
      customMetadata: writeNotes({ messageId }),
      ...(parts.length > 0 && { content }),
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
        response: waiting ? STILL_WAITING : NO_RESULT,
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

const NO_RESULT = {
  error: 'Stopped before the result arrived. The call may or may not have taken effect.',
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
        ? [{ ...functionCall, waiting: isWaiting(event, functionCall) }]
        : [],
    )
    return calls.length === 0 ? [] : [{ event, calls }]
  })
}

function isWaiting(event: Event, { id }: FunctionCall): boolean {
  return id !== undefined && event.longRunningToolIds?.includes(id) === true
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

function kindOf({ type }: { readonly type: `${TextKind}-delta` }): TextKind {
  return type === 'text-delta' ? 'text' : 'reasoning'
}

function textOf(chunks: readonly Chunk[], kind: TextKind): string {
  return chunks
    .map((chunk) => (isDelta(chunk) && kindOf(chunk) === kind ? chunk.delta : ''))
    .join('')
}

const UNSTORED = /^(?:image|audio|video)\//i

/** Whether ADK 2.0.0 does not store an event of a live run because it contains media. */
export function isUnstoredMedia({ content, partial = false }: Event): boolean {
  return !partial && content?.parts?.some(isUnstoredPart) === true
}

function isUnstoredPart({ inlineData }: { inlineData?: { mimeType?: string } }): boolean {
  return UNSTORED.test(inlineData?.mimeType ?? '')
}
