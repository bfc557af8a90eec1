import { z } from 'zod'

/**
 * What another process needs to continue a live session. A handle is used only if the conversation still ends with `eventId`: then it
 * covers everything that was said. Otherwise the session is restored from the conversation.
 */
export const LiveSnapshot = z.object({
  handle: z.string().optional(),
  /** The last event with content. */
  eventId: z.string().optional(),
  /** The calls that wait for a decision or for the output of a browser tool. */
  calls: z.array(
    z.object({
      toolCallId: z.string(),
      toolName: z.string(),
      messageId: z.string(),
      approvalId: z.string().optional(),
      /** Whether calls inside the agent that the call runs wait for approval. */
      isPaused: z.boolean().optional(),
      /** Whether the model has a status of the call as its function response. */
      isParked: z.boolean().optional(),
      /** When a browser call times out, in ms since 1970. */
      expiresAt: z.number().optional(),
    }),
  ),
})

export type LiveSnapshot = z.infer<typeof LiveSnapshot>

/** A call that another process continues. */
export type WaitingCall = LiveSnapshot['calls'][number]
