import {
  type Inbox,
  ApprovalFilters,
  ApprovalHistoryList,
  ApprovalInbox,
  Delegations,
  useAdkLabels,
  useApprovalHistory,
} from 'adk-stream-protocol/react'
import { ArrowLeft } from 'lucide-react'
import { useCallback, useEffect, useRef, useState } from 'react'

import { SlotContent } from '../plugin/slot-content.tsx'
import { useStudio } from '../wire/studio-info.ts'
import { api } from '../wire/wire.ts'
import type { Chats } from '../chats/chats-store.ts'
import { useLabels } from '../i18n/language.tsx'
import { ChatLink } from './inbox.tsx'
import { closeApprovals, useApprovalsLocation } from '../shell/location.ts'

interface ApprovalsPageProps {
  readonly inbox: Inbox
  /** The chats of the person. */
  readonly chats: Chats['chats']
  readonly onOpenChat: (chatId: string) => void
}

/** The pending approvals of all chats, and the history of those that were decided. */
export function ApprovalsPage({ inbox, chats, onOpenChat }: ApprovalsPageProps) {
  const { inbox: labels, history: historyLabels, delegations: delegationLabels } = useAdkLabels()
  const { approvalsPage } = useLabels().shell
  const { approvalId, filter, setFilter } = useApprovalsLocation()
  const { state, toolName, requester } = filter
  const { loadMore, ...history } = useApprovalHistory(api, {
    state,
    ...(toolName !== undefined && { toolName }),
    ...(requester !== undefined && { requester }),
  })
  const headingRef = useRef<HTMLHeadingElement>(null)
  useEffect(() => headingRef.current?.focus(), [])
  const onlyUndecided = useOnlyUndecided(inbox)
  const onlyId = approvalId ?? onlyUndecided
  const { delegations, people = [], person } = useStudio() ?? {}
  useEffect(() => {
    // Not from anything that the person has moved to.
    if (onlyId !== undefined && document.activeElement === headingRef.current)
      headingRef.current?.parentElement
        ?.querySelector<HTMLElement>('.adk-inbox-line[aria-expanded=true]')
        ?.focus()
  }, [onlyId])
  const renderChatLink = useCallback(
    (chatId: string) => <ChatLink chatId={chatId} chats={chats} onOpenChat={onOpenChat} />,
    [chats, onOpenChat],
  )
  return (
    <main className="scroller approvals-page">
      <div className="column">
        <button type="button" className="quiet back" onClick={closeApprovals}>
          <ArrowLeft aria-hidden="true" />
          {approvalsPage.back}
        </button>
        <SlotContent name="approvals" />
        <section>
          <h2 ref={headingRef} tabIndex={-1}>
            {labels.title}
          </h2>
          <ApprovalInbox
            collapsible
            key={approvalId}
            defaultOpenId={onlyId}
            inbox={inbox}
            renderChatLink={renderChatLink}
          />
        </section>
        {delegations === true && (
          <section>
            <h2>{delegationLabels.title}</h2>
            <Delegations
              api={api}
              people={people.length > 0 ? people.filter(({ id }) => id !== person?.id) : undefined}
            />
          </section>
        )}
        <section>
          <h2>{historyLabels.title}</h2>
          <ApprovalFilters filter={filter} onChange={setFilter} approvals={history.approvals} />
          <ApprovalHistoryList {...history} onLoadMore={loadMore} renderChatLink={renderChatLink} />
        </section>
        <p className="fine keys-note">{approvalsPage.keys}</p>
      </div>
    </main>
  )
}

/** Returns the id of the approval that waited for the person when it was the only one. It stays open when others follow. */
function useOnlyUndecided({ undecided }: Inbox): string | undefined {
  const [onlyId, setOnlyId] = useState<string>()
  const [first] = undecided
  if (onlyId === undefined && undecided.length === 1) setOnlyId(first?.id)
  return onlyId
}
