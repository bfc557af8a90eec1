import { FunctionTool } from '@google/adk'
import { z } from 'zod'

const NEEDS_BROWSER = {
  error: 'This tool runs in the browser; this version of the demo cannot run it yet.',
}

/** Asks the browser where the user is, after the user has approved it. */
export function createGetLocation() {
  return new FunctionTool({
    name: 'get_location',
    description: "Gets the user's current position from their browser: latitude and longitude.",
    parameters: z.object({}),
    requireConfirmation: true,
    execute: () => NEEDS_BROWSER,
  })
}

/** Changes the music that plays in the browser; nobody has to approve it. */
export function createChangeBgm() {
  return new FunctionTool({
    name: 'change_bgm',
    description: "Changes the background music that plays in the user's browser.",
    parameters: z.object({
      track: z.int().min(1).max(2).describe('The number of the track: 1 or 2.'),
    }),
    execute: () => NEEDS_BROWSER,
  })
}
