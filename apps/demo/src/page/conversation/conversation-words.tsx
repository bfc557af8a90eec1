import { AdkProvider, type AdkTexts, en, ja } from 'adk-stream-protocol/react'
import { type ReactNode, useMemo } from 'react'

import { useLanguage, useTexts } from '../i18n/language.tsx'
import { describeCall } from './describe-call.ts'
import { Markdown } from './markdown.tsx'

const renderText = (text: string, { streaming }: { streaming: boolean }) => (
  <Markdown text={text} streaming={streaming} />
)

/** The components of the library in the reader's language, with this demo's words for its tools. */
export function ConversationWords({ children }: { readonly children: ReactNode }) {
  const texts = useTexts()
  const { language } = useLanguage()
  const words = useMemo((): AdkTexts => {
    const own = language === 'ja' ? ja : en
    return { ...own, tool: { ...own.tool, names: texts.calls.names } }
  }, [language, texts])
  const describe = useMemo(
    () => (toolName: string, args: unknown) => describeCall(toolName, args, texts),
    [texts],
  )
  return (
    <AdkProvider texts={words} renderText={renderText} describeCall={describe}>
      {children}
    </AdkProvider>
  )
}
