import { memo, useEffect, useState } from 'react'

import { useAdkLabels, useRenderers } from '../provider.tsx'

/**
 * Props of `CodeBlock`.
 *
 * @inline
 */
export interface CodeBlockProps {
  readonly code: string
  /** The language as the model wrote it, for example `ts`. */
  readonly language?: string | undefined
  /** Shown above the code. Default: the language. */
  readonly caption?: string | undefined
  /** Whether no more code follows. Only then `renderCode` is called. Default true. */
  readonly complete?: boolean | undefined
}

/** Shows code that can be copied and scrolled. Colours and diagrams come from the provider's `renderCode`, once the code is complete. */
export const CodeBlock = memo(function CodeBlock(props: CodeBlockProps) {
  const { code, language = '', caption, complete = true } = props
  const { renderCode } = useRenderers()
  const { message } = useAdkLabels()
  const label = caption ?? (language === '' ? message.code : language)
  return (
    <figure className="adk-code adk-code-block" aria-label={label}>
      <figcaption>
        <span className="adk-code-language">{label}</span>
        <CopyButton text={code} />
      </figcaption>
      {/* WCAG 2.1.1: a scrollable element must be reachable by keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div className="adk-code-body" dir="ltr" tabIndex={0}>
        {(complete && renderCode?.(code, language)) || (
          <pre>
            <code>{code}</code>
          </pre>
        )}
      </div>
    </figure>
  )
})

const SHOWN_MS = 2_000

/** Copies a text to the clipboard, and announces the result. */
function CopyButton({ text }: { readonly text: string }) {
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
