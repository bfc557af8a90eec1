import { useAdkLabels } from '../provider.tsx'

interface FormActionsProps {
  /** The label of the submit button. */
  readonly label: string
  readonly danger?: boolean
  readonly onClose: () => void
}

/** The submit button and the back button of a form. */
export function FormActions({ label, danger = false, onClose }: FormActionsProps) {
  const { back } = useAdkLabels().approval
  return (
    <div className="adk-actions">
      <button
        type="submit"
        className={danger ? 'adk-button adk-primary adk-danger' : 'adk-button adk-primary'}
      >
        {label}
      </button>
      <button type="button" className="adk-button adk-quiet" onClick={onClose}>
        {back}
      </button>
    </div>
  )
}
