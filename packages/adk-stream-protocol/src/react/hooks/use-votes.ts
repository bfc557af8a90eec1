import type { UIMessage } from 'ai'
import { useCallback, useEffect, useMemo, useState } from 'react'

import type { AdkApi } from '../../client/api/adk-api.ts'
import { readApprovals, type Votes } from '../reading/approval.ts'
import { useLatest } from './use-latest.ts'

const NO_VOTES: ReadonlyMap<string, Votes> = new Map()
const NO_HINTS: ReadonlyMap<string, string> = new Map()

/**
 * Reads what the messages of a chat do not say about its pending approvals: how many people have approved, and the hint as the policy
 * gives it now. Reads again when an approval of the chat changes, since a call that ran may have changed what a hint says.
 */
export function useVotes(
  api: Pick<AdkApi, 'readApproval'> | undefined,
  messages: readonly UIMessage[],
) {
  const [votes, setVotes] = useState(NO_VOTES)
  const [hints, setHints] = useState(NO_HINTS)
  const look = useCallback(
    async (approvalId: string): Promise<void> => {
      // Without an answer the card stays as the message has it: the buttons stay, and the server refuses a second vote.
      const answer = await api?.readApproval(approvalId).catch(() => undefined)
      if (!answer) return
      const { approvals, voted, version, hint } = answer.approval
      if (approvals.needed > 1)
        setVotes((known) => count(known, approvalId, { given: approvals.given, voted, version }))
      if (hint !== undefined)
        setHints((known) =>
          known.get(approvalId) === hint ? known : new Map([...known, [approvalId, hint]]),
        )
    },
    [api],
  )
  const pending = useMemo(() => listPending(messages), [messages])
  const ids = pending.join(' ')
  useEffect(() => {
    // What it tells comes later, from the server.
    // oxlint-disable-next-line react/set-state-in-effect
    for (const id of ids === '' ? [] : ids.split(' ')) void look(id)
  }, [ids, look])
  const latest = useLatest(pending)
  const onApproval = useCallback(() => {
    for (const id of latest.current) void look(id)
  }, [latest, look])
  return { votes, hints, onApproval }
}

function listPending(messages: readonly UIMessage[]): string[] {
  return messages
    .flatMap((message) => [...readApprovals(message).values()])
    .filter(({ state }) => state === 'requested')
    .map(({ approvalId }) => approvalId)
}

/** An answer that was overtaken by a later one is out of date. */
function count(
  known: ReadonlyMap<string, Votes>,
  approvalId: string,
  votes: Votes,
): ReadonlyMap<string, Votes> {
  const before = known.get(approvalId)
  const isNew = !before || (votes.version ?? votes.given) > (before.version ?? before.given)
  return isNew ? new Map([...known, [approvalId, votes]]) : known
}
