import type { UITools } from 'ai'
import { type RefObject, useCallback, useLayoutEffect, useState } from 'react'

import type { AttachedChat } from '../../client/sync/attached-chat.ts'
import { attachChat } from '../../client/sync/attached-chat.ts'
import type { AttachableChat } from '../../client/sync/attachable-chat.ts'
import { type ServerError, toServerError } from '../reading/problem.ts'
import type { TypedAttachedChat } from './use-browser-tools.ts'
import type { ChatInstance } from './use-chat-instance.ts'
import type { ChatApi } from './use-stable.ts'

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
  readonly onError: RefObject<((error: unknown) => void) | undefined>
}

interface ChatRefusals {
  readonly chat: object
  readonly refusals: Refusals
}

const NONE: Refusals = new Map()

/** Attaches a chat while it is rendered, and records why the server refused decisions. */
export function useAttachedChat<Tools extends UITools>(
  { chat, channel }: ChatInstance<Tools>,
  { api, onApproval, onError }: AttachOptions,
) {
  const [attached, setAttached] = useState<AttachedChat>()
  const [refused, setRefused] = useState<ChatRefusals>({ chat, refusals: NONE })
  const refuse = useCallback(
    (ids: readonly string[], reason: unknown) => {
      const error = toServerError(reason)
      const fresh = ids.map((id) => [id, error] as const)
      setRefused((known) => ({ chat, refusals: new Map([...ofChat(known, chat), ...fresh]) }))
    },
    [chat],
  )
  const clearRefusal = useCallback(
    (id: string) => {
      const others = (known: ChatRefusals) =>
        [...ofChat(known, chat)].filter(([each]) => each !== id)
      setRefused((known) => ({ chat, refusals: new Map(others(known)) }))
    },
    [chat],
  )
  /** Removes refusals whose reason was that the server could not be reached. */
  const clearUnavailable = useCallback(() => {
    setRefused((known) => {
      const refusals = [...ofChat(known, chat)]
      const others = refusals.filter(([, { code }]) => code !== 'unavailable')
      return others.length === refusals.length ? known : { chat, refusals: new Map(others) }
    })
  }, [chat])
  // A layout effect: the chat is attached before the first effect of the page runs.
  useLayoutEffect(() => {
    if (!channel) return
    const next = attachChat(chat, channel, {
      ...(api && { api }),
      onApproval,
      onError: (error) => onError.current?.(error),
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
    refusals: ofChat(refused, chat),
    refuse,
    clearRefusal,
    clearUnavailable,
  }
}

function ofChat({ chat, refusals }: ChatRefusals, wanted: object): Refusals {
  return chat === wanted ? refusals : NONE
}
