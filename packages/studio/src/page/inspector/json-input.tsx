import { useState } from 'react'

interface JsonInputProps {
  readonly id: string
  readonly name: string
  readonly 'aria-describedby'?: string | undefined
  readonly defaultValue: string
  readonly isRequired: boolean
  /** The message if the text is not JSON. */
  readonly notJson: string
}

/** A field for JSON. The browser shows what is wrong when the form is sent, as for other fields. */
export function JsonInput({ isRequired, notJson, ...attributes }: JsonInputProps) {
  const [isInvalid, setInvalid] = useState(false)
  return (
    <textarea
      {...attributes}
      rows={3}
      spellCheck={false}
      required={isRequired}
      aria-invalid={isInvalid}
      onInput={({ currentTarget }) => {
        const isValid = isJson(currentTarget.value)
        currentTarget.setCustomValidity(isValid ? '' : notJson)
        setInvalid(!isValid)
      }}
    />
  )
}

function isJson(text: string): boolean {
  if (text === '') return true
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
