import { ImagePlus } from 'lucide-react'

import { useDemo } from '../demo/use-demo.ts'
import { useLabels } from '../i18n/language.tsx'
import type { Suggestion } from '../i18n/shell/shell-labels.ts'
import { useMode } from '../settings/mode.ts'

interface WelcomeProps {
  readonly onChoose: (text: string) => void
  /** Called with a question that needs a picture. */
  readonly onAskAboutPicture: (text: string) => void
}

/** An empty chat: an introduction and suggestions. */
export function Welcome({ onChoose, onAskAboutPicture }: WelcomeProps) {
  const labels = useLabels()
  const { mode: modes, suggestions, model } = labels.shell
  const [mode] = useMode()
  const demo = useDemo()
  const choose = ({ text, needsPicture }: Suggestion) =>
    needsPicture ? onAskAboutPicture(text) : onChoose(text)
  return (
    <section className="welcome">
      <h2>{labels.tagline}</h2>
      <p>{labels.intro}</p>
      <p className="fine">
        <strong>{modes.names[mode]}</strong> {modes.explanations[mode]}
      </p>
      {demo?.emulated && <p className="fine">{model.emulated}</p>}
      <div className="suggestions" role="group" aria-label={labels.suggestionsLabel}>
        {suggestions.map((group) => (
          <section key={group.title} className="suggestion-group">
            <h3>{group.title}</h3>
            <ul>
              {group.suggestions.map((suggestion) => (
                <li key={suggestion.text}>
                  <button type="button" className="suggestion" onClick={() => choose(suggestion)}>
                    {suggestion.needsPicture && <ImagePlus aria-hidden="true" />}
                    {suggestion.text}
                  </button>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </div>
    </section>
  )
}
