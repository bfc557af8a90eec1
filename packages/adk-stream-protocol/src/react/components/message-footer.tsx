import type { UIMessage } from 'ai'
import type { ReactNode } from 'react'

import { isRecord } from '../../protocol/guards.ts'
import type { Usage as UsageCount } from '../../protocol/message.ts'
import { useAdkLabels } from '../provider.tsx'
import { readFailedReply, readIncomplete } from '../reading/problem.ts'
import { returnFocus } from './focus.ts'
import { FailedReply } from './problems.tsx'

interface ReplyNotesProps {
  readonly message: UIMessage
  /** Whether to say that the reply failed. Default true. */
  readonly showsFailure?: boolean | undefined
}

interface MessageFooterProps {
  readonly message: UIMessage
  readonly onRegenerate?: (() => void) | undefined
  readonly renderActions?: ((message: UIMessage) => ReactNode) | undefined
}

/** Returns whether no server has received the message. */
export function isUnsent({ metadata }: UIMessage): boolean {
  return isRecord(metadata) && metadata['unsent'] === true
}

/** Says that a reply is incomplete or has failed. */
export function ReplyNotes({ message, showsFailure = true }: ReplyNotesProps) {
  const { message: labels } = useAdkLabels()
  const reason = readIncomplete(message)
  const failure = showsFailure ? readFailedReply(message) : undefined
  return (
    <>
      {reason && <p className="adk-reply-note">{labels.incomplete[reason]}</p>}
      {failure && <FailedReply problem={failure} />}
    </>
  )
}

/** Shows what became of a message, its usage, and its actions. */
export function MessageFooter({ message, onRegenerate, renderActions }: MessageFooterProps) {
  const labels = useAdkLabels()
  const metadata = isRecord(message.metadata) ? message.metadata : {}
  const { usage, modelVersion } = metadata
  const stopped = message.role === 'assistant' && metadata['stopped'] === true
  const actions = renderActions?.(message)
  const unsent = isUnsent(message)
  const isEmpty = !usage && !modelVersion && !stopped && !unsent && !onRegenerate && !actions
  if (isEmpty) return null
  return (
    <footer className="adk-message-footer">
      {stopped && <span className="adk-stopped">{labels.message.stopped}</span>}
      {unsent && <span className="adk-stopped">{labels.message.unsent}</span>}
      {isUsage(usage) && <Usage usage={usage} />}
      {typeof modelVersion === 'string' && (
        <span className="adk-model" aria-live="off">
          {modelVersion}
        </span>
      )}
      {onRegenerate && (
        <button type="button" className="adk-link" ref={returnFocus} onClick={onRegenerate}>
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
