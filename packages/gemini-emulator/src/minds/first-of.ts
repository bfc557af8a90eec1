import type { Mind } from '../mind.ts'

/** Asks the minds in turn; the first that does not pass decides. */
export function firstOf(...minds: readonly Mind[]): Mind {
  return async (prompt) => {
    for (const mind of minds) {
      const acts = await mind(prompt)
      if (acts) return acts
    }
    return undefined
  }
}
