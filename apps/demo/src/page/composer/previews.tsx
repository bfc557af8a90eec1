import { X } from 'lucide-react'

import type { PictureProblem } from '../attachments/check-picture.ts'
import type { Picture } from '../attachments/use-pictures.ts'
import { useLabels } from '../i18n/language.tsx'
import type { Labels } from '../i18n/labels.ts'

interface PreviewsProps {
  readonly pictures: readonly Picture[]
  readonly onRemove: (id: string) => void
}

/** The pictures of the draft. */
export function Previews({ pictures, onRemove }: PreviewsProps) {
  const { composer } = useLabels().shell
  if (pictures.length === 0) return null
  return (
    <ul className="previews" aria-label={composer.pictures}>
      {pictures.map(({ id, name, url }) => (
        <li key={id} className="preview">
          <img src={url} alt={name} />
          <button
            type="button"
            className="preview-remove"
            aria-label={composer.remove(name)}
            title={composer.remove(name)}
            onClick={() => onRemove(id)}
          >
            <X aria-hidden="true" />
          </button>
        </li>
      ))}
    </ul>
  )
}

/** Shows why pictures were rejected. */
export function PictureProblems({ problems }: { readonly problems: readonly PictureProblem[] }) {
  const labels = useLabels()
  if (problems.length === 0) return null
  return (
    <div className="composer-problems" role="alert">
      {[...new Set(problems.map((problem) => describe(problem, labels)))].map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
    </div>
  )
}

function describe(problem: PictureProblem, { shell }: Labels): string {
  const { problems } = shell.composer
  switch (problem.kind) {
    case 'type':
      return problems.type(problem.name)
    case 'size':
      return problems.size(problem.name, problem.maxMegabytes)
    case 'total':
      return problems.total(problem.name)
    case 'count':
      return problems.count(problem.max)
    case 'unreadable':
      return problems.unreadable(problem.name)
  }
}
