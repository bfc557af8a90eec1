import { ArrowUp, Square } from 'lucide-react'

import { useLabels } from '../i18n/language.tsx'

interface SendButtonProps {
  readonly busy: boolean
  /** Whether the draft is empty. */
  readonly disabled: boolean
  readonly onSend: () => void
  readonly onStop: () => void
}

/** One button that sends or stops, so that it keeps the focus when a reply starts or ends. */
export function SendButton({ busy, disabled, onSend, onStop }: SendButtonProps) {
  const labels = useLabels()
  return (
    <button
      // Never a submit button. If it became one while its click is handled, the browser would submit the form, and
      // Stop would send the draft.
      type="button"
      className="send"
      aria-label={busy ? labels.stop : labels.send}
      disabled={!busy && disabled}
      onClick={busy ? onStop : onSend}
    >
      {busy ? <Square aria-hidden="true" className="filled" /> : <ArrowUp aria-hidden="true" />}
    </button>
  )
}
