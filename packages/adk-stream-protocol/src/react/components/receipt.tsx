import { useAdkLabels } from '../provider.tsx'
import type { Approval } from '../reading/approval.ts'
import { LiteralText } from './arguments-table.tsx'
import { PreviewView } from './preview-view.tsx'

/** Shows who decided and when, after the status. */
export function DecidedBy({ approval }: { readonly approval: Approval }) {
  const labels = useAdkLabels()
  const { by, at } = approval
  if (!by && at === undefined) return null
  return (
    <span className="adk-decided-by">
      {by && labels.approval.decidedBy(by)}
      {by && at !== undefined && ' · '}
      {at !== undefined && <Time at={at} />}
    </span>
  )
}

/** Shows the message that decided, if the person typed or said it instead of using the form. */
export function UnderstoodFrom({ reply }: { readonly reply: Approval['reply'] | undefined }) {
  const { approval } = useAdkLabels()
  if (!reply) return null
  return (
    <p className="adk-understood" data-channel={reply.channel}>
      <LiteralText text={approval.understoodFrom(reply.words)} />
    </p>
  )
}

/** Shows a time in the language of the reader. `at` is in ms since 1970. */
export function Time({ at }: { readonly at: number }) {
  const { locale } = useAdkLabels()
  return <time dateTime={new Date(at).toISOString()}>{formatTime(at, locale)}</time>
}

/** Shows what an approved call did. */
export function Receipt({ approval: { receipt } }: { readonly approval: Approval }) {
  return receipt ? <PreviewView preview={receipt} /> : null
}

/** The time of today, and the date and time of any other day. */
function formatTime(at: number, locale: string): string {
  const date = new Date(at)
  const isToday = date.toDateString() === new Date().toDateString()
  return isToday
    ? date.toLocaleTimeString(locale, { timeStyle: 'short' })
    : date.toLocaleString(locale, { dateStyle: 'medium', timeStyle: 'short' })
}
