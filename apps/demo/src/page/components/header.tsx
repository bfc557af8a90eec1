import type { ReactNode } from 'react'

import icon from '../icon.svg'
import { useLanguageToggle, useTexts } from '../i18n/language.tsx'

interface HeaderProps {
  readonly onNewChat: () => void
  /** Between the title and the buttons of the page. */
  readonly children: ReactNode
}

export function Header({ onNewChat, children }: HeaderProps) {
  const texts = useTexts()
  const toggleLanguage = useLanguageToggle()
  const isEnglish = texts.otherLanguage !== 'English'
  return (
    <header className="header">
      <h1 className="header-title">
        <img src={icon} alt="" width="24" height="24" />
        <span>{texts.title}</span>
      </h1>
      {children}
      <button
        type="button"
        className="quiet"
        lang={isEnglish ? 'ja' : 'en'}
        onClick={toggleLanguage}
      >
        {texts.otherLanguage}
      </button>
      <button type="button" className="outlined" onClick={onNewChat}>
        {texts.newChat}
      </button>
    </header>
  )
}
