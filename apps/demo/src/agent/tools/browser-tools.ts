import { browserTool } from 'adk-stream-protocol/server'
import { z } from 'zod'

export const GetLocation = {
  description: "Gets the user's current position from their browser: latitude and longitude.",
  parameters: z.object({}),
  // Clients may return more fields. The model receives all of them.
  output: z.looseObject({
    latitude: z.number().min(-90).max(90),
    longitude: z.number().min(-180).max(180),
    accuracy: z.number().nonnegative().optional(),
  }),
}

/** Returns the position of the browser. Needs approval. */
export function createGetLocation() {
  return browserTool({ name: 'get_location', ...GetLocation, requireConfirmation: true })
}

export const ChangeBgm = {
  description: "Changes the background music that plays in the user's browser.",
  parameters: z.object({
    track: z.int().min(1).max(2).describe('The number of the track: 1 or 2.'),
  }),
  // Clients of the earlier system return `{ track, message }`.
  output: z.looseObject({ success: z.boolean().default(true), track: z.int() }),
}

/** Changes the background music in the browser. Needs no approval. */
export function createChangeBgm() {
  return browserTool({ name: 'change_bgm', ...ChangeBgm })
}
