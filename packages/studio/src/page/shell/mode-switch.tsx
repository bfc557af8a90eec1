import { useId } from 'react'

import { useLabels, useLanguage } from '../i18n/language.tsx'
import type { ModeTexts } from '../plugin/plugin.ts'
import { usePlugin } from '../plugin/plugin-context.ts'
import { AGENT_MODES, storesChats, useMode } from '../settings.ts'
import { Setting } from './setting.tsx'
import { useStudio } from '../wire/studio-info.ts'

/** Switches between writing and talking. A mode without the agent appears only while it is chosen. */
export function ModeSwitch() {
  const { mode: labels } = useLabels().shell
  const [mode, choose] = useMode()
  const textsOf = useModeTexts()
  const options = useOfferedModes()
    .filter((value) => storesChats(value) || value === mode)
    .map((value) => {
      const { name, explanation } = textsOf(value)
      return { value, name, explanation }
    })
  if (options.length < 2) return null
  return <Segmented label={labels.label} options={options} value={mode} onChoose={choose} />
}

/** Selects the connection, for developers. */
export function ConnectionChoice() {
  const { mode: labels } = useLabels().shell
  const [mode, choose] = useMode()
  const textsOf = useModeTexts()
  const options = useOfferedModes().map((value) => ({ value, name: textsOf(value).connection }))
  if (options.length < 2) return null
  return (
    <Setting name={labels.connection}>
      <Segmented label={labels.connection} options={options} value={mode} onChoose={choose} />
    </Setting>
  )
}

/** Returns the modes that the server and the page have. */
function useOfferedModes(): readonly string[] {
  const { modes = [] } = usePlugin()
  const known = [...AGENT_MODES, ...modes.map(({ name }) => name)]
  return useStudio()?.modes.filter((mode) => known.includes(mode)) ?? known
}

/** Returns the texts of modes in the language of the page. */
export function useModeTexts(): (mode: string) => ModeTexts {
  const { texts } = useLabels().shell.mode
  const { language } = useLanguage()
  const { modes = [] } = usePlugin()
  return (mode) =>
    storesChats(mode)
      ? texts[mode]
      : (modes.find(({ name }) => name === mode)?.texts[language] ?? texts.sse)
}

interface SegmentedProps<Value extends string> {
  readonly label: string
  readonly options: readonly Option<Value>[]
  readonly value: Value
  readonly onChoose: (value: Value) => void
}

interface Option<Value extends string> {
  readonly value: Value
  readonly name: string
  /** One line for the tooltip. */
  readonly explanation?: string
  readonly lang?: string
}

/** A segmented control: radio buttons in one row. */
export function Segmented<Value extends string>(props: SegmentedProps<Value>) {
  const { label, options, value, onChoose } = props
  const id = useId()
  return (
    <div className="segmented" role="radiogroup" aria-label={label}>
      {options.map((option) => (
        <label key={option.value} className="segment" lang={option.lang}>
          <input
            type="radio"
            name={id}
            checked={option.value === value}
            aria-describedby={option.explanation && `${id}-${option.value}`}
            onChange={() => onChoose(option.value)}
          />
          <span>{option.name}</span>
          {option.explanation && (
            <span id={`${id}-${option.value}`} className="tip" role="tooltip">
              {option.explanation}
            </span>
          )}
        </label>
      ))}
    </div>
  )
}
