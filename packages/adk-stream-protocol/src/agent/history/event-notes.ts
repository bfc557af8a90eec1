import type { Event } from '@google/adk'
import { z } from 'zod'

import type { AudioCount } from '../../protocol/message.ts'

/** A call that a person was asked about, with what they should know before they decide. */
const AskedNote = z.object({
  approvalId: z.string(),
  toolCallId: z.string(),
  deadline: z.number(),
  approvers: z.number(),
  hint: z.string().exactOptional(),
  title: z.string().exactOptional(),
  severity: z.enum(['low', 'medium', 'high']).exactOptional(),
  icon: z.string().exactOptional(),
  payload: z.unknown().exactOptional(),
})
export type AskedNote = z.infer<typeof AskedNote>

/** How the approval of a call ended. */
const DecidedNote = z.object({
  toolCallId: z.string(),
  state: z.enum(['approved', 'denied', 'expired', 'cancelled', 'unknown']),
  reason: z.string().exactOptional(),
  editedArgs: z.record(z.string(), z.unknown()).exactOptional(),
  approvedPayload: z.unknown().exactOptional(),
})
export type DecidedNote = z.infer<typeof DecidedNote>

const CompletedInput = z.object({
  toolCallId: z.string(),
  response: z.record(z.string(), z.unknown()),
})

const AudioNote = z.object({
  chunks: z.number(),
  bytes: z.number(),
  seconds: z.number(),
  sampleRate: z.number(),
}) satisfies z.ZodType<AudioCount>

const EventNotes = z.object({
  /** The assistant message that the event belongs to, where its place alone does not say so. */
  messageId: z.string().exactOptional(),
  /** On the user event that begins a turn: the message of the user. */
  userMessageId: z.string().exactOptional(),
  asked: z.array(AskedNote).exactOptional(),
  decided: z.array(DecidedNote).exactOptional(),
  /** Calls that were approved and handed to the client, which gives their result. */
  handedOver: z.array(z.string()).exactOptional(),
  /** Calls that wait for the client with nobody asked; told, and not stored. */
  offered: z.array(z.string()).exactOptional(),
  /** Long-running calls that the application completed: the response in this event is their final result. */
  completed: z.array(z.string()).exactOptional(),
  /** On a text for the model alone: the call of ADK's `adk_request_input` that it answers, and the result to show. */
  input: CompletedInput.exactOptional(),
  /** Calls whose response in this event has the words of an error, which are for the model alone. */
  failed: z.array(z.string()).exactOptional(),
  /** How much of the message was spoken so far. Speech itself is not stored. */
  audio: AudioNote.exactOptional(),
  /** The event only sets state, and belongs to no message. */
  context: z.boolean().exactOptional(),
  /** Calls whose response in this event only holds their place. */
  pending: z.array(z.string()).exactOptional(),
})

/**
 * What the bridge writes beside an event of the ADK session, in its custom metadata. With it the session alone says which messages
 * there are, under which ids, and what became of each approval. Other ADK programs do not see it.
 */
export type EventNotes = z.infer<typeof EventNotes>

const KEY = 'adk-stream-protocol'
const NO_NOTES: EventNotes = {}

/** The notes as custom metadata of an event, beside what is there already. */
export function writeNotes(
  notes: EventNotes,
  metadata: Record<string, unknown> = {},
): Record<string, unknown> {
  return { ...metadata, [KEY]: notes }
}

/** The notes of an event; none on an event that another program wrote. */
export function readNotes({ customMetadata }: Event): EventNotes {
  if (customMetadata === undefined) return NO_NOTES
  const notes = EventNotes.safeParse(customMetadata[KEY])
  return notes.success ? notes.data : NO_NOTES
}
