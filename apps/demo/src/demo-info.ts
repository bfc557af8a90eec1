import { z } from 'zod'

/** What the page asks the demo server about itself: `GET /demo`. */
export const DemoInfo = z.object({
  /** The ways to talk: over HTTP, over the socket, and past ADK straight to Gemini with the AI SDK's own means. */
  modes: z.array(z.enum(['sse', 'live', 'direct'])),
  model: z.string(),
  liveModel: z.string(),
  /** Whether the built-in emulator answers, which cannot understand speech. */
  emulated: z.boolean(),
  /** What may be sent beside text. */
  files: z.object({ types: z.array(z.string()), maxBytes: z.int().positive() }),
  /** Whether this browser is the second person for large payments, and how it may become that. */
  approver: z.object({ is: z.boolean(), address: z.string().optional() }),
})
export type DemoInfo = z.infer<typeof DemoInfo>
