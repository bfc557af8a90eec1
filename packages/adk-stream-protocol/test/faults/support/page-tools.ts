import type { BaseTool } from '@google/adk'
import { z } from 'zod'

import { browserTool } from '../../../src/server/index.ts'

/** How long a page may take for `late`. */
const LATE_MS = 2_000

/** Tools that run in the page and return the name of their run. `select` needs approval. `late` has a short timeout. */
export function pageTools(): BaseTool[] {
  const shared = {
    description: 'Returns the name of its run.',
    parameters: z.object({ id: z.number() }),
    output: z.object({ run: z.string() }),
  }
  return [
    browserTool({ name: 'locate', ...shared }),
    browserTool({ name: 'select', ...shared, requireConfirmation: true }),
    browserTool({ name: 'late', ...shared, timeoutMs: LATE_MS }),
  ]
}
