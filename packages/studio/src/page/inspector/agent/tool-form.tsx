import { type SubmitEvent, useId } from 'react'

import type { ToolInfo } from '../../../studio-info.ts'
import { JsonInput } from '../json-input.tsx'
import { useAgentLabels } from './labels.ts'
import { readFields, readValue, type ToolField } from './tool-fields.ts'

interface ToolFormProps {
  readonly tool: ToolInfo
  readonly isEmulated: boolean
  /** Whether a reply is running, so that no message can be sent. */
  readonly busy: boolean
  /** Called with the message that makes the model call the tool. */
  readonly onSend: (message: string) => void
}

/** A form for the arguments of a tool, made from their schema. */
export function ToolForm({ tool, isEmulated, busy, onSend }: ToolFormProps) {
  const labels = useAgentLabels()
  const fields = readFields(tool)
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const values = fields.map((field) => {
      const text = form.get(field.name)
      return [field.name, readValue(field, typeof text === 'string' ? text : '')] as const
    })
    // JSON leaves out values that are undefined.
    const args = JSON.stringify(Object.fromEntries(values))
    onSend(isEmulated ? `[[call ${tool.name} ${args}]]` : labels.request(tool.name, args))
  }
  return (
    <form className="tool-form" onSubmit={submit}>
      {tool.description !== undefined && <p dir="auto">{tool.description}</p>}
      {fields.map((field) => (
        <Field key={field.name} field={field} />
      ))}
      <p className="tool-form-note">{isEmulated ? labels.runsByEmulator : labels.runsByModel}</p>
      <button type="submit" className="primary" disabled={busy} title={busy ? labels.busy : ''}>
        {labels.run(tool.name)}
      </button>
    </form>
  )
}

function Field({ field }: { readonly field: ToolField }) {
  const labels = useAgentLabels()
  const id = useId()
  const { name, type, isRequired, description } = field
  const notes = [isRequired && labels.required, type === 'json' && labels.json].filter(Boolean)
  return (
    <div className="tool-field">
      <label htmlFor={id}>
        <code>{name}</code> {notes.length > 0 && <span>({notes.join(', ')})</span>}
      </label>
      <FieldInput field={field} id={id} describedBy={description && `${id}-text`} />
      {description !== undefined && (
        <p id={`${id}-text`} dir="auto">
          {description}
        </p>
      )}
    </div>
  )
}

interface FieldInputProps {
  readonly field: ToolField
  readonly id: string
  readonly describedBy: string | undefined
}

function FieldInput({ field, id, describedBy }: FieldInputProps) {
  const labels = useAgentLabels()
  const { name, type, isRequired, choices, initial } = field
  const common = { id, name, 'aria-describedby': describedBy, defaultValue: initial }
  switch (type) {
    case 'choice':
    case 'boolean':
      return (
        <select {...common} required={isRequired}>
          {!(isRequired && initial !== '') && <option value="">{labels.none}</option>}
          {(type === 'boolean' ? ['true', 'false'] : choices).map((choice) => (
            <option key={choice}>{choice}</option>
          ))}
        </select>
      )
    case 'number':
    case 'integer':
      return (
        <input
          {...common}
          type="number"
          step={type === 'integer' ? 1 : 'any'}
          required={isRequired}
        />
      )
    case 'json':
      return <JsonInput {...common} isRequired={isRequired} notJson={labels.notJson} />
    case 'text':
      return <input {...common} type="text" autoComplete="off" required={isRequired} />
  }
}
