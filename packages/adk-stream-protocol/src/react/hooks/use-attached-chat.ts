import type { UITools } from 'ai'
import { type RefObject, useCallback, useLayoutEffect, useState } from 'react'

import type { AttachedChat } from '../../client/sync/attached-chat.ts'
import { attachChat } from '../../client/sync/attached-chat.ts'
import type { AttachableChat } from '../../client/sync/attachable-chat.ts'
import { type ToldError, toTold } from '../reading/problem.ts'
import type { TypedAttachedChat } from './use-browser-tools.ts'
import type { OpenedChat } from './use-opened-chat.ts'
import type { ChatApi } from './use-steady-api.ts'

/** Why decisions were refused, by approval. */
export type Refusals = ReadonlyMap<string, ToldError>

interface Attaching {
  /** One that stays the same. */
  readonly api: ChatApi | undefined
  /** A function that stays the same. */
  readonly onApproval: (approval: { approvalId: string }) => void
  readonly onError: RefObject<((error: unknown) => void) | undefined>
}

interface Refused {
  readonly chat: object
  readonly refusals: Refusals
}

const NONE: Refusals = new Map()

/** Looks after a chat from before the first effect of the page until it is left, and keeps why decisions were refused. */
export function useAttachedChat<Tools extends UITools>(
  { chat, channel }: OpenedChat<Tools>,
  { api, onApproval, onError }: Attaching,
) {
  const [attached, setAttached] = useState<AttachedChat>()
  const [refused, setRefused] = useState<Refused>({ chat, refusals: NONE })
  const refuse = useCallback(
    (ids: readonly string[], reason: unknown) => {
      const told = toTold(reason)
      const fresh = ids.map((id) => [id, told] as const)
      setRefused((known) => ({ chat, refusals: new Map([...ofChat(known, chat), ...fresh]) }))
    },
    [chat],
  )
  const forgive = useCallback(
    (id: string) => {
      const others = (known: Refused) => [...ofChat(known, chat)].filter(([each]) => each !== id)
      setRefused((known) => ({ chat, refusals: new Map(others(known)) }))
    },
    [chat],
  )
  // Before any effect: what the page does in its own finds the chat attached.
  useLayoutEffect(() => {
    if (!channel) return
    const next = attachChat(chat, channel, {
      ...(api && { api }),
      onApproval,
      onError: (error) => onError.current?.(error),
      onRefused: refuse,
    })
    // It is made here and not while rendering, because a rendering may be thrown away; so the page is told here.
    // oxlint-disable-next-line react/set-state-in-effect
    setAttached(next)
    return () => next.detach()
  }, [chat, channel, api, onApproval, onError, refuse])
  const isOurs = attached?.chat === (chat as unknown as AttachableChat)
  const current: TypedAttachedChat<Tools> | undefined = isOurs ? attached : undefined
  return { attached: current, refusals: ofChat(refused, chat), refuse, forgive }
}

function ofChat({ chat, refusals }: Refused, wanted: object): Refusals {
  return chat === wanted ? refusals : NONE
}
