import type { UITools } from 'ai'
import { useLayoutEffect, useMemo, useState, useSyncExternalStore } from 'react'

import type { AttachedChat } from '../../client/sync/attached-chat.ts'
import { attachChat } from '../../client/sync/attached-chat.ts'
import type { AttachableChat } from '../../client/sync/attachable-chat.ts'
import { Listeners } from '../../shared/collections.ts'
import { type ServerError, toServerError } from '../reading/problem.ts'
import type { TypedAttachedChat } from './use-browser-tools.ts'
import type { ChatInstance } from './use-chat-instance.ts'
import type { ChatApi } from '../use-stable.ts'

/**
 * Why the server refused decisions, by approval id.
 *
 * @inline
 */
export type Refusals = ReadonlyMap<string, ServerError>

interface AttachOptions {
  /** A stable object. */
  readonly api: ChatApi | undefined
  /** A stable function. */
  readonly onApproval: (approval: { approvalId: string }) => void
  /** A stable function. */
  readonly onError: (error: unknown) => void
}

const NONE: Refusals = new Map()

/** Attaches a chat while it is rendered, and records why the server refused decisions. */
export function useAttachedChat<Tools extends UITools>(
  { chat, channel }: ChatInstance<Tools>,
  { api, onApproval, onError }: AttachOptions,
) {
  const [attached, setAttached] = useState<AttachedChat>()
  // Of this chat only: another chat has none.
  // oxlint-disable-next-line react/memo-dependencies, react-hooks/exhaustive-deps
  const refusals = useMemo(() => createRefusals(), [chat])
  const { refuse, clearRefusal, clearUnavailable } = refusals
  // A layout effect: the chat is attached before the first effect of the page runs.
  useLayoutEffect(() => {
    if (!channel) return
    const next = attachChat(chat, channel, {
      ...(api && { api }),
      onApproval,
      onError,
      onRefused: refuse,
    })
    // Attached in an effect, because React may discard a render. The state is set here for the same reason.
    // oxlint-disable-next-line react/set-state-in-effect
    setAttached(next)
    return () => next.detach()
  }, [chat, channel, api, onApproval, onError, refuse])
  const isOurs = attached?.chat === (chat as unknown as AttachableChat)
  const current: TypedAttachedChat<Tools> | undefined = isOurs ? attached : undefined
  return {
    attached: current,
    refusals: useSyncExternalStore(refusals.subscribe, refusals.read, refusals.read),
    refuse,
    clearRefusal,
    clearUnavailable,
  }
}

/**
 * The refusals of a chat, outside of React's state: they are rendered together with `unconfirmed`, which is outside too. Otherwise a card
 * whose decision was refused would be shown as accepted in between.
 */
function createRefusals() {
  let refusals = NONE
  const listeners = new Listeners()
  const set = (next: Refusals): void => {
    if (next.size === 0 && refusals.size === 0) return
    refusals = next
    listeners.call()
  }
  return {
    subscribe: (listener: () => void) => listeners.add(listener),
    read: () => refusals,
    refuse: (ids: readonly string[], reason: unknown): void => {
      const error = toServerError(reason)
      set(new Map([...refusals, ...ids.map((id) => [id, error] as const)]))
    },
    clearRefusal: (id: string): void => set(new Map([...refusals].filter(([each]) => each !== id))),
    /** Removes refusals whose reason was that the server could not be reached. */
    clearUnavailable: (): void => {
      const others = [...refusals].filter(([, { code }]) => code !== 'unavailable')
      if (others.length < refusals.size) set(new Map(others))
    },
  }
}
