import { z } from 'zod'

/** The application data of the bridge that the page shows: code the model ran, and what came of it. */
export const DataPart = z.discriminatedUnion('type', [
  z.object({
    type: z.literal('data-executable-code'),
    data: z.object({ language: z.string(), code: z.string() }),
  }),
  z.object({
    type: z.literal('data-code-execution-result'),
    data: z.object({ outcome: z.string(), output: z.string() }),
  }),
])
export type DataPart = z.infer<typeof DataPart>

/** Reads a `data-*` part; `undefined` for those that are not for the eye. */
export function readDataPart(part: unknown): DataPart | undefined {
  return DataPart.safeParse(part).data
}
