import { RotateCcw } from 'lucide-react'

import { useTexts } from '../i18n/language.tsx'

/** Has the answer made again. */
export function RetryButton({ onRetry }: { readonly onRetry: () => void }) {
  const { retry } = useTexts()
  return (
    <button type="button" className="action" aria-label={retry} title={retry} onClick={onRetry}>
      <RotateCcw aria-hidden="true" />
    </button>
  )
}
