import { useCallback, useEffect, useRef, useState } from 'react'

import type { AdkApi, ApprovalLinkToken } from '../../client/api/adk-api.ts'
import type { LinkedApproval } from '../../protocol/server-views.ts'
import type { Decision } from '../reading/approval.ts'
import { type ServerError, toServerError } from '../reading/problem.ts'

/** The approval of a link, for the person who opened it. */
export interface ApprovalLinkState {
  /** `failed`: the link was used, has expired, or is not valid. `problem` says why. */
  readonly state: 'opening' | 'open' | 'decided' | 'failed'
  /** The approval, its sender and when the link expires. Undefined until the link is open. */
  readonly linked: LinkedApproval | undefined
  /** The state of the approval after the decision of this person, such as `denied`. */
  readonly outcome: string | undefined
  readonly problem: ServerError | undefined
  /** Whether the decision is being sent. */
  readonly deciding: boolean
  readonly decide: (decision: Decision) => Promise<void>
}

type LinkApi = Pick<AdkApi, 'openApprovalLink' | 'readApprovalLink' | 'decideByLink'>

/**
 * Opens a link and decides its approval. The link can be opened once: the key that replaces its token is kept for this tab only, so
 * that a reload shows the approval again.
 */
export function useApprovalLink(
  api: LinkApi,
  { approvalId, token }: ApprovalLinkToken,
): ApprovalLinkState {
  const [linked, setLinked] = useState<LinkedApproval>()
  const [outcome, setOutcome] = useState<string>()
  const [problem, setProblem] = useState<ServerError>()
  const [hasFailed, setFailed] = useState(false)
  const [deciding, setDeciding] = useState(false)
  const opening = useRef<Promise<string>>(undefined)
  useEffect(() => {
    const link = { approvalId, token }
    // Once, also if effects run twice: a second request would be refused.
    opening.current = opening.current ?? open(api, link, setLinked)
    opening.current.catch((error: unknown) => {
      setProblem(toServerError(error))
      setFailed(true)
    })
  }, [api, approvalId, token])
  const decide = useCallback(
    async ({ approved, reason, preview }: Decision): Promise<void> => {
      const key = await opening.current
      if (key === undefined) return
      setDeciding(true)
      setProblem(undefined)
      try {
        const given = { approved, ...(reason !== undefined && { reason }) }
        const shown = preview === undefined ? {} : { preview }
        setOutcome(await api.decideByLink(approvalId, key, { ...given, ...shown }))
        findStorage()?.removeItem(toStorageKey(approvalId))
      } catch (error) {
        setProblem(toServerError(error))
      }
      setDeciding(false)
    },
    [api, approvalId],
  )
  const opened = linked ? 'open' : 'opening'
  const undecided = hasFailed ? 'failed' : opened
  const state = outcome === undefined ? undecided : 'decided'
  return { state, linked, outcome, problem, deciding, decide }
}

/** Opens the link, or reads its approval again after a reload. Returns the key. */
async function open(
  api: LinkApi,
  { approvalId, token }: ApprovalLinkToken,
  onOpen: (linked: LinkedApproval) => void,
): Promise<string> {
  const name = toStorageKey(approvalId)
  const known = findStorage()?.getItem(name) ?? undefined
  if (known !== undefined && token === '') {
    onOpen(await api.readApprovalLink(approvalId, known))
    return known
  }
  const { key, ...linked } = await api.openApprovalLink(approvalId, token)
  findStorage()?.setItem(name, key)
  onOpen(linked)
  return key
}

function toStorageKey(approvalId: string): string {
  return `adk-approval-link-${approvalId}`
}

/** The storage of this tab, or undefined if the browser does not allow it. A reload then needs a new link. */
function findStorage(): Storage | undefined {
  try {
    return window.sessionStorage
  } catch {
    return undefined
  }
}
