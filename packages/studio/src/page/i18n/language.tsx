import { createContext, type ReactNode, use, useLayoutEffect, useMemo, useState } from 'react'

import { en } from './en.ts'
import { ja } from './ja.ts'
import type { Labels } from './labels.ts'
import { usePlugin } from '../plugin/plugin-context.ts'

/** The languages of the page. */
export type Language = 'en' | 'ja'

interface LanguageChoice {
  readonly language: Language
  readonly labels: Labels
  readonly choose: (language: Language) => void
}

const LABELS: Readonly<Record<Language, Labels>> = { en, ja }

const STORAGE_KEY = 'language'
const LanguageContext = createContext<LanguageChoice>({
  language: 'en',
  labels: en,
  choose: () => undefined,
})

/** Returns the labels in the chosen language. Default: the browser's language. */
export function useLabels(): Labels {
  return use(LanguageContext).labels
}

export function useLanguage(): Pick<LanguageChoice, 'language' | 'choose'> {
  return use(LanguageContext)
}

export function LanguageProvider({ children }: { readonly children: ReactNode }) {
  const { texts } = usePlugin()
  const [language, setLanguage] = useState(preferredLanguage)
  // A layout effect: requests read the language from the document.
  useLayoutEffect(() => {
    document.documentElement.lang = language
  }, [language])
  const choose = (chosen: Language) => {
    localStorage.setItem(STORAGE_KEY, chosen)
    setLanguage(chosen)
  }
  const labels = useMemo(() => ({ ...LABELS[language], ...texts?.[language] }), [language, texts])
  return <LanguageContext value={{ language, labels, choose }}>{children}</LanguageContext>
}

function preferredLanguage(): Language {
  const chosen = localStorage.getItem(STORAGE_KEY) ?? navigator.language
  return chosen.startsWith('ja') ? 'ja' : 'en'
}
