import { randomUUID } from 'node:crypto'

import type { Event } from '@google/adk'
import { createEvent } from '@google/adk'
import { z } from 'zod'

import { readConversation } from '../../agent/history/replay-turn.ts'
import { endWaitingCalls, findWaitingCalls } from '../../agent/history/waiting-calls.ts'
import { ProtocolError } from '../../protocol/errors.ts'
import { isRecord } from '../../protocol/guards.ts'
import { CONFIRMATION_TOOL } from '../../protocol/message.ts'

/** A session that was read from a file. */
export interface ImportedSession {
  readonly events: readonly Event[]
  readonly state: Readonly<Record<string, unknown>>
  readonly agent: string | undefined
}

const Id = z.string().min(1).max(256)
const ByName = z.record(z.string(), z.unknown())

// Everything that is not named here is kept.
const Part = z.looseObject({
  text: z.string().optional(),
  functionCall: z
    .looseObject({ id: z.string().optional(), name: z.string(), args: ByName.optional() })
    .optional(),
  functionResponse: z
    .looseObject({ id: z.string().optional(), name: z.string(), response: ByName.optional() })
    .optional(),
  inlineData: z
    .looseObject({ mimeType: z.string().optional(), data: z.string().optional() })
    .optional(),
})

const StoredEvent = z.looseObject({
  id: Id,
  invocationId: z.string().max(256).default(''),
  author: z.string().max(256).optional(),
  timestamp: z.number().positive().max(8.64e15),
  content: z
    .looseObject({ role: z.string().optional(), parts: z.array(Part).optional() })
    .optional(),
  customMetadata: ByName.optional(),
  actions: z
    .looseObject({
      stateDelta: ByName.default({}),
      artifactDelta: z.record(z.string(), z.int()).default({}),
      requestedAuthConfigs: ByName.default({}),
      requestedToolConfirmations: ByName.default({}),
    })
    .prefault({}),
})

const SessionFile = z.object({
  agent: z.string().optional(),
  state: ByName.default({}),
  events: z.array(StoredEvent).min(1).max(20_000),
})

/**
 * Reads a file that was saved from a session, of this or of another ADK program. Throws `bad-request` if it is not one.
 *
 * Nothing in it waits any more: the ledger of this server has not asked for these approvals, so nobody may decide them here. Their ids
 * are replaced, so that none names an approval of another chat. State of the user and of the app is left out: it belongs to other chats,
 * too.
 */
export function readSessionFile(file: unknown): ImportedSession {
  const parsed = SessionFile.safeParse(file)
  if (!parsed.success) throw refuse('This is not the file of an ADK session.')
  const { events: stored, state, agent } = parsed.data
  if (new Set(stored.map(({ id }) => id)).size < stored.length)
    throw refuse('The file is damaged: two of its events have the same id.')
  const approvals = new Map<string, string>()
  stored.forEach((event) => collectApprovals(event, approvals))
  const events = stored.map((event) => toEvent(StoredEvent.parse(replaceTexts(event, approvals))))
  try {
    const all = [...events, ...endWaitingCalls(events, IMPORTED)]
    // Shown as every client will read it. What another program wrote may be anything.
    readConversation(all, { exposeState: () => false, unfinished: undefined })
    if (findWaitingCalls(all).length === 0) return { events: all, state: ownState(state), agent }
  } catch (cause) {
    throw refuse('The file is damaged: its events are not a conversation.', cause)
  }
  throw refuse('The file has a call that waits, and whose end cannot be recorded.')
}

const IMPORTED = 'the session was imported from a file'

function refuse(message: string, cause?: unknown): ProtocolError {
  return new ProtocolError('bad-request', { message, cause })
}

/** Finds the ids of approvals: those in the notes of the bridge, and those of ADK's own requests. */
function collectApprovals(value: unknown, found: Map<string, string>): void {
  if (Array.isArray(value)) return value.forEach((each) => collectApprovals(each, found))
  if (!isRecord(value)) return
  for (const id of [value['approvalId'], value['name'] === CONFIRMATION_TOOL && value['id']])
    if (typeof id === 'string' && !found.has(id)) found.set(id, randomUUID())
  for (const each of Object.values(value)) collectApprovals(each, found)
}

/** Replaces these texts wherever they are. */
function replaceTexts(value: unknown, texts: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') return texts.get(value) ?? value
  if (Array.isArray(value)) return value.map((each: unknown) => replaceTexts(each, texts))
  if (!isRecord(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, replaceTexts(each, texts)]),
  )
}

function toEvent({ actions, ...event }: z.infer<typeof StoredEvent>): Event {
  const { stateDelta } = actions
  // ADK checks nothing of what it stores; the schema has checked what the bridge reads.
  return createEvent({
    ...event,
    actions: { ...actions, stateDelta: ownState(stateDelta) },
  } as unknown as Partial<Event>)
}

/** Returns the state that belongs to the session alone. */
function ownState(state: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(state).filter(([key]) => !/^(?:app|user|temp):/.test(key)),
  )
}
