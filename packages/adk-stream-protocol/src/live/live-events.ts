import { randomUUID } from 'node:crypto'

import type { BaseTool, Event } from '@google/adk'
import { createEvent } from '@google/adk'
import type { Content } from '@google/genai'

import { asBrowserTool } from '../calls/browser-tool.ts'
import { toRepliedNote } from '../agent/call-responses.ts'
import { writeNotes } from '../agent/history/event-notes.ts'
import type { Approval } from '../approvals/approval.ts'
import { isPcm } from '../agent/translate/count-usage.ts'
import type { LiveMessage } from './live-message.ts'

/** `output` is text, a thought, a transcript of the model's speech, a file, code, or an error. `audio` is PCM audio. `other` carries metadata such as usage. */
export type LiveEventKind = 'user-transcript' | 'audio' | 'output' | 'call' | 'turn-end' | 'other'

/** Classifies an ADK event of a live run. */
export function kindOf(event: Event): LiveEventKind {
  if (event.inputTranscription) return 'user-transcript'
  if (event.turnComplete) return 'turn-end'
  const parts = event.content?.parts ?? []
  if (parts.some(({ inlineData }) => isPcm(inlineData?.mimeType ?? ''))) return 'audio'
  if (parts.some(({ functionCall }) => functionCall)) return 'call'
  if (parts.length > 0 || event.outputTranscription || event.errorCode) return 'output'
  return 'other'
}

/**
 * Returns an event in the form in which it is stored and streamed: a transcript becomes text, because ADK stores it where no model reads
 * it; the event names its message; and only calls of browser tools are long-running, because ADK marks every call of a live run so.
 */
export function prepareEvent(
  event: Event,
  { messageId, audio }: Pick<LiveMessage, 'messageId' | 'audio'>,
  findTool: (name: string) => BaseTool | undefined,
): Event {
  if (event.partial) return event
  // In a stored event, `interrupted` means that the user stopped the reply.
  const { interrupted: _, ...whole } = event
  const customMetadata = writeNotes({ messageId, ...(audio && { audio }) }, event.customMetadata)
  if (whole.outputTranscription) {
    const { outputTranscription, ...rest } = whole
    const content = { role: 'model', parts: [{ text: outputTranscription.text ?? '' }] }
    return withFields(rest, { content, customMetadata })
  }
  const longRunningToolIds = (whole.content?.parts ?? []).flatMap(({ functionCall }) => {
    const tool = functionCall && findTool(functionCall.name ?? '')
    return tool && asBrowserTool(tool) ? (functionCall.id ?? []) : []
  })
  return withFields(whole, { customMetadata, longRunningToolIds })
}

/** Marks an event so that ADK yields it and does not store it. */
export function withoutStoring(event: Event): Event {
  return withFields(event, { partial: true })
}

// A spread of an object that rest properties made, as ADK's events are, gives each copy a hidden class of its own, which
// takes 600 bytes.
function withFields(event: Event, fields: Partial<Event>): Event {
  return Object.assign({}, event, fields)
}

/** Creates the event of a user message, in the form that ADK gives it over SSE. */
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

/** Creates the event that tells clients which approval a user message has decided. */
export function toRepliedEvent(
  { messageId }: LiveMessage,
  author: string,
  approval: Approval,
): Event {
  const replied = toRepliedNote(approval)
  const customMetadata = writeNotes({ messageId, replied })
  return createEvent({ author, invocationId: randomUUID(), customMetadata })
}

/** Removes the sources of earlier replies from events: ADK 2.0.0 repeats `groundingMetadata` in every later event. */
export class SourcesPerMessage {
  #messages: WeakMap<object, LiveMessage> | undefined

  /** Whether the event carries sources of this message. New sources belong to it. */
  has({ groundingMetadata }: Event, message: LiveMessage | undefined): boolean {
    if (!groundingMetadata || !message) return false
    return (this.#messages?.get(groundingMetadata) ?? message) === message
  }

  /** Returns the event with the sources of this message only. */
  filter(event: Event, message: LiveMessage): Event {
    if (!event.groundingMetadata) return event
    if (this.has(event, message)) {
      this.#messages ??= new WeakMap()
      this.#messages.set(event.groundingMetadata, message)
      return event
    }
    const { groundingMetadata: _, ...rest } = event
    return rest
  }
}
