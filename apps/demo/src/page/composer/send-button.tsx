import { ArrowUp, Square } from 'lucide-react'

import { useLabels } from '../i18n/language.tsx'

interface SendButtonProps {
  readonly busy: boolean
  /** There is nothing to send. */
  readonly disabled: boolean
  readonly onSend: () => void
  readonly onStop: () => void
}

/** One button in both roles: the focus stays on it when an answer begins or ends. */
export function SendButton({ busy, disabled, onSend, onStop }: SendButtonProps) {
  const labels = useLabels()
  return (
    <button
      // Never a submit button: one that becomes a submit button while its click is handled makes the browser submit the form, so that
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
