import { Check, Copy } from 'lucide-react'
import { useEffect, useState } from 'react'

import { useLabels } from '../i18n/language.tsx'

const SHOWN_MS = 2000

/** Copies text and announces the result. */
export function CopyButton({ text }: { readonly text: string }) {
  const { actions } = useLabels().shell
  const [result, setResult] = useState<'copied' | 'failed'>()
  useEffect(() => {
    if (!result) return
    const timer = setTimeout(() => setResult(undefined), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [result])
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      setResult('copied')
    } catch {
      // The browser may block it: without HTTPS, or by a setting.
      setResult('failed')
    }
  }
  return (
    <>
      <button
        type="button"
        className="action"
        aria-label={actions.copy}
        title={actions.copy}
        onClick={() => void copy()}
      >
        {result === 'copied' ? <Check aria-hidden="true" /> : <Copy aria-hidden="true" />}
      </button>
      <span className="visually-hidden" role="status">
        {result && actions[result]}
      </span>
    </>
  )
}
