import { useEffect, useState } from 'react'

import type { EditPreview } from '../../protocol/server-views.ts'
import type { ShownPreview } from '../../protocol/preview.ts'
import { useAdkLabels, useAdkSettings } from '../provider.tsx'
import type { Arguments } from '../reading/call.ts'
import { type Field, keepValues, limitToAvailable, toFields } from '../reading/form-fields.ts'
import { type ServerError, toServerError } from '../reading/problem.ts'
import { readFields } from '../reading/read-fields.ts'

/** What the server says about edited arguments. */
type EditCheck =
  /** Nothing is changed, or the page has no `api` that could ask the server. */
  | { readonly state: 'none' }
  /** A field is not valid, and its form says why. */
  | { readonly state: 'invalid' }
  | { readonly state: 'checking' }
  | { readonly state: 'checked'; readonly edit: EditPreview }
  | { readonly state: 'refused'; readonly error: ServerError }

/** A call as a person edits it. */
export interface Edit {
  readonly fields: readonly Field[]
  /** The names of the fields with another value than the model requested, and that value. */
  readonly changed: ReadonlyMap<string, Field['value']>
  /** The edited arguments. Undefined if a field is not valid. */
  readonly args: Arguments | undefined
  readonly check: EditCheck
}

interface EditOptions {
  readonly approvalId: string
  readonly args: Arguments
  readonly schema: Readonly<Record<string, unknown>> | undefined
  /** The preview of the call as it was requested. A change of it asks the server again. */
  readonly preview: ShownPreview | undefined
  readonly draft: { readonly isEditing: boolean; readonly fields?: readonly Field[] | undefined }
}

/** Reads the form that edits a call, and asks the server what the edited call would do. Returns undefined while the form is closed. */
export function useEdit(options: EditOptions): Edit | undefined {
  const { args: requested, schema, preview, draft } = options
  const { locale } = useAdkLabels()
  const original = draft.isEditing ? toFields(requested, schema, locale) : []
  const typed = keepValues(original, draft.fields)
  const fields = limitToAvailable(typed, requested, preview?.amount)
  const read = readFields(fields, locale)
  const changed = new Map(
    original.flatMap(({ name, value }) => {
      const now = fields.find((field) => field.name === name)?.value
      return now === value ? [] : [[name, value] as const]
    }),
  )
  const args = read.state === 'valid' ? read.args : undefined
  const isAsked = draft.isEditing && changed.size > 0
  const check = useEditCheck(options, isAsked ? args : undefined)
  if (!draft.isEditing) return undefined
  return { fields, changed, args, check: isAsked && !args ? { state: 'invalid' } : check }
}

/** What a card shows about a call. */
interface ShownCall {
  readonly args: Arguments
  readonly preview: ShownPreview | undefined
  /** The preview that the person saw before. */
  readonly seen: ShownPreview | undefined
}

/** A call with the changes of the person. */
interface ShownEdit extends ShownCall {
  /** Whether the arguments are not those that the model requested. */
  readonly isEdited: boolean
  /** A preview of earlier values, which only keeps its place in the card while the server is asked. */
  readonly outdated: ShownPreview | undefined
  /** The severity of the edited call, if the server has said it. */
  readonly severity?: EditPreview['severity']
  readonly misleading?: EditPreview['misleading']
}

/** Returns what a card shows while a person edits its call. Nothing of it describes earlier values. */
export function showEdit(edit: Edit | undefined, call: ShownCall): ShownEdit {
  if (!edit || edit.changed.size === 0) return { ...call, isEdited: false, outdated: undefined }
  const { args = {}, check } = edit
  const edited = {
    args,
    isEdited: true,
    preview: undefined,
    seen: undefined,
    outdated: call.preview,
  }
  if (check.state !== 'checked') return edited
  const { preview, severity, misleading } = check.edit
  return { ...edited, preview, seen: call.preview, outdated: undefined, severity, misleading }
}

/** How long a person has to stop typing before the server is asked, in ms. */
const PAUSE_MS = 250

/** Asks the server about edited arguments, after each change. A response about earlier arguments is never returned. */
function useEditCheck(
  { approvalId, preview }: Pick<EditOptions, 'approvalId' | 'preview'>,
  args: Arguments | undefined,
): EditCheck {
  const { api } = useAdkSettings()
  const key = args && api?.previewEdit ? JSON.stringify([args, preview?.digest]) : undefined
  const [known, setKnown] = useState<{ readonly key: string; readonly check: EditCheck }>()
  useEffect(() => {
    if (key === undefined || args === undefined) return
    const aborter = new AbortController()
    const ask = async (): Promise<void> => {
      let check: EditCheck
      try {
        const edit = await api?.previewEdit?.(approvalId, args, aborter.signal)
        check = { state: 'checked', edit: edit ?? {} }
      } catch (error) {
        check = { state: 'refused', error: toServerError(error) }
      }
      if (!aborter.signal.aborted) setKnown({ key, check })
    }
    // `ask` handles its errors.
    const timer = setTimeout(() => void ask(), PAUSE_MS)
    return () => {
      clearTimeout(timer)
      aborter.abort()
    }
    // The key contains the arguments.
    // oxlint-disable-next-line react-hooks/exhaustive-deps
  }, [api, approvalId, key])
  if (key === undefined) return { state: 'none' }
  return known?.key === key ? known.check : { state: 'checking' }
}
