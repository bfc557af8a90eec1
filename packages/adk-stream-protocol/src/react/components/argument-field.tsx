import { type KeyboardEvent, useId } from 'react'

import { useAdkTexts } from '../provider.tsx'
import type { Field } from '../reading/edit-arguments.ts'
import { toLiteral } from '../reading/literal-text.ts'
import { LiteralText, LookAlikeWarning } from './literal-text.tsx'

interface ArgumentFieldProps {
  readonly field: Field
  readonly invalid: boolean
  readonly onChange: (field: Field) => void
  readonly onKeyDown: (event: KeyboardEvent) => void
}

/** One argument with its name, as an input of the kind that its value has. */
export function ArgumentField({ field, invalid, onChange, onKeyDown }: ArgumentFieldProps) {
  const { approval, tool } = useAdkTexts()
  const id = useId()
  const problemId = `${id}-problem`
  const common = {
    id,
    onKeyDown,
    'aria-invalid': invalid,
    ...(invalid && { 'aria-describedby': problemId }),
  }
  return (
    <>
      <label htmlFor={id}>{tool.names[field.name] ?? field.name}</label>
      <div className="adk-field-cell">
        {field.kind === 'boolean' && (
          <input
            {...common}
            type="checkbox"
            checked={field.value}
            onChange={(event) => onChange({ ...field, value: event.target.checked })}
          />
        )}
        {field.kind === 'json' && (
          <textarea
            {...common}
            className="adk-field"
            value={field.value}
            onChange={(event) => onChange({ ...field, value: event.target.value })}
          />
        )}
        {(field.kind === 'text' || field.kind === 'number') && (
          <input
            {...common}
            className="adk-field"
            // Not `type="number"`: it hides from us what it cannot read, and a wheel turns it.
            type="text"
            inputMode={field.kind === 'number' ? 'decimal' : 'text'}
            value={field.value}
            onChange={(event) => onChange({ ...field, value: event.target.value })}
          />
        )}
        {/* An input shows such characters as the browser does; what it really holds is said below it. */}
        {typeof field.value === 'string' && toLiteral(field.value) !== field.value && (
          <p className="adk-look-alike">
            <LiteralText text={field.value} />
          </p>
        )}
        {typeof field.value === 'string' && <LookAlikeWarning text={field.value} />}
        {invalid && (
          <p id={problemId} className="adk-failure" role="alert">
            {field.kind === 'json' ? approval.badJson : approval.badNumber}
          </p>
        )}
      </div>
    </>
  )
}
