import { createContext, type ReactNode, use, useLayoutEffect, useState } from 'react'

import { en } from './en.ts'
import { ja } from './ja.ts'
import type { Language, Texts } from './texts.ts'

interface LanguageChoice {
  readonly language: Language
  readonly texts: Texts
  readonly choose: (language: Language) => void
}

const STORED = 'language'
const LanguageContext = createContext<LanguageChoice>({
  language: 'en',
  texts: en,
  choose: () => undefined,
})

/** The texts in the language the reader chose; the browser's language until they choose. */
export function useTexts(): Texts {
  return use(LanguageContext).texts
}

export function useLanguage(): Pick<LanguageChoice, 'language' | 'choose'> {
  return use(LanguageContext)
}

export function LanguageProvider({ children }: { readonly children: ReactNode }) {
  const [language, setLanguage] = useState(preferredLanguage)
  // Before anything is asked of the server, which reads it there.
  useLayoutEffect(() => {
    document.documentElement.lang = language
  }, [language])
  const choose = (chosen: Language) => {
    localStorage.setItem(STORED, chosen)
    setLanguage(chosen)
  }
  const texts = language === 'ja' ? ja : en
  return <LanguageContext value={{ language, texts, choose }}>{children}</LanguageContext>
}

function preferredLanguage(): Language {
  const chosen = localStorage.getItem(STORED) ?? navigator.language
  return chosen.startsWith('ja') ? 'ja' : 'en'
}
