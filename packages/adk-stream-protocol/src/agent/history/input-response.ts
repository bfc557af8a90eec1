import type { Content, FunctionCall } from '@google/genai'

import type { EventNotes } from './event-notes.ts'

/** ADK's call by which an agent asks a person for input. */
const INPUT_CALL = 'adk_request_input'

/** A message for the agent, with what is noted beside it. */
export interface NotedContent {
  readonly content: Content
  readonly notes: EventNotes
}

/**
 * The answer to `adk_request_input` as a model can read it. ADK 2.0.0 leaves these calls and their responses out of what it tells
 * the model, so the answer is stored as text, and the notes beside it say which call it answers. Returns undefined for the answer to
 * any other call.
 */
export function toInputResponse({ parts = [] }: Content, call: FunctionCall | undefined) {
  const { id, name, response = {} } = parts[0]?.functionResponse ?? {}
  if (name !== INPUT_CALL || id === undefined) return undefined
  const question = call?.args?.['message']
  const asked = typeof question === 'string' ? question : 'your question'
  const text = `Answer to ${JSON.stringify(asked)}: ${JSON.stringify(response)}`
  const answer: NotedContent = {
    content: { role: 'user', parts: [{ text }] },
    notes: { input: { toolCallId: id, response } },
  }
  return answer
}
