import type { MessageView } from './chat-messages.ts'
import type { ResponseState } from './response-states.ts'
import type { AttachedSync, SyncEffect, SyncState } from './sync-state.ts'

/** The state after an event, and the effects to run. */
export type Step = readonly [state: SyncState, effects: readonly SyncEffect[]]
export type AttachedStep = readonly [state: AttachedSync, effects: readonly SyncEffect[]]

export const NONE: ReadonlySet<string> = new Set()

export const NOTIFY = { type: 'notify' } as const
export const LOAD = { type: 'load' } as const
export const RELOAD = { type: 'reload' } as const
export const CANCEL_RETRY = { type: 'cancel-retry' } as const

export function mark(response: ResponseState, ...ids: readonly string[]): SyncEffect {
  return { type: 'mark', ids, response }
}

export function forget(id: string): SyncEffect {
  return { type: 'forget', id }
}

export function setMessages(messages: MessageView[]): SyncEffect {
  return { type: 'set-messages', messages }
}

export function resume(purpose: Extract<SyncEffect, { type: 'resume' }>['purpose']): SyncEffect {
  return { type: 'resume', purpose }
}

export function reportError(error: unknown): SyncEffect {
  return { type: 'report-error', error }
}

/** Puts effects before those of a step. */
export function withEffects(effects: readonly SyncEffect[], [state, more]: Step): Step {
  return [state, [...effects, ...more]]
}

export function withId(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  return new Set([...ids, id])
}

export function withoutId(ids: ReadonlySet<string>, id: string): ReadonlySet<string> {
  return new Set([...ids].filter((each) => each !== id))
}
