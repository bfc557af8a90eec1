import { type KeyboardEvent, useEffect, useId, useRef, useState } from 'react'

import { useAdkLabels } from '../provider.tsx'
import type { Arguments } from '../reading/call.ts'
import { type Field, type FieldProblem, readFields } from '../reading/edit-arguments.ts'
import { toLiteral } from '../reading/literal-text.ts'
import { LiteralText, LookAlikeWarning } from './arguments-table.tsx'
import { HoldButton } from './hold-button.tsx'

interface ArgumentsFormProps {
  /** The fields with what the person has typed. The card keeps them when the form closes. */
  readonly fields: readonly Field[]
  readonly onChange: (fields: readonly Field[]) => void
  readonly hidden: boolean
  /** Whether the person has to hold the submit button. */
  readonly isHeld: boolean
  readonly onKeyDown: (event: KeyboardEvent) => void
  readonly onClose: () => void
  readonly onSubmit: (args: Arguments) => void
}

/** Edits the arguments of a call and approves the edited call. */
export function ArgumentsForm(props: ArgumentsFormProps) {
  const { fields, hidden, isHeld, onChange, onKeyDown, onClose, onSubmit } = props
  const { approval, locale } = useAdkLabels()
  const [problems, setProblems] = useState(NO_PROBLEMS)
  const formRef = useRef<HTMLFormElement>(null)
  useEffect(
    () => formRef.current?.querySelector<HTMLElement>('input, textarea, select')?.focus(),
    [],
  )

  const change = (changed: Field): void => {
    onChange(fields.map((field) => (field.name === changed.name ? changed : field)))
    // The problem disappears while the person corrects it, and the submit button checks again.
    setProblems((known) => new Map([...known].filter(([name]) => name !== changed.name)))
  }
  const submit = (): void => {
    const read = readFields(fields, locale)
    if (read.state === 'valid') return onSubmit(read.args)
    setProblems(read.problems)
    const index = fields.findIndex(({ name }) => read.problems.has(name))
    const cells = formRef.current?.querySelectorAll<HTMLElement>('.adk-field-cell')
    cells?.item(index)?.querySelector<HTMLElement>('input, textarea, select')?.focus()
  }
  return (
    <form
      ref={formRef}
      className="adk-approval-form"
      hidden={hidden}
      noValidate
      onSubmit={(event) => {
        event.preventDefault()
        // Enter in a field checks the form. It does not approve a call that has to be held.
        if (isHeld) setProblems(readProblems(fields, locale))
        else submit()
      }}
    >
      <div className="adk-fields">
        {fields.map((field) => (
          <ArgumentField
            key={field.name}
            field={field}
            problem={problems.get(field.name)}
            onChange={change}
            onKeyDown={onKeyDown}
          />
        ))}
      </div>
      <FormActions
        label={approval.approveEdited}
        onClose={onClose}
        onHeld={isHeld ? submit : undefined}
      />
    </form>
  )
}

function readProblems(fields: readonly Field[], locale: string) {
  const read = readFields(fields, locale)
  return read.state === 'valid' ? NO_PROBLEMS : read.problems
}

const NO_PROBLEMS: ReadonlyMap<string, FieldProblem> = new Map()

interface ArgumentFieldProps {
  readonly field: Field
  readonly problem: FieldProblem | undefined
  readonly onChange: (field: Field) => void
  readonly onKeyDown: (event: KeyboardEvent) => void
}

/** One argument with an input for the type of its value. */
function ArgumentField({ field, problem, onChange, onKeyDown }: ArgumentFieldProps) {
  const { approval, tool } = useAdkLabels()
  const id = useId()
  const problemId = `${id}-problem`
  const common = {
    id,
    onKeyDown,
    'aria-invalid': problem !== undefined,
    ...(problem && { 'aria-describedby': problemId }),
    ...(field.rules.required && { 'aria-required': true }),
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
        {field.kind === 'select' && (
          <select
            {...common}
            className="adk-field"
            value={field.value}
            onChange={(event) => onChange({ ...field, value: event.target.value })}
          >
            {/* The value that the model requested may not be allowed. */}
            {[...new Set([field.value, ...(field.rules.options ?? []).map(String)])].map(
              (option) => (
                <option key={option} value={option}>
                  {toLiteral(option)}
                </option>
              ),
            )}
          </select>
        )}
        {field.kind === 'date' && (
          <input
            {...common}
            className="adk-field"
            type="date"
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
        {problem && (
          <p id={problemId} className="adk-failure" role="alert">
            {approval.describeProblem(problem)}
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
  /** Called when the submit button was held. Without it, a click submits the form. */
  readonly onHeld?: (() => void) | undefined
  readonly onClose: () => void
}

/** The submit button and the back button of a form. */
export function FormActions({ label, danger = false, onHeld, onClose }: FormActionsProps) {
  const { back } = useAdkLabels().approval
  return (
    <div className="adk-actions">
      {onHeld ? (
        <HoldButton label={label} onHeld={onHeld} />
      ) : (
        <button
          type="submit"
          className={danger ? 'adk-button adk-primary adk-danger' : 'adk-button adk-primary'}
        >
          {label}
        </button>
      )}
      <button type="button" className="adk-button adk-quiet" onClick={onClose}>
        {back}
      </button>
    </div>
  )
}
