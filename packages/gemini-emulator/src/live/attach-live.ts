import type { Server } from 'node:http'

import type { World } from '../world.ts'

/** The Live side of an emulator: its WebSocket sessions. */
export interface LiveDesk {
  readonly sessions: readonly unknown[]
  /** Forgets the sessions that have ended. */
  reset(): void
  /** Closes every session. */
  close(): Promise<void>
}

/** Answers WebSocket upgrades on the server with Gemini Live. */
export function attachLive(_server: Server, _world: World): LiveDesk {
  return { sessions: [], reset: () => undefined, close: () => Promise.resolve() }
}
