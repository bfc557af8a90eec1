import type { UIMessage } from 'ai'
import { type ReactNode, useMemo, memo } from 'react'

import { NONE_WAITING } from '../../client/api/decision-outbox.ts'
import { useAdkLabels, useDescribeCall } from '../provider.tsx'
import { type ApprovalDetails, readApprovals } from '../reading/approval.ts'
import { useSameObject } from '../hooks/use-stable.ts'
import { useVoice, type VoiceSource } from '../hooks/use-voice.ts'
import { isRecord } from '../../protocol/guards.ts'
import { isWaiting, getArguments, isCall } from '../reading/call.ts'
import { type PendingSum, sumPending } from '../reading/preview.ts'
import { hasRunApprovedCall } from '../reading/problem.ts'
import { isBusy } from '../../client/sync/attachable-chat.ts'
import {
  type ApprovalContextValue,
  ApprovalContext,
  MessagePartView,
  Sources,
} from './message-part-view.tsx'
import { findInnerQuestions, toWaitsFor } from '../reading/question.ts'
import type { Usage as UsageCount } from '../../protocol/message.ts'

/**
 * Messages and approvals, as `useAdkChat` returns them.
 *
 * @inline
 */
export interface MessageListProps extends Partial<ApprovalContextValue> {
  readonly messages: readonly UIMessage[]
  /** The `status` of `useAdkChat` or `useChat`. Default `ready`. */
  readonly status?: string
  /** Regenerates the last reply. The button is not shown if an approved call may have run in that reply. Pass a stable function. */
  readonly onRegenerate?: (() => void) | undefined
  /** Renders more actions in the footer of each message. Pass a stable function. */
  readonly renderActions?: ((message: UIMessage) => ReactNode) | undefined
  /** Shows what the person is saying, until it is a message. */
  readonly voice?: VoiceSource<SpeechView> | undefined
}

/** The part of a `Voice` state that the list shows. */
interface SpeechView {
  readonly state: string
  readonly transcript?: { readonly person: string; readonly isInChat: boolean }
}

const EMPTY: ReadonlyMap<string, never> = new Map<string, never>()
const NO_IDS: ReadonlySet<string> = new Set<string>()
const IGNORE = (): void => undefined

/** Shows a conversation. A chunk renders only its own message. */
export function MessageList(props: MessageListProps) {
  const { messages, status = 'ready', onRegenerate, renderActions, voice } = props
  const { message: labels } = useAdkLabels()
  const context = useCardContext(props)
  const busy = isBusy({ status })
  const last = messages.at(-1)
  const hasReply = last?.role === 'assistant' && hasContent(last)
  const canRegenerate =
    hasReply && status === 'ready' && !isWaiting(last) && !hasRunApprovedCall(messages)
  return (
    <div role="log" aria-label={labels.conversation} aria-busy={busy} className="adk-messages">
      <ApprovalContext value={context}>
        {messages.filter(hasContent).map((message) => (
          <MessageItem
            key={message.id}
            message={message}
            streaming={busy && message === last}
            onRegenerate={message === last && canRegenerate ? onRegenerate : undefined}
            renderActions={renderActions}
          />
        ))}
      </ApprovalContext>
      {voice && <Speech voice={voice} />}
      {busy && !hasReply && (
        <p className="adk-thinking">
          <span className="adk-pulse" aria-hidden="true" />
          {labels.thinking}
        </p>
      )}
      {!busy && last?.role === 'user' && isStopped(last) && (
        <p className="adk-stopped">{labels.stopped}</p>
      )}
    </div>
  )
}

/** Returns what the cards need. The same object until something of it changes. */
function useCardContext(props: MessageListProps) {
  const { messages, details = EMPTY } = props
  return useSameObject({
    onDecide: props.onDecide ?? IGNORE,
    onRefresh: props.onRefresh,
    refusals: props.refusals ?? EMPTY,
    votes: props.votes ?? EMPTY,
    hints: props.hints ?? EMPTY,
    details,
    unconfirmed: props.unconfirmed ?? NO_IDS,
    waitingDecisions: props.waitingDecisions ?? NONE_WAITING,
    isConnected: props.isConnected ?? true,
    sums: useSums(messages, details),
    onCancelDecision: props.onCancelDecision,
  })
}

const NO_SUMS: ReadonlyMap<string, PendingSum> = new Map()

/** Returns the sums of what is pending. The same object while they do not change, because a chunk must not render every card. */
function useSums(
  messages: readonly UIMessage[],
  details: ReadonlyMap<string, ApprovalDetails>,
): ReadonlyMap<string, PendingSum> {
  const sums = sumPending(
    messages
      .flatMap((message) => [...readApprovals(message).values()])
      .filter(({ state }) => state === 'requested')
      .map(({ approvalId, preview }) => ({
        approvalId,
        preview: details.get(approvalId)?.preview ?? preview,
      })),
  )
  const key = JSON.stringify([...sums])
  // The key contains everything that the sums contain.
  // oxlint-disable-next-line react-hooks/exhaustive-deps
  return useMemo(() => (sums.size === 0 ? NO_SUMS : sums), [key])
}

/** Shows speech while it is being recognized. Screen readers read the message that it becomes. */
function Speech({ voice }: { readonly voice: VoiceSource<SpeechView> }) {
  const { transcript } = useVoice(voice)
  if (!transcript || transcript.isInChat || transcript.person === '') return null
  return (
    <article className="adk-message adk-speech" data-role="user" aria-hidden="true">
      <p className="adk-said">{transcript.person}</p>
    </article>
  )
}

/** Returns whether there is anything to show. A new reply is empty. */
function hasContent(message: UIMessage): boolean {
  const isEmpty = message.parts.every(({ type }) => type === 'step-start')
  return !isEmpty || (message.role === 'assistant' && isStopped(message))
}

function isStopped({ metadata }: UIMessage): boolean {
  return isRecord(metadata) && metadata['stopped'] === true
}

/**
 * Props of `MessageItem`.
 *
 * @inline
 */
interface MessageItemProps {
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
