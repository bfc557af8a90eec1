import { ArrowUp, Square } from 'lucide-react'

import { useTexts } from '../i18n/language.tsx'

interface SendButtonProps {
  readonly busy: boolean
  /** There is nothing to send. */
  readonly disabled: boolean
  readonly onStop: () => void
}

/** One button in both roles: the focus stays on it when an answer begins or ends. */
export function SendButton({ busy, disabled, onStop }: SendButtonProps) {
  const texts = useTexts()
  return (
    <button
      type={busy ? 'button' : 'submit'}
      className="send"
      aria-label={busy ? texts.stop : texts.send}
      disabled={!busy && disabled}
      onClick={busy ? onStop : undefined}
    >
      {busy ? <Square aria-hidden="true" className="filled" /> : <ArrowUp aria-hidden="true" />}
    </button>
  )
}
