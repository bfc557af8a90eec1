import { useId } from 'react'

import { useDemo } from '../wire/wire.ts'
import { useLabels } from '../i18n/language.tsx'
import { MODES, useMode } from '../settings.ts'

/** Switches between writing and talking. Direct mode appears only while it is chosen. */
export function ModeSwitch() {
  const { mode: labels } = useLabels().shell
  const [mode, choose] = useMode()
  const offered = useDemo()?.modes ?? MODES
  const options = offered
    .filter((value) => value !== 'direct' || mode === 'direct')
    .map((value) => ({
      value,
      name: labels.names[value],
      explanation: labels.explanations[value],
    }))
  return <Segmented label={labels.label} options={options} value={mode} onChoose={choose} />
}

/** Selects the connection, for developers. */
export function ConnectionChoice() {
  const { mode: labels } = useLabels().shell
  const [mode, choose] = useMode()
  const offered = useDemo()?.modes ?? MODES
  const options = offered.map((value) => ({ value, name: labels.connections[value] }))
  return <Segmented label={labels.connection} options={options} value={mode} onChoose={choose} />
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
