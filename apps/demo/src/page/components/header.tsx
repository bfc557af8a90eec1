import icon from '../icon.svg'
import { useLanguageToggle, useTexts } from '../i18n/language.tsx'

interface HeaderProps {
  readonly onNewChat: () => void
}

export function Header({ onNewChat }: HeaderProps) {
  const texts = useTexts()
  const toggleLanguage = useLanguageToggle()
  const isEnglish = texts.otherLanguage !== 'English'
  return (
    <header className="header">
      <h1 className="header-title">
        <img src={icon} alt="" width="24" height="24" />
        <span>{texts.title}</span>
      </h1>
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
