import type { UIMessage } from 'ai'
import { useCallback, useEffect, useMemo, useState } from 'react'

import type { AdkApi } from '../../client/adk-api.ts'
import { readApprovals, type Votes } from '../reading/approval.ts'
import { useLatest } from './use-latest.ts'

type Counted = ReadonlyMap<string, Votes>

const NOTHING: Counted = new Map()

/** How far the approvals of a chat have come that take several people. A message tells how many it takes, the server who has voted. */
export function useVotes(
  api: Pick<AdkApi, 'readApproval'> | undefined,
  messages: readonly UIMessage[],
) {
  const [votes, setVotes] = useState(NOTHING)
  const look = useCallback(
    async (approvalId: string): Promise<void> => {
      // Without an answer nothing is known of votes: the buttons stay, and the server refuses a second one.
      const answer = await api?.readApproval(approvalId).catch(() => undefined)
      if (!answer) return
      const { approvals, voted } = answer.approval
      setVotes((known) => count(known, approvalId, { given: approvals.given, voted }))
    },
    [api],
  )
  const asked = useMemo(() => listShared(messages), [messages])
  const ids = asked.join(' ')
  useEffect(() => {
    // What it tells comes later, from the server.
    // oxlint-disable-next-line react/set-state-in-effect
    for (const id of ids === '' ? [] : ids.split(' ')) void look(id)
  }, [ids, look])
  const shared = useLatest(asked)
  const onApproval = useCallback(
    ({ approvalId }: { readonly approvalId: string }) => {
      if (shared.current.includes(approvalId)) void look(approvalId)
    },
    [shared, look],
  )
  return { votes, onApproval }
}

/** Approvals that wait and take several people. */
function listShared(messages: readonly UIMessage[]): string[] {
  return messages
    .flatMap((message) => [...readApprovals(message).values()])
    .filter(({ state, approvers = 1 }) => state === 'requested' && approvers > 1)
    .map(({ approvalId }) => approvalId)
}

/** Votes are never taken back: who knows of fewer was overtaken. */
function count(known: Counted, approvalId: string, votes: Votes): Counted {
  const before = known.get(approvalId)
  const isNew = !before || votes.given > before.given || votes.voted !== before.voted
  return isNew && votes.given >= (before?.given ?? 0)
    ? new Map([...known, [approvalId, votes]])
    : known
}
