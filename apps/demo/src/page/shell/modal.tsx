import { type ReactNode, useEffect, useRef } from 'react'

interface ModalProps {
  readonly open: boolean
  readonly label: string
  readonly className: string
  readonly onClose: () => void
  readonly children: ReactNode
}

/** A native dialog: it traps the focus, closes with Escape, and restores the focus. */
export function Modal({ open, label, className, onClose, children }: ModalProps) {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = ref.current
    if (!dialog || dialog.open === open) return
    if (open) dialog.showModal()
    else dialog.close()
  }, [open])
  return (
    // The Escape key does the same as a click outside the dialog.
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-noninteractive-element-interactions
    <dialog
      ref={ref}
      className={className}
      aria-label={label}
      onClose={(event) => {
        // In React, the event of a nested dialog bubbles.
        if (event.target === event.currentTarget) onClose()
      }}
      onClick={(event) => {
        if (event.target === event.currentTarget) event.currentTarget.close()
      }}
    >
      {open && <div className="modal-content">{children}</div>}
    </dialog>
  )
}
