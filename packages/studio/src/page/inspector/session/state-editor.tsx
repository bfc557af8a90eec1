import { type SubmitEvent, useId, useState } from 'react'

import { JsonInput } from '../json-input.tsx'
import { useSessionLabels } from './labels.ts'
import { saveState } from './session-api.ts'
import { toShortJson, type StoredSession } from './stored-session.ts'

interface StateEditorProps {
  readonly chatId: string
  readonly state: StoredSession['state']
  /** Called when a key was changed. */
  readonly onSaved: () => void
}

/** The session state: each key opens a form with its value as JSON, and another form adds a key. */
export function StateEditor({ chatId, state, onSaved }: StateEditorProps) {
  const labels = useSessionLabels()
  const [saved, setSaved] = useState('')
  const common = {
    chatId,
    onSaved: (key: string) => {
      setSaved(key)
      onSaved()
    },
  }
  const keys = Object.keys(state).toSorted()
  return (
    <section className="state-editor">
      <h3>{labels.state}</h3>
      {keys.length === 0 && <p className="inspector-empty">{labels.noState}</p>}
      {keys.map((key) => {
        const text = JSON.stringify(state[key], undefined, 2)
        return (
          <details key={key}>
            <summary>
              <code dir="auto">{key}</code>{' '}
              <span dir="auto">{toShortJson(state[key]).slice(0, 80)}</span>
            </summary>
            {/* Another value is another form. */}
            <KeyForm key={text} {...common} name={key} value={text} />
          </details>
        )
      })}
      <details>
        <summary>{labels.addKey}</summary>
        <KeyForm key={keys.length} {...common} name={undefined} value="" />
      </details>
      <p role="status">{saved !== '' && labels.keySaved(saved)}</p>
    </section>
  )
}

interface KeyFormProps {
  readonly chatId: string
  /** Undefined: the form asks for it. */
  readonly name: string | undefined
  /** JSON. */
  readonly value: string
  readonly onSaved: (key: string) => void
}

function KeyForm({ chatId, name, value, onSaved }: KeyFormProps) {
  const labels = useSessionLabels()
  const id = useId()
  const [problem, setProblem] = useState('')
  const save = async (form: FormData): Promise<void> => {
    const key = name ?? readText(form, 'key')
    const result = await saveState(chatId, key, JSON.parse(readText(form, 'value')))
    setProblem(result === 'saved' ? '' : labels.saveProblems[result])
    if (result === 'saved') onSaved(key)
  }
  const submit = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault()
    void save(new FormData(event.currentTarget))
  }
  return (
    <form className="tool-form" onSubmit={submit}>
      {name === undefined && (
        <div className="tool-field">
          <label htmlFor={`${id}-key`}>{labels.key}</label>
          <input
            id={`${id}-key`}
            name="key"
            required
            maxLength={256}
            pattern="(?!temp:).*"
            title={labels.keyHint}
            autoComplete="off"
            spellCheck={false}
          />
        </div>
      )}
      <div className="tool-field">
        <label htmlFor={id}>{name === undefined ? labels.newValue : labels.valueOf(name)}</label>
        <JsonInput id={id} name="value" defaultValue={value} notJson={labels.notJson} isRequired />
      </div>
      <button type="submit" className="primary">
        {labels.saveKey}
      </button>
      {problem !== '' && <p role="alert">{problem}</p>}
    </form>
  )
}

function readText(form: FormData, name: string): string {
  const text = form.get(name)
  return typeof text === 'string' ? text : ''
}
