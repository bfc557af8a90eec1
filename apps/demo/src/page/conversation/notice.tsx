interface NoticeProps {
  readonly title: string
  readonly text: string
  readonly action?: string | undefined
  readonly onAction?: () => void
}

/** Shows a problem, with a button for the action that helps. */
export function Notice({ title, text, action, onAction }: NoticeProps) {
  return (
    <div className="notice" role="alert">
      <div>
        <p className="notice-title">{title}</p>
        <p className="notice-text">{text}</p>
      </div>
      {action && (
        <button type="button" className="outlined" onClick={onAction}>
          {action}
        </button>
      )}
    </div>
  )
}
