import { type AdkApi, readApprovalLinkUrl, toApprovalLinkUrl } from 'adk-stream-protocol/client'
import { LinkedApprovalView, useApprovalLink } from 'adk-stream-protocol/react'
import { useEffect } from 'react'

import { useLabels } from '../i18n/language.tsx'
import { readStudio } from '../wire/studio-info.ts'
import { api } from '../wire/wire.ts'

type OpenedLink = Parameters<AdkApi['openApprovalLink']>

const PARAMETER = 'approve'

/** Reads the link with which this page was opened. The token is empty if the link was opened before a reload. */
export function takeApprovalLink(): OpenedLink | undefined {
  const approvalId = new URLSearchParams(window.location.search).get(PARAMETER)
  if (approvalId === null) return undefined
  const { token = '' } = readApprovalLinkUrl(window.location.hash) ?? {}
  return [approvalId, token]
}

/** Removes the token from the URL, so that it stays neither in the history of the browser nor on the screen. */
function removeToken(): void {
  window.history.replaceState(null, '', window.location.pathname + window.location.search)
}

/**
 * Creates a link to this page for an approval that waits for another person. If this page is open on the machine of the server, the link has
 * the address of that machine in its network, which a phone can open.
 */
export async function shareApproval(approvalId: string) {
  const { token, expiresAt } = await api.createApprovalLink(approvalId)
  const networkUrl = isLoopback(location.hostname) ? readStudio()?.networkUrl : undefined
  const page = new URL(
    `/?${new URLSearchParams({ [PARAMETER]: approvalId })}`,
    networkUrl ?? location.href,
  )
  return { url: toApprovalLinkUrl(page, { approvalId, token }), expiresAt }
}

function isLoopback(hostname: string): boolean {
  return /^(?:localhost|127\..*|\[::1\])$/.test(hostname)
}

interface ApprovalLinkPageProps {
  readonly link: OpenedLink
}

/** The page of a person who decides one approval by a link, for example on a phone. */
export function ApprovalLinkPage({ link: [approvalId, token] }: ApprovalLinkPageProps) {
  const { approvalsPage } = useLabels().shell
  const link = useApprovalLink(api, { approvalId, token })
  const isOpen = link.state === 'open'
  // Until then, a reload needs the token.
  useEffect(() => {
    if (isOpen) removeToken()
  }, [isOpen])
  return (
    <main className="scroller approvals-page approval-link-page">
      <div className="column">
        <h1>{approvalsPage.linkTitle}</h1>
        <LinkedApprovalView link={link} />
      </div>
    </main>
  )
}
