import type { Content, FunctionCall } from '@google/genai'

import type { EventNotes } from './event-notes.ts'
import { INPUT_CALL } from './input-calls.ts'

/** A message for the agent, with its notes. */
export interface NotedContent {
  readonly content: Content
  readonly notes: EventNotes
}

/**
 * Converts the response to `adk_request_input` to text. ADK 2.0.0 hides these calls and their responses from the
 * model, so the response is stored as text, and its notes identify the call. Returns undefined for the response to
 * any other call.
 */
export function toInputResponse({ parts = [] }: Content, call: FunctionCall | undefined) {
  const { id, name, response = {} } = parts[0]?.functionResponse ?? {}
  if (name !== INPUT_CALL || id === undefined) return undefined
  const question = call?.args?.['message']
  const asked = typeof question === 'string' ? question : 'your question'
  const text = `Answer to ${JSON.stringify(asked)}: ${JSON.stringify(response)}`
  const message: NotedContent = {
    content: { role: 'user', parts: [{ text }] },
    notes: { input: { toolCallId: id, response } },
  }
  return message
}
