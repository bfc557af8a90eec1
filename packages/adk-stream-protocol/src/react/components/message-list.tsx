import type { UIMessage } from 'ai'
import { type ReactNode, useMemo } from 'react'

import { useAdkTexts } from '../provider.tsx'
import { isWaiting } from '../reading/call.ts'
import { hasSpent } from '../reading/has-acted.ts'
import { isBusy } from '../../client/sync/attachable-chat.ts'
import { type ApprovalDesk, ApprovalDeskContext } from './approval-desk.ts'
import { MessageItem } from './message-item.tsx'

/** A conversation, and where its calls are decided; that of `useAdkChat`. */
export interface MessageListProps extends Partial<ApprovalDesk> {
  readonly messages: readonly UIMessage[]
  /** That of `useAdkChat` or `useChat`. Default `ready`. */
  readonly status?: string
  /** Makes the last answer again; not offered once a call that a person approved may have run in it. A function that stays the same. */
  readonly onRegenerate?: (() => void) | undefined
  readonly renderActions?: ((message: UIMessage) => ReactNode) | undefined
}

const NOTHING: ReadonlyMap<string, never> = new Map<string, never>()
const NO_IDS: ReadonlySet<string> = new Set<string>()
const DECIDE_NOTHING = (): void => undefined

/** The conversation. A chunk renders the message that it belongs to, and no other. */
export function MessageList(props: MessageListProps) {
  const { messages, status = 'ready', onRegenerate, renderActions } = props
  const { onDecide = DECIDE_NOTHING, refusals = NOTHING, votes = NOTHING } = props
  const { hints = NOTHING, unconfirmed = NO_IDS, isConnected = true } = props
  const { message: texts } = useAdkTexts()
  const desk = useMemo(
    () => ({ onDecide, refusals, votes, hints, unconfirmed, isConnected }),
    [onDecide, refusals, votes, hints, unconfirmed, isConnected],
  )
  const busy = isBusy({ status })
  const last = messages.at(-1)
  const isAnswered = last?.role === 'assistant' && hasContent(last)
  const canRegenerate = isAnswered && status === 'ready' && !isWaiting(last) && !hasSpent(messages)
  return (
    <div role="log" aria-label={texts.conversation} aria-busy={busy} className="adk-messages">
      <ApprovalDeskContext value={desk}>
        {messages.filter(hasContent).map((message) => (
          <MessageItem
            key={message.id}
            message={message}
            streaming={busy && message === last}
            onRegenerate={message === last && canRegenerate ? onRegenerate : undefined}
            renderActions={renderActions}
          />
        ))}
      </ApprovalDeskContext>
      {busy && !isAnswered && (
        <p className="adk-thinking">
          <span className="adk-pulse" aria-hidden="true" />
          {texts.thinking}
        </p>
      )}
    </div>
  )
}

/** Whether there is anything to see yet: an answer begins empty. */
function hasContent({ parts }: UIMessage): boolean {
  return parts.some(({ type }) => type !== 'step-start')
}
