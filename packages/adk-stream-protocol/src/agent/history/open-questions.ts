import type { Event } from '@google/adk'
import type { FunctionCall } from '@google/genai'

import { CONFIRMATION_TOOL } from '../../protocol/message.ts'
import { isRecord } from '../../protocol/guards.ts'
import type { ToolCall } from '../tool-call.ts'
import { readOriginalCall } from '../tool-call.ts'
import type { CallQuestion, PausedNote } from '../events/event-notes.ts'
import { readNotes } from '../events/event-notes.ts'

/** What an agent waits for. */
interface OpenQuestions {
  /** The approvals of its own calls, by call id. */
  readonly asked: ReadonlyMap<string, CallQuestion>
  /** Its calls of other agents that wait for approvals inside, by call id. */
  readonly paused: ReadonlyMap<string, PausedNote>
}

/** Returns what the agent of a session waits for: approvals that were requested and whose calls have no result. */
export function readOpenQuestions(events: readonly Event[]): OpenQuestions {
  const asked = new Map<string, CallQuestion>()
  const paused = new Map<string, PausedNote>()
  for (const event of events) {
    const notes = readNotes(event)
    for (const { functionCall, functionResponse } of event.content?.parts ?? []) {
      const question = functionCall && readQuestion(functionCall, event)
      if (question) asked.set(question.toolCallId, question)
      const id = functionResponse?.id ?? ''
      if (!functionResponse || notes.pending?.includes(id)) continue
      asked.delete(id)
      paused.delete(id)
    }
    for (const note of notes.paused ?? []) {
      asked.delete(note.toolCallId)
      paused.set(note.toolCallId, note)
    }
  }
  return { asked, paused }
}

/** Returns the note of the last pause of a call, unless the call has a result or waits for its own approval. */
export function findPausedNote({ toolContext }: ToolCall): PausedNote | undefined {
  const { events } = toolContext.invocationContext.session
  return readOpenQuestions(events).paused.get(toolContext.functionCallId ?? '')
}

/** Returns all approvals that an agent waits for, at any depth. */
export function listQuestions({ asked, paused }: OpenQuestions): CallQuestion[] {
  return [...asked.values(), ...[...paused.values()].flatMap((note) => note.asked)]
}

/** Returns the approval that ADK's confirmation request is about. */
function readQuestion({ id, name, args }: FunctionCall, event: Event): CallQuestion | undefined {
  if (name !== CONFIRMATION_TOOL) return undefined
  const note = readNotes(event).asked?.find(({ approvalId }) => approvalId === id)
  const call = readOriginalCall(args)
  if (!note || !call) return undefined
  return {
    ...note,
    toolName: String(call['name']),
    args: isRecord(call['args']) ? call['args'] : {},
  }
}

/**
 * Whether ADK requests approval with this event. A model that calls the confirmation tool by name requests nothing:
 * only ADK sets `requestedToolConfirmations`.
 */
export function asksForApproval({ actions }: Event): boolean {
  return Object.keys(actions.requestedToolConfirmations).length > 0
}
