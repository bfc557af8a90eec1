import { StoredChoice, useChoice } from './stored-choice.ts'

/** How the page talks with the model: the agent over HTTP, the agent over one socket, or Gemini without the agent. */
export const MODES = ['sse', 'live', 'direct'] as const
export type Mode = (typeof MODES)[number]

const mode = new StoredChoice<Mode>({ key: 'mode', values: MODES, fallback: 'sse' })

export function useMode() {
  return useChoice(mode)
}

/** Whether the server keeps the chats of this mode; those of the agent are the same in both of its modes. */
export function storesChats(chosen: Mode): boolean {
  return chosen !== 'direct'
}
