import { StoredChoice, useChoice } from './stored-choice.ts'

/** The agent over HTTP, the agent over a WebSocket, or Gemini without the agent. */
export const MODES = ['sse', 'live', 'direct'] as const
export type Mode = (typeof MODES)[number]

/** Each tab has its own mode: another tab must not end a voice conversation. */
const mode = new StoredChoice<Mode>({ key: 'mode', values: MODES, fallback: 'sse', perTab: true })

export function useMode() {
  return useChoice(mode)
}

/** Returns whether the server stores the chats of this mode. Both modes of the agent share their chats. */
export function storesChats(chosen: Mode): boolean {
  return chosen !== 'direct'
}
