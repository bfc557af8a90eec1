import { ImagePlus, type LucideIcon } from 'lucide-react'

import { useLabels } from '../i18n/language.tsx'
import { AgentPicker } from '../developer/agent-picker.tsx'
import { usePlugin } from '../plugin/plugin-context.ts'
import type { Suggestion, SuggestionGroup } from '../plugin/plugin.ts'
import { storesChats, useMode } from '../settings.ts'
import { useModeTexts } from '../shell/mode-switch.tsx'
import { useStudio } from '../wire/studio-info.ts'

interface WelcomeProps {
  readonly chatId: string
  readonly onChoose: (text: string) => void
  /** Called with a question that needs a picture. */
  readonly onAskAboutPicture: (text: string) => void
}

/** An empty chat: an introduction and suggestions. */
export function Welcome({ chatId, onChoose, onAskAboutPicture }: WelcomeProps) {
  const labels = useLabels()
  const { suggestions, starts } = labels
  const [mode, chooseMode] = useMode()
  const texts = useModeTexts()(mode)
  const studio = useStudio()
  const canTalk = mode === 'sse' && studio?.modes.includes('live') !== false
  const isPossible = ({ modes: possible, needsSignIn }: Suggestion) =>
    possible?.includes(mode) !== false && (!needsSignIn || studio?.signIn === true)
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
      <Introduction />
      {storesChats(mode) && <AgentPicker chatId={chatId} />}
      {storesChats(mode) && starts.length > 0 && (
        <ul className="starts">
          {starts
            .filter(({ text }) => text !== undefined || canTalk)
            .map(({ text, ...start }) => (
              <StartButton
                key={start.title}
                {...start}
                onChoose={() => (text === undefined ? chooseMode('live') : onChoose(text))}
              />
            ))}
        </ul>
      )}
      {suggestions.length > 0 && (
        <div className="suggestions" role="group" aria-label={labels.suggestionsLabel}>
          {suggestions.filter(({ isMore }) => !isMore).map(renderGroup)}
          <details className="more-suggestions">
            <summary>{labels.shell.moreSuggestions}</summary>
            {suggestions.filter(({ isMore }) => isMore).map(renderGroup)}
          </details>
        </div>
      )}
      <p className="fine">
        <strong>{texts.name}</strong> · {texts.explanation}
        {studio?.emulated && ` ${labels.emulated}`}
      </p>
    </section>
  )
}

/** The introduction of the plug-in, or the name and the description of the agent if there is only one. */
function Introduction() {
  const { intro } = useLabels()
  const { texts } = usePlugin()
  const [agent, ...others] = useStudio()?.agents ?? []
  if (texts || others.length > 0 || !agent) return <p>{intro}</p>
  return (
    <p>
      <strong>{agent.name}</strong> · {agent.description ?? intro}
    </p>
  )
}

interface StartButtonProps {
  readonly icon: LucideIcon
  readonly title: string
  readonly explanation: string
  readonly onChoose: () => void
}

function StartButton({ icon: Icon, title, explanation, onChoose }: StartButtonProps) {
  return (
    <li>
      <button type="button" className="start" onClick={onChoose}>
        <Icon aria-hidden="true" />
        <strong>{title}</strong>
        <span>{explanation}</span>
      </button>
    </li>
  )
}
