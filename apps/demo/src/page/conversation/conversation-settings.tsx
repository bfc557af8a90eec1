import { AdkProvider, type AdkLabels, en, ja } from 'adk-stream-protocol/react'
import { type ReactNode, useMemo } from 'react'

import { useLabels, useLanguage } from '../i18n/language.tsx'
import { shareApproval } from '../inbox/approval-link-page.tsx'
import { api } from '../wire/wire.ts'
import { renderCode } from './coloured-code.tsx'
import { describeCall } from './describe-call.ts'
import { Markdown } from './markdown.tsx'
import { renderCall } from './weather-card.tsx'

const renderText = (text: string, { streaming }: { streaming: boolean }) => (
  <Markdown text={text} streaming={streaming} />
)

interface ConversationSettingsProps {
  /** The time of a recorded conversation, in ms since 1970. */
  readonly time?: number | undefined
  readonly children: ReactNode
}

/** Sets the language of the library's components, and the labels of the demo's tools. */
export function ConversationSettings({ time, children }: ConversationSettingsProps) {
  const { calls } = useLabels()
  const { language } = useLanguage()
  const labels = useMemo((): AdkLabels => {
    const builtIn = language === 'ja' ? ja : en
    const { argumentNames } = calls
    const names = { ...builtIn.tool.names, ...calls.names }
    return { ...builtIn, tool: { ...builtIn.tool, argumentNames, names } }
  }, [language, calls])
  const describe = useMemo(
    () => (toolName: string, args: unknown, phase: string) =>
      describeCall(toolName, args, { phase, labels: calls }),
    [calls],
  )
  return (
    <AdkProvider
      time={time}
      labels={labels}
      renderText={renderText}
      renderCode={renderCode}
      describeCall={describe}
      renderCall={renderCall}
      // A recorded conversation asks nobody.
      api={time === undefined ? api : undefined}
      shareApproval={time === undefined ? shareApproval : undefined}
    >
      {children}
    </AdkProvider>
  )
}
