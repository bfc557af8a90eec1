import { AudioLines, CircleCheck, ImagePlus, type LucideIcon, Users } from 'lucide-react'

import { useDemo } from '../wire/wire.ts'
import { useLabels } from '../i18n/language.tsx'
import type { Suggestion, SuggestionGroup } from '../i18n/labels.ts'
import { useMode } from '../settings.ts'

interface WelcomeProps {
  readonly onChoose: (text: string) => void
  /** Called with a question that needs a picture. */
  readonly onAskAboutPicture: (text: string) => void
}

/** An empty chat: an introduction and suggestions. */
export function Welcome({ onChoose, onAskAboutPicture }: WelcomeProps) {
  const labels = useLabels()
  const { mode: modes, starts, suggestions, moreSuggestions, model } = labels.shell
  const [mode, chooseMode] = useMode()
  const demo = useDemo()
  const isPossible = ({ modes: possible, needsSignIn }: Suggestion) =>
    possible?.includes(mode) !== false && (!needsSignIn || demo?.signIn === true)
  const choose = ({ text, needsPicture }: Suggestion) =>
    needsPicture ? onAskAboutPicture(text) : onChoose(text)
  const renderGroup = (group: SuggestionGroup) => (
    <section key={group.title} className="suggestion-group">
      <h3>{group.title}</h3>
      <ul>
        {group.suggestions.filter(isPossible).map((suggestion) => (
          <li key={suggestion.text}>
            <button type="button" className="suggestion" onClick={() => choose(suggestion)}>
              {suggestion.needsPicture && <ImagePlus aria-hidden="true" />}
              {suggestion.text}
            </button>
          </li>
        ))}
      </ul>
    </section>
  )
  return (
    <section className="welcome">
      <h2>{labels.tagline}</h2>
      <p>{labels.intro}</p>
      {/* Direct mode has no second approver and no voice. */}
      {mode !== 'direct' && (
        <ul className="starts">
          <Start icon={CircleCheck} {...starts.payment} onChoose={onChoose} />
          <Start icon={Users} {...starts.twoPeople} onChoose={onChoose} />
          {mode === 'sse' && demo?.modes.includes('live') !== false && (
            <Start icon={AudioLines} {...starts.talk} onChoose={() => chooseMode('live')} />
          )}
        </ul>
      )}
      <div className="suggestions" role="group" aria-label={labels.suggestionsLabel}>
        {suggestions.filter(({ isMore }) => !isMore).map(renderGroup)}
        <details className="more-suggestions">
          <summary>{moreSuggestions}</summary>
          {suggestions.filter(({ isMore }) => isMore).map(renderGroup)}
        </details>
      </div>
      <p className="fine">
        <strong>{modes.names[mode]}</strong> · {modes.explanations[mode]}
        {demo?.emulated && ` ${model.emulated}`}
      </p>
    </section>
  )
}

interface StartProps {
  readonly icon: LucideIcon
  readonly title: string
  readonly explanation: string
  readonly text?: string
  readonly onChoose: (text: string) => void
}

function Start({ icon: Icon, title, explanation, text = '', onChoose }: StartProps) {
  return (
    <li>
      <button type="button" className="start" onClick={() => onChoose(text)}>
        <Icon aria-hidden="true" />
        <strong>{title}</strong>
        <span>{explanation}</span>
      </button>
    </li>
  )
}
