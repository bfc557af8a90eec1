import { randomUUID } from 'node:crypto'

import type { Event } from '@google/adk'
import { createEvent } from '@google/adk'
import type { Content } from '@google/genai'

import { writeNotes } from '../agent/history/event-notes.ts'
import type { LiveMessage } from './live-message.ts'

/** What a person said, as the event that begins a turn of the session: in the form that ADK gives it over SSE. */
export function toUserEvent(
  { messageId, userMessageId, state }: LiveMessage,
  content: Content,
): Event {
  return createEvent({
    actions: { stateDelta: { ...state } },
    author: 'user',
    invocationId: randomUUID(),
    content,
    customMetadata: writeNotes({ messageId, userMessageId }),
  })
}
