import type { createLowlight } from 'lowlight'
import { Fragment, type ReactNode, useEffect, useState } from 'react'

type Lowlight = ReturnType<typeof createLowlight>
type Tree = ReturnType<Lowlight['highlight']>
type Node = Tree['children'][number]

/** Longer code stays without colours. */
const MAX_LENGTH = 50_000

/** Renders complete code with colours. The library's `CodeBlock` calls it. */
export function renderCode(code: string, language: string): ReactNode | undefined {
  if (language === '' || code.length > MAX_LENGTH) return undefined
  return <ColouredCode code={code} language={language} />
}

interface ColouredCodeProps {
  readonly code: string
  readonly language: string
}

/** Shows the code without colours until the languages are loaded. */
function ColouredCode({ code, language }: ColouredCodeProps) {
  const [coloured, setColoured] = useState<ColouredCodeProps & { readonly content: ReactNode }>()
  useEffect(() => {
    let isCurrent = true
    const colour = async (): Promise<void> => {
      const { lowlight } = await import('./code-languages.ts')
      if (!isCurrent || !lowlight.registered(language)) return
      const content = lowlight.highlight(language, code).children.map(toElement)
      setColoured({ code, language, content })
    }
    void colour().catch(() => undefined)
    return () => {
      isCurrent = false
    }
  }, [code, language])
  const isCurrent = coloured?.code === code && coloured.language === language
  return (
    <pre>
      <code>{isCurrent ? coloured.content : code}</code>
    </pre>
  )
}

function toElement(node: Node, index: number): ReactNode {
  if (node.type === 'text') return <Fragment key={index}>{node.value}</Fragment>
  if (node.type !== 'element') return null
  const { className } = node.properties
  return (
    <span key={index} className={Array.isArray(className) ? className.join(' ') : undefined}>
      {node.children.map(toElement)}
    </span>
  )
}
