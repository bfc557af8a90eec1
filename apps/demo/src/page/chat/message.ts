import type { UIMessage } from 'ai'
import { z } from 'zod'

/** Why an answer ended early, as the bridge tells it. */
export const TurnError = z.object({
  code: z.string(),
  message: z.string(),
  retryAfterSeconds: z.number().optional(),
})
export type TurnError = z.infer<typeof TurnError>

/** What the bridge tells about an answer besides its parts. */
export const Metadata = z.object({
  usage: z.object({ inputTokens: z.number(), outputTokens: z.number() }).optional(),
  modelVersion: z.string().optional(),
  stopped: z.boolean().optional(),
  error: TurnError.optional(),
})
export type Metadata = z.infer<typeof Metadata>

export type Message = UIMessage<Metadata>
export type Part = Message['parts'][number]

/** Whether there is anything to see yet: an answer begins empty. */
export function hasContent({ parts }: Message): boolean {
  return parts.some(({ type }) => type !== 'step-start')
}
