import { useEffect, useState } from 'react'

import { useAdkLabels } from '../provider.tsx'

const SHOWN_MS = 2_000

/** Copies a text to the clipboard, and announces the result. */
export function CopyButton({ text }: { readonly text: string }) {
  const { content } = useAdkLabels()
  const [result, setResult] = useState<'copied' | 'copyFailed'>()
  useEffect(() => {
    if (!result) return undefined
    const timer = setTimeout(() => setResult(undefined), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [result])
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
      setResult('copied')
    } catch {
      // The browser may refuse: without HTTPS, or by a setting.
      setResult('copyFailed')
    }
  }
  return (
    <>
      <span role="status" className="adk-copied">
        {result && content[result]}
      </span>
      <button type="button" className="adk-link" onClick={() => void copy()}>
        {content.copy}
      </button>
    </>
  )
}
