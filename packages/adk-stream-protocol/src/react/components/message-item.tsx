import type { UIMessage } from 'ai'
import type { ReactNode } from 'react'
import { memo } from 'react'

import { useAdkLabels, useDescribeCall } from '../provider.tsx'
import { readApprovals } from '../reading/approval.ts'
import { isRecord } from '../../protocol/guards.ts'
import { getArguments, isCall } from '../reading/call.ts'
import { findInnerQuestions, toWaitsFor } from '../reading/inner-waits.ts'
import { MessagePartView, Sources } from './message-part-view.tsx'
import type { Usage as UsageCount } from '../../protocol/message.ts'

/**
 * Props of `MessageItem`.
 *
 * @inline
 */
export interface MessageItemProps {
  readonly message: UIMessage
  /** Whether the message is still being streamed. */
  readonly streaming: boolean
  /** Regenerates the reply. Pass it for the last message only. */
  readonly onRegenerate?: (() => void) | undefined
  /** Renders more actions in the footer of the message. Pass a stable function. */
  readonly renderActions?: ((message: UIMessage) => ReactNode) | undefined
}

/** Shows one message. A chunk renders only its own message, because `useChat` keeps the identity of unchanged messages. */
export const MessageItem = memo(function MessageItem(props: MessageItemProps) {
  const { message, streaming } = props
  const labels = useAdkLabels()
  const isUser = message.role === 'user'
  const approvals = readApprovals(message)
  const inner = findInnerQuestions(message, approvals)
  const describe = useDescribeCall()
  const describeWait = (toolCallId: string): string | undefined => {
    const waits = toWaitsFor(inner.get(toolCallId) ?? [], (name, call, headline) =>
      describe(name, getArguments(call), headline),
    )
    return waits && labels.tool.waitsFor(waits)
  }
  return (
    <article
      className="adk-message"
      data-role={message.role}
      data-streaming={streaming}
      data-message={message.id}
    >
      <h2 className="adk-hidden">{isUser ? labels.message.you : labels.message.assistant}</h2>
      {message.parts.map((part, index) => (
        // Parts are only appended, so the index identifies a part.
        <MessagePartView
          // oxlint-disable-next-line react/no-array-index-key
          key={index}
          // A copy, because the AI SDK (6.0.320) mutates the first message object of a reply, and `isSame` compares with the
          // part that was rendered.
          part={{ ...part }}
          role={message.role}
          streaming={streaming}
          approval={isCall(part) ? approvals.get(part.toolCallId) : undefined}
          waitsFor={isCall(part) ? describeWait(part.toolCallId) : undefined}
        />
      ))}
      <Sources parts={message.parts} />
      {!streaming && <MessageFooter {...props} />}
    </article>
  )
})

function MessageFooter({ message, onRegenerate, renderActions }: MessageItemProps) {
  const labels = useAdkLabels()
  const metadata = isRecord(message.metadata) ? message.metadata : {}
  const { usage, modelVersion } = metadata
  const stopped = message.role === 'assistant' && metadata['stopped'] === true
  const actions = renderActions?.(message)
  const isEmpty = !usage && !modelVersion && !stopped && !onRegenerate && !actions
  if (isEmpty) return null
  return (
    <footer className="adk-message-footer">
      {stopped && <span className="adk-stopped">{labels.message.stopped}</span>}
      {isUsage(usage) && <Usage usage={usage} />}
      {typeof modelVersion === 'string' && (
        <span className="adk-model" aria-live="off">
          {modelVersion}
        </span>
      )}
      {onRegenerate && (
        <button type="button" className="adk-link" onClick={onRegenerate}>
          {labels.message.retry}
        </button>
      )}
      {actions}
    </footer>
  )
}

function isUsage(value: unknown): value is { inputTokens: number; outputTokens: number } {
  if (!isRecord(value)) return false
  return typeof value['inputTokens'] === 'number' && typeof value['outputTokens'] === 'number'
}

/** Shows the token usage of a reply. */
function Usage({ usage }: { readonly usage: Pick<UsageCount, 'inputTokens' | 'outputTokens'> }) {
  const { message, locale } = useAdkLabels()
  const count = (tokens: number): string => tokens.toLocaleString(locale)
  return (
    // Not announced with the reply.
    <span className="adk-usage" aria-live="off">
      {message.usage(count(usage.inputTokens), count(usage.outputTokens))}
    </span>
  )
}
