import { FolderOpen } from 'lucide-react'
import { type ChangeEvent, useId, useState } from 'react'

import { useSessionLabels } from './labels.ts'
import { importSession } from './session-api.ts'

interface ImportSessionProps {
  /** Called with the new chat. */
  readonly onImported: (chatId: string) => void
}

/** Creates a chat from the file of a session, and opens it. */
export function ImportSession({ onImported }: ImportSessionProps) {
  const labels = useSessionLabels()
  const [problem, setProblem] = useState('')
  const id = useId()
  const open = async ({ target }: ChangeEvent<HTMLInputElement>): Promise<void> => {
    const file = target.files?.[0]
    if (!file) return
    const imported = await importSession(await file.text())
    // Allows the same file to be chosen again.
    target.value = ''
    if (typeof imported === 'string') return setProblem(labels.importProblems[imported])
    setProblem('')
    onImported(imported.chatId)
  }
  return (
    <>
      <label className="file-button" htmlFor={id}>
        <FolderOpen size={16} aria-hidden="true" />
        {labels.importFile}
      </label>
      <input
        id={id}
        type="file"
        accept=".json,application/json"
        className="visually-hidden"
        onChange={(event) => void open(event)}
      />
      {problem !== '' && <p role="alert">{problem}</p>}
    </>
  )
}
