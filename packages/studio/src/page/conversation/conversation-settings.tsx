import { AdkProvider, type AdkLabels, en, ja } from 'adk-stream-protocol/react'
import { type ReactNode, useMemo, lazy, memo, Suspense, Fragment, useEffect, useState } from 'react'
import type { createLowlight } from 'lowlight'

import { useLabels, useLanguage } from '../i18n/language.tsx'
import { shareApproval } from '../inbox/approval-link-page.tsx'
import { usePlugin } from '../plugin/plugin-context.ts'
import { useDescribeCall } from '../plugin/use-describe-call.ts'
import { api } from '../wire/wire.ts'
import type { MarkdownProps } from './markdown-renderer.tsx'

const renderText = (text: string, { streaming }: { streaming: boolean }) => (
  <Markdown text={text} streaming={streaming} />
)

interface ConversationSettingsProps {
  /** The time of a recorded conversation, in ms since 1970. */
  readonly time?: number | undefined
  readonly children: ReactNode
}

/** Sets the language of the library's components, and the texts and cards of the plug-in. */
export function ConversationSettings({ time, children }: ConversationSettingsProps) {
  const { toolNames, argumentNames } = useLabels()
  const { renderCall } = usePlugin()
  const { language } = useLanguage()
  const labels = useMemo((): AdkLabels => {
    const builtIn = language === 'ja' ? ja : en
    const names = { ...builtIn.tool.names, ...toolNames }
    return { ...builtIn, tool: { ...builtIn.tool, argumentNames, names } }
  }, [language, toolNames, argumentNames])
  return (
    <AdkProvider
      time={time}
      labels={labels}
      renderText={renderText}
      renderCode={renderCode}
      describeCall={useDescribeCall()}
      renderCall={renderCall}
      // A recorded conversation asks nobody.
      api={time === undefined ? api : undefined}
      shareApproval={time === undefined ? shareApproval : undefined}
    >
      {children}
    </AdkProvider>
  )
}

// Half of the page's code. It loads in parallel to the first paint.
const loading = import('./markdown-renderer.tsx')
const Renderer = lazy(async () => ({ default: (await loading).MarkdownRenderer }))

/** Renders Markdown. Shows plain text until the renderer is loaded. */
const Markdown = memo(function Markdown(props: MarkdownProps) {
  return (
    <Suspense fallback={<p className="markdown">{props.text}</p>}>
      <Renderer {...props} />
    </Suspense>
  )
})

type Lowlight = ReturnType<typeof createLowlight>
type Tree = ReturnType<Lowlight['highlight']>
type Node = Tree['children'][number]

/** Longer code stays without colours. */
const MAX_LENGTH = 50_000

/** Renders complete code with colours. The library's `CodeBlock` calls it. */
function renderCode(code: string, language: string): ReactNode | undefined {
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
