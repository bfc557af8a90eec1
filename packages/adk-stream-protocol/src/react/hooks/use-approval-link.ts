import { useCallback, useEffect, useRef, useState } from 'react'

import type { AdkApi, ApprovalLinkToken } from '../../client/api/adk-api.ts'
import type { LinkedApproval } from '../../protocol/server-views.ts'
import type { Decision } from '../reading/approval.ts'
import { type ServerError, toServerError } from '../reading/problem.ts'

/** The approval of a link, for the person who opened it. */
export interface ApprovalLinkState {
  /**
   * `closed`: the person has not opened the link yet. `failed`: the link was used, was opened in another browser, has expired, or is not
   * valid. `problem` says why.
   */
  readonly state: 'closed' | 'opening' | 'open' | 'decided' | 'failed'
  /** The approval, its sender and when the link expires. Undefined until the link is open. */
  readonly linked: LinkedApproval | undefined
  /** The state of the approval after the decision of this person, such as `denied`. */
  readonly outcome: string | undefined
  readonly problem: ServerError | undefined
  /** Whether the decision is being sent. */
  readonly deciding: boolean
  /**
   * Opens the link in this browser. Call it when the person asks for it, not when the page is loaded: programs that check the links of
   * messages load pages and run their scripts.
   */
  readonly open: () => Promise<void>
  readonly decide: (decision: Decision) => Promise<void>
}

type LinkApi = Pick<AdkApi, 'openApprovalLink' | 'readApprovalLink' | 'decideByLink'>

/**
 * Opens a link and decides its approval. The key that this browser receives is kept for this tab only, so that a reload shows the approval
 * again. Pass an empty token after a reload, when the URL no longer has a token.
 */
export function useApprovalLink(
  api: LinkApi,
  { approvalId, token }: ApprovalLinkToken,
): ApprovalLinkState {
  const [linked, setLinked] = useState<LinkedApproval>()
  const [outcome, setOutcome] = useState<string>()
  const [problem, setProblem] = useState<ServerError>()
  const [progress, setProgress] = useState<'closed' | 'opening' | 'failed'>(
    token === '' ? 'opening' : 'closed',
  )
  const [deciding, setDeciding] = useState(false)
  const key = useRef<string>(undefined)
  const show = useCallback(({ key: received, ...found }: OpenedApproval): void => {
    key.current = received
    setLinked(found)
    setProblem(undefined)
  }, [])
  const fail = useCallback((error: unknown): void => {
    setProblem(toServerError(error))
    setProgress('failed')
  }, [])
  useEffect(() => {
    // A link with a token waits for the person. Reading again after a reload opens nothing.
    if (token === '') readAgain(api, approvalId).then(show, fail)
  }, [api, approvalId, token, show, fail])
  const open = useCallback((): Promise<void> => {
    setProgress('opening')
    return openLink(api, { approvalId, token }).then(show, fail)
  }, [api, approvalId, token, show, fail])
  const decide = useCallback(
    async ({ approved, reason, preview }: Decision): Promise<void> => {
      if (key.current === undefined) return
      setDeciding(true)
      setProblem(undefined)
      try {
        const given = { approved, ...(reason !== undefined && { reason }) }
        const shown = preview === undefined ? {} : { preview }
        setOutcome(await api.decideByLink(approvalId, key.current, { ...given, ...shown }))
        findStorage()?.removeItem(toStorageKey(approvalId))
      } catch (error) {
        setProblem(toServerError(error))
      }
      setDeciding(false)
    },
    [api, approvalId],
  )
  const undecided = linked && progress !== 'failed' ? 'open' : progress
  const state = outcome === undefined ? undecided : 'decided'
  return { state, linked, outcome, problem, deciding, open, decide }
}

type OpenedApproval = LinkedApproval & { readonly key: string }

async function openLink(
  api: LinkApi,
  { approvalId, token }: ApprovalLinkToken,
): Promise<OpenedApproval> {
  const opened = await api.openApprovalLink(approvalId, token)
  findStorage()?.setItem(toStorageKey(approvalId), opened.key)
  return opened
}

/** Reads the approval again with the key of this tab. The server rejects an empty key. */
async function readAgain(api: LinkApi, approvalId: string): Promise<OpenedApproval> {
  const key = findStorage()?.getItem(toStorageKey(approvalId)) ?? ''
  return { key, ...(await api.readApprovalLink(approvalId, key)) }
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
