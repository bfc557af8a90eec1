import { Pencil } from 'lucide-react'

import { useLabels } from '../i18n/language.tsx'

/** Opens the editor of a message. */
export function EditButton({ onEdit }: { readonly onEdit: () => void }) {
  const { edit } = useLabels().shell.actions
  return (
    <button type="button" className="action" aria-label={edit} title={edit} onClick={onEdit}>
      <Pencil aria-hidden="true" />
    </button>
  )
}
