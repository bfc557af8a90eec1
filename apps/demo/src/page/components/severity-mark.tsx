import type { Severity } from '../chat/approval.ts'
import { useTexts } from '../i18n/language.tsx'

/** How grave a call is, in words and in colour. */
export function SeverityMark({ severity }: { readonly severity: Severity | undefined }) {
  const texts = useTexts()
  if (!severity) return null
  return (
    <span className="severity" data-severity={severity}>
      {texts.approval.severity[severity]}
    </span>
  )
}
