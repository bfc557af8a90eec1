import type { Event } from '@google/adk'
import { z } from 'zod'

/**
 * The ids that a turn's messages have on the client, kept in the custom metadata of the user event that begins the turn. So the
 * ADK session alone says which messages there are, and a reload shows them under the ids they were streamed with.
 */
const Marks = z.object({ userMessageId: z.string(), messageId: z.string() })
export type TurnMarks = z.infer<typeof Marks>

const KEY = 'adk-stream-protocol'

/** The marks as custom metadata for `runAsync`. */
export function writeMarks(marks: TurnMarks): Record<string, unknown> {
  return { [KEY]: marks }
}

/** The marks of a turn that begins with this event; a turn made by another client gets ids from ADK's own. */
export function readMarks(event: Event): TurnMarks | undefined {
  if (!beginsTurn(event)) return undefined
  const marks = Marks.safeParse(event.customMetadata?.[KEY])
  return marks.success ? marks.data : { userMessageId: event.id, messageId: event.invocationId }
}

// A user event of nothing but function responses goes on with a turn: it answers what the agent asked.
function beginsTurn(event: Event): boolean {
  if (event.author !== 'user' || !event.content) return false
  return event.content.parts?.some((part) => part.functionResponse === undefined) ?? false
}

/** Custom metadata of an event that only puts a session in order for the model. People were told the same in the stream. */
export const REPAIR_METADATA: Record<string, unknown> = { [KEY]: { repair: true } }

const Repair = z.object({ repair: z.literal(true) })

/** Whether an event is not part of what was streamed. */
export function isRepair(event: Event): boolean {
  return Repair.safeParse(event.customMetadata?.[KEY]).success
}
