import type { BaseTool, Event } from '@google/adk'

import { asBrowserTool } from '../calls/browser-tool.ts'
import { writeNotes } from '../agent/history/event-notes.ts'
import type { LiveMessage } from './live-message.ts'

/** What an event of a live run is, for the conversation. */
export type LiveEventKind = 'heard' | 'sound' | 'speech' | 'call' | 'end' | 'report'

/** Tells what an ADK event of a live run means. */
export function kindOf(event: Event): LiveEventKind {
  if (event.inputTranscription) return 'heard'
  if (event.turnComplete) return 'end'
  const parts = event.content?.parts ?? []
  if (parts.some(({ inlineData }) => inlineData?.mimeType?.startsWith('audio/'))) return 'sound'
  if (parts.some(({ functionCall }) => functionCall)) return 'call'
  if (parts.length > 0 || event.outputTranscription || event.errorCode) return 'speech'
  return 'report'
}

/**
 * An event as it is stored and told. ADK stores transcripts where no model reads them, and notes nothing of the message that an event
 * belongs to; it takes every call of a live run for one that is answered from outside.
 */
export function prepareEvent(
  event: Event,
  { messageId, audio }: Pick<LiveMessage, 'messageId' | 'audio'>,
  findTool: (name: string) => BaseTool | undefined,
): Event {
  if (event.partial) return event
  // A stored event with this mark is one of an answer that a person stopped.
  const { interrupted: _, ...whole } = event
  const customMetadata = writeNotes({ messageId, ...(audio && { audio }) }, event.customMetadata)
  if (whole.outputTranscription) {
    const { outputTranscription, ...rest } = whole
    const content = { role: 'model', parts: [{ text: outputTranscription.text ?? '' }] }
    return { ...rest, content, customMetadata }
  }
  const waiting = (whole.content?.parts ?? []).flatMap(({ functionCall }) => {
    const tool = functionCall && findTool(functionCall.name ?? '')
    return tool && asBrowserTool(tool) ? (functionCall.id ?? []) : []
  })
  return { ...whole, customMetadata, longRunningToolIds: waiting }
}

/** An event that is told and not stored. */
export function unstored(event: Event): Event {
  return { ...event, partial: true }
}
