import { z } from 'zod'

import { music } from '../music/music.ts'
import { BrowserToolError } from './browser-tool-error.ts'

const Input = z.object({ track: z.union([z.literal(1), z.literal(2)]) })

/** Plays another track. */
export async function changeBgm(input: unknown): Promise<Record<string, unknown>> {
  const parsed = Input.safeParse(input)
  if (!parsed.success) throw new BrowserToolError('There is a track 1 and a track 2, and no other.')
  const { track } = parsed.data
  await music.play(track)
  return { success: true, track }
}
