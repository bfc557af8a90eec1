import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'

import { useAdkLabels } from '../provider.tsx'
import type { Arguments } from '../reading/call.ts'
import { type Field, readFields, toFields } from '../reading/edit-arguments.ts'
import { toLiteral } from '../reading/literal-text.ts'
import { LiteralText, LookAlikeWarning } from './arguments-table.tsx'

interface ArgumentsFormProps {
  readonly args: Arguments
  readonly hidden: boolean
  readonly onKeyDown: (event: KeyboardEvent) => void
  readonly onClose: () => void
  readonly onSubmit: (args: Arguments) => void
}

/** Edits the arguments of a call and approves the edited call. */
export function ArgumentsForm(props: ArgumentsFormProps) {
  const { args, hidden, onKeyDown, onClose, onSubmit } = props
  const { approval } = useAdkLabels()
  const [fields, setFields] = useState(() => toFields(args))
  const [invalid, setInvalid] = useState<string>()
  const formRef = useRef<HTMLFormElement>(null)
  useEffect(() => formRef.current?.querySelector<HTMLElement>('input, textarea')?.focus(), [])

  const change = (changed: Field): void =>
    setFields((known) => known.map((field) => (field.name === changed.name ? changed : field)))
  const submit = (): void => {
    const read = readFields(fields)
    setInvalid(read.state === 'invalid' ? read.field.name : undefined)
    if (read.state === 'valid') onSubmit(read.args)
  }
  return (
    <form
      ref={formRef}
      className="adk-approval-form"
      hidden={hidden}
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      <div className="adk-fields">
        {fields.map((field) => (
          <ArgumentField
            key={field.name}
            field={field}
            invalid={field.name === invalid}
            onChange={change}
            onKeyDown={onKeyDown}
          />
        ))}
      </div>
      <FormActions label={approval.approveEdited} onClose={onClose} />
    </form>
  )
}

interface ArgumentFieldProps {
  readonly field: Field
  readonly invalid: boolean
  readonly onChange: (field: Field) => void
  readonly onKeyDown: (event: KeyboardEvent) => void
}

/** One argument with an input for the type of its value. */
function ArgumentField({ field, invalid, onChange, onKeyDown }: ArgumentFieldProps) {
  const { approval, tool } = useAdkLabels()
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
      <label htmlFor={id}>{tool.argumentNames[field.name] ?? field.name}</label>
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
            // `type="number"` hides invalid input from the page, and the mouse wheel changes it.
            type="text"
            inputMode={field.kind === 'number' ? 'decimal' : 'text'}
            value={field.value}
            onChange={(event) => onChange({ ...field, value: event.target.value })}
          />
        )}
        {/* An input does not show hidden characters. The exact value follows below it. */}
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

interface FormActionsProps {
  /** The label of the submit button. */
  readonly label: string
  readonly danger?: boolean
  readonly onClose: () => void
}

/** The submit button and the back button of a form. */
export function FormActions({ label, danger = false, onClose }: FormActionsProps) {
  const { back } = useAdkLabels().approval
  return (
    <div className="adk-actions">
      <button
        type="submit"
        className={danger ? 'adk-button adk-primary adk-danger' : 'adk-button adk-primary'}
      >
        {label}
      </button>
      <button type="button" className="adk-button adk-quiet" onClick={onClose}>
        {back}
      </button>
    </div>
  )
}
