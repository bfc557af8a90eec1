import { type KeyboardEvent, useEffect, useRef, useState } from 'react'

import { useAdkTexts } from '../provider.tsx'
import { FormActions } from './form-actions.tsx'
import type { Arguments } from '../reading/call.ts'
import { type Field, readFields, toFields } from '../reading/edit-arguments.ts'
import { ArgumentField } from './argument-field.tsx'

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
  const { approval } = useAdkTexts()
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
      <FormActions label={approval.approveEdited} onLeave={onLeave} />
    </form>
  )
}
