import { z } from 'zod'

/** The response of `GET /demo`. */
export const DemoInfo = z.object({
  /** The agent over HTTP, the agent over the WebSocket, and Gemini without the agent. */
  modes: z.array(z.enum(['sse', 'live', 'direct'])),
  model: z.string(),
  liveModel: z.string(),
  /** Whether the model is the built-in emulator, which does not understand speech. */
  emulated: z.boolean(),
  /** Whether this page can sign in to the demo's calendar: it is opened on the machine of the server, at the address of its start-up output. */
  signIn: z.boolean(),
  /** The files that a message may contain. */
  files: z.object({ types: z.array(z.string()), maxBytes: z.int().positive() }),
  /** The prices of models in US dollars per million tokens, for an estimate of the cost. */
  prices: z.record(z.string(), z.object({ input: z.number(), output: z.number() })),
  /** The address of the server in its network, if it can be reached there. */
  networkUrl: z.url().optional(),
  /** Whether this browser is the second approver, and the path that makes it one. */
  approver: z.object({ is: z.boolean(), address: z.string().optional() }),
})
export type DemoInfo = z.infer<typeof DemoInfo>

/** The response header with the name of the instance that responded. */
export const INSTANCE_HEADER = 'x-demo-instance'

/** The languages of the demo. */
export type Language = 'en' | 'ja'
