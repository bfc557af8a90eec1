import type { ReactNode } from 'react'
import { createContext, use, useMemo } from 'react'
import type { UIMessage } from 'ai'

import type { Arguments, Call } from './reading/call.ts'
import { en } from './texts/en.ts'
import { ja } from './texts/ja.ts'
import type { AdkTexts } from './texts/texts.ts'

/** How an application shows what the components leave to it. Give functions that stay the same: all of what they show depends on them. */
export interface AdkRenderers {
  /** Shows text of the assistant, such as Markdown. Default: paragraphs of plain text. */
  readonly renderText?: ((text: string, options: { streaming: boolean }) => ReactNode) | undefined
  /** Says what a call does, in the reader's words. Nothing: the words of the components. */
  readonly describeCall?: ((toolName: string, args: Arguments) => string | undefined) | undefined
  /** Shows a call that needs nobody's decision. Nothing: the card of the components. */
  readonly renderCall?: ((toolName: string, call: Call) => ReactNode | undefined) | undefined
  /** Shows a `data-*` part. Nothing: as the components do. */
  readonly renderData?: ((part: UIMessage['parts'][number]) => ReactNode | undefined) | undefined
}

/** Words and renderers for all components below. */
export interface AdkProviderProps extends AdkRenderers {
  /** Default `en`. Words of one's own: `{ ...en, … }`. */
  readonly texts?: 'en' | 'ja' | AdkTexts
  readonly children: ReactNode
}

interface AdkSettings extends AdkRenderers {
  readonly texts: AdkTexts
}

const Settings = createContext<AdkSettings>({ texts: en })

/** Tells the components below it in which words to speak and what to leave to the application. */
export function AdkProvider(props: AdkProviderProps) {
  const { children, texts = 'en', renderText, describeCall, renderCall, renderData } = props
  const settings = useMemo(
    () => ({ texts: chooseTexts(texts), renderText, describeCall, renderCall, renderData }),
    [texts, renderText, describeCall, renderCall, renderData],
  )
  return <Settings value={settings}>{children}</Settings>
}

/** The words that hold here, for components of your own. */
export function useAdkTexts(): AdkTexts {
  return use(Settings).texts
}

export function useRenderers(): AdkRenderers {
  return use(Settings)
}

/** What a call does, in the application's words or in ours. */
export function useDeed(toolName: string, args: Arguments): string {
  const { describeCall, texts } = use(Settings)
  return describeCall?.(toolName, args) ?? texts.tool.deed(toolName)
}

function chooseTexts(texts: 'en' | 'ja' | AdkTexts): AdkTexts {
  if (typeof texts === 'object') return texts
  return texts === 'ja' ? ja : en
}
