import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'

import type { Arguments } from '../chat/approval.ts'
import { type Field, readFields, toFields } from '../chat/edit-arguments.ts'
import { useTexts } from '../i18n/language.tsx'

interface ArgumentsFormProps {
  readonly args: Arguments
  readonly hidden: boolean
  readonly onKeyDown: (event: KeyboardEvent) => void
  readonly onLeave: () => void
  readonly onSubmit: (args: Arguments) => void
}

/** The arguments, to be changed in place before they are approved. */
export function ArgumentsForm(props: ArgumentsFormProps) {
  const { args, hidden, onKeyDown, onLeave, onSubmit } = props
  const texts = useTexts()
  const [fields, setFields] = useState(() => toFields(args))
  const [invalid, setInvalid] = useState<string>()
  const formRef = useRef<HTMLFormElement>(null)
  useEffect(() => formRef.current?.querySelector('input')?.focus(), [])

  const change = (changed: Field) =>
    setFields(fields.map((field) => (field.name === changed.name ? changed : field)))
  const submit = () => {
    const read = readFields(fields)
    setInvalid(read.state === 'invalid' ? read.field.name : undefined)
    if (read.state === 'valid') onSubmit(read.args)
  }
  return (
    <form
      ref={formRef}
      className="approval-form"
      hidden={hidden}
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        submit()
      }}
    >
      <div className="fields">
        {fields.map((field) => (
          <FieldRow
            key={field.name}
            field={field}
            invalid={field.name === invalid}
            onChange={change}
            onKeyDown={onKeyDown}
          />
        ))}
      </div>
      <div className="actions">
        <button type="submit" className="primary">
          {texts.approval.approveEdited}
        </button>
        <button type="button" className="quiet" onClick={onLeave}>
          {texts.approval.back}
        </button>
      </div>
    </form>
  )
}

interface FieldRowProps {
  readonly field: Field
  readonly invalid: boolean
  readonly onChange: (field: Field) => void
  readonly onKeyDown: (event: KeyboardEvent) => void
}

function FieldRow({ field, invalid, onChange, onKeyDown }: FieldRowProps) {
  const texts = useTexts()
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
      <label htmlFor={id}>{texts.approval.names[field.name] ?? field.name}</label>
      <div className="field-cell">
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
            className="field"
            value={field.value}
            onChange={(event) => onChange({ ...field, value: event.target.value })}
          />
        )}
        {(field.kind === 'text' || field.kind === 'number') && (
          <input
            {...common}
            className="field"
            type={field.kind}
            step="any"
            value={field.value}
            onChange={(event) => onChange({ ...field, value: event.target.value })}
          />
        )}
        {invalid && (
          <p id={problemId} className="tool-failure" role="alert">
            {field.kind === 'json' ? texts.approval.badJson : texts.approval.badNumber}
          </p>
        )}
      </div>
    </>
  )
}
