import type { AriaAttributes, ChangeEvent, KeyboardEvent } from 'react'
import { useEffect, useId, useLayoutEffect, useRef, useState } from 'react'

import type { AdkLabels } from '../labels/labels.ts'
import { useAdkLabels } from '../provider.tsx'
import type { Arguments } from '../reading/call.ts'
import type { Field } from '../reading/form-fields.ts'
import { type FieldProblem, readFields } from '../reading/read-fields.ts'
import { toLiteral } from '../../shared/literal-text.ts'
import { LiteralText, LookAlikeWarning } from './call-details.tsx'
import { FormActions } from './buttons.tsx'
import { returnFocus } from './focus.ts'

interface ArgumentsFormProps {
  /** The fields with what the person has typed. The card keeps them when the form closes. */
  readonly fields: readonly Field[]
  readonly onChange: (fields: readonly Field[]) => void
  readonly hidden: boolean
  /** Whether the person has to hold the submit button. */
  readonly isHeld: boolean
  /** The label of the submit button, and of the other one. Default: to go back. */
  readonly labels: { readonly submit: string; readonly close?: string }
  /** The values that the model requested, by the names of the fields that have another one now. */
  readonly changed?: ReadonlyMap<string, Field['value']> | undefined
  /** Why the form cannot be submitted now. */
  readonly blocked?: string | undefined
  /** Whether the first field gets the focus when the form appears. Default true. */
  readonly takesFocus?: boolean
  readonly onKeyDown: (event: KeyboardEvent) => void
  readonly onClose: () => void
  readonly onSubmit: (args: Arguments) => void
}

/** Edits the arguments of a call and approves the edited call. */
export function ArgumentsForm(props: ArgumentsFormProps) {
  const { fields, changed, hidden, isHeld, labels, blocked, takesFocus = true } = props
  const { onChange, onKeyDown, onClose, onSubmit } = props
  const { locale } = useAdkLabels()
  const id = useId()
  const [problems, setProblems] = useState(NO_PROBLEMS)
  const formRef = useRef<HTMLFormElement>(null)
  useLayoutEffect(() => returnFocus(formRef.current), [])
  const focuses = useRef(takesFocus)
  useEffect(() => {
    if (focuses.current)
      formRef.current?.querySelector<HTMLElement>('input, textarea, select')?.focus()
  }, [])

  const change = (edited: Field): void => {
    onChange(fields.map((field) => (field.name === edited.name ? edited : field)))
    // The problem disappears while the person corrects it, and the submit button checks again.
    setProblems((known) => new Map([...known].filter(([name]) => name !== edited.name)))
  }
  const submit = (): void => {
    const read = readFields(fields, locale)
    if (read.state === 'valid') return blocked === undefined ? onSubmit(read.args) : undefined
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
            requested={changed?.get(field.name)}
            onChange={change}
            onKeyDown={onKeyDown}
          />
        ))}
      </div>
      {blocked !== undefined && (
        <p id={id} className="adk-blocked" role="status">
          {blocked}
        </p>
      )}
      <FormActions
        label={labels.submit}
        closeLabel={labels.close}
        blockedBy={blocked === undefined ? undefined : id}
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
  /** The value that the model requested, if the field has another one. */
  readonly requested: Field['value'] | undefined
  readonly onChange: (field: Field) => void
  readonly onKeyDown: (event: KeyboardEvent) => void
}

