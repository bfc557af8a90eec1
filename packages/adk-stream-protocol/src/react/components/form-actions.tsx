import { useAdkTexts } from '../provider.tsx'

interface FormActionsProps {
  /** What sending the form does, in words. */
  readonly label: string
  readonly danger?: boolean
  readonly onLeave: () => void
}

/** The ways out of a form: sending it, and going back. */
export function FormActions({ label, danger = false, onLeave }: FormActionsProps) {
  const { back } = useAdkTexts().approval
  return (
    <div className="adk-actions">
      <button
        type="submit"
        className={danger ? 'adk-button adk-primary adk-danger' : 'adk-button adk-primary'}
      >
        {label}
      </button>
      <button type="button" className="adk-button adk-quiet" onClick={onLeave}>
        {back}
      </button>
    </div>
  )
}
