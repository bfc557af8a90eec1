import { useTexts } from '../i18n/language.tsx'

interface WelcomeProps {
  readonly onChoose: (text: string) => void
}

export function Welcome({ onChoose }: WelcomeProps) {
  const texts = useTexts()
  return (
    <section className="welcome">
      <h2>{texts.tagline}</h2>
      <p>{texts.intro}</p>
      <ul className="suggestions" aria-label={texts.suggestionsLabel}>
        {texts.suggestions.map((suggestion) => (
          <li key={suggestion}>
            <button type="button" className="suggestion" onClick={() => onChoose(suggestion)}>
              {suggestion}
            </button>
          </li>
        ))}
      </ul>
    </section>
  )
}