/** One argument with an input for the type of its value. */
function ArgumentField({ field, problem, requested, onChange, onKeyDown }: ArgumentFieldProps) {
  const { approval, tool } = useAdkLabels()
  const id = useId()
  const problemId = `${id}-problem`
  const helpId = `${id}-help`
  const notes = listNotes(field, problem, approval)
  const hasHelp = field.description !== undefined || notes.length > 0
  const described = [problem && problemId, hasHelp && helpId]
    .filter((each) => typeof each === 'string')
    .join(' ')
  const common = {
    id,
    onKeyDown,
    'aria-invalid': problem !== undefined,
    ...(described !== '' && { 'aria-describedby': described }),
    ...(field.rules.required && { 'aria-required': true }),
  }
  return (
    <>
      <label htmlFor={id}>
        {toLiteral(tool.argumentNames[field.name] ?? field.label ?? field.name)}
        {/* A box that is not ticked is an answer too. */}
        {field.path && !field.rules.required && field.kind !== 'boolean' && approval.optional}
      </label>
      <div className="adk-field-cell" data-changed={requested !== undefined || undefined}>
        <FieldInput {...common} field={field} onField={onChange} />
        {hasHelp && (
          <p id={helpId} className="adk-help">
            {field.description !== undefined && <LiteralText text={field.description} />}
            {notes.map((note) => ` ${note}`)}
          </p>
        )}
        {requested !== undefined && (
          <p className="adk-help adk-changed-from">
            <LiteralText text={approval.changedFrom(toLiteral(String(requested)))} />
          </p>
        )}
        {typeof field.value === 'string' && <ExactValue text={field.value} />}
        {problem && (
          <p id={problemId} className="adk-failure" role="alert">
            {approval.describeProblem(problem)}
          </p>
        )}
      </div>
    </>
  )
}

/** Returns sentences that a person may need before they fill in a field. */
function listNotes(
  { kind, rules }: Field,
  problem: FieldProblem | undefined,
  { onePerLine, describeLimits }: AdkLabels['approval'],
): string[] {
  if (kind === 'list') return [onePerLine]
  // A problem names the limit that it is about.
  const limits = kind === 'number' && !problem ? describeLimits(readLimits(rules)) : ''
  return limits === '' ? [] : [limits]
}

/** An input does not show hidden characters. The exact value follows below it. */
function ExactValue({ text }: { readonly text: string }) {
  return (
    <>
      {toLiteral(text) !== text && <LiteralText in="p" className="adk-look-alike" text={text} />}
      <LookAlikeWarning text={text} />
    </>
  )
}

/** Returns the limits of a number, to show before the person exceeds them. */
function readLimits({ min, max, available, alone }: Field['rules']) {
  const most = Math.min(max ?? Infinity, available ?? Infinity, alone ?? Infinity)
  return {
    ...(min !== undefined && { min }),
    ...(Number.isFinite(most) && { max: most }),
  }
}

interface FieldInputProps extends AriaAttributes {
  readonly field: Field
  readonly onField: (field: Field) => void
  readonly id: string
  readonly onKeyDown: (event: KeyboardEvent) => void
}

/** The input for the type of a value. */
function FieldInput({ field, onField, ...common }: FieldInputProps) {
  if (field.kind === 'boolean')
    return (
      <input
        {...common}
        type="checkbox"
        checked={field.value}
        onChange={(event) => onField({ ...field, value: event.target.checked })}
      />
    )
  const text = {
    ...common,
    className: 'adk-field',
    value: field.value,
    onChange: ({ target }: ChangeEvent<{ value: string }>) =>
      onField({ ...field, value: target.value }),
  }
  switch (field.kind) {
    case 'json':
    case 'long':
    case 'list':
      return <textarea {...text} />
    case 'select':
      return (
        <select {...text}>
          {/* The value that the model requested may not be allowed. */}
          {[...new Set([field.value, ...(field.rules.options ?? []).map(String)])].map((option) => (
            <option key={option} value={option}>
              {toLiteral(nameOption(field.rules, option))}
            </option>
          ))}
        </select>
      )
    case 'date':
      return <input {...text} type="date" />
    case 'time':
      return <input {...text} type="datetime-local" />
    case 'number':
      // `type="number"` hides invalid input from the page, and the mouse wheel changes it.
      return <input {...text} type="text" inputMode="decimal" />
    case 'text':
      return <input {...text} type="text" inputMode="text" />
  }
}

/** Returns what a select shows for an option. */
function nameOption({ options = [], optionNames }: Field['rules'], option: string): string {
  return optionNames?.[options.findIndex((each) => String(each) === option)] ?? option
}
