import { useId } from 'react'

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
