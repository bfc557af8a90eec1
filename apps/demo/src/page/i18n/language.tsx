import { createContext, type ReactNode, use, useEffect, useState } from 'react'

import { en } from './en.ts'
import { ja } from './ja.ts'
import type { Language, Texts } from './texts.ts'

interface LanguageChoice {
  readonly texts: Texts
  readonly toggle: () => void
}

const STORED = 'language'
const LanguageContext = createContext<LanguageChoice>({ texts: en, toggle: () => undefined })

/** The texts in the language the reader chose; the browser's language until they choose. */
export function useTexts(): Texts {
  return use(LanguageContext).texts
}

export function useLanguageToggle(): () => void {
  return use(LanguageContext).toggle
}

export function LanguageProvider({ children }: { readonly children: ReactNode }) {
  const [language, setLanguage] = useState(preferredLanguage)
  useEffect(() => {
    document.documentElement.lang = language
  }, [language])
  const toggle = () => {
    const other = language === 'en' ? 'ja' : 'en'
    localStorage.setItem(STORED, other)
    setLanguage(other)
  }
  const texts = language === 'ja' ? ja : en
  return <LanguageContext value={{ texts, toggle }}>{children}</LanguageContext>
}

function preferredLanguage(): Language {
  const chosen = localStorage.getItem(STORED) ?? navigator.language
  return chosen.startsWith('ja') ? 'ja' : 'en'
}
