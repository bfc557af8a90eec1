import { type ReactNode, useEffect, useRef } from 'react'

interface ModalProps {
  readonly open: boolean
  readonly label: string
  readonly className: string
  readonly onClose: () => void
  readonly children: ReactNode
}

/** The browser's own dialog: it keeps the focus, closes with Escape, and gives the focus back. */
export function Modal({ open, label, className, onClose, children }: ModalProps) {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const dialog = ref.current
    if (!dialog || dialog.open === open) return
    if (open) dialog.showModal()
    else dialog.close()
  }, [open])
  return (
    // Escape is the keyboard's way to do what a click beside the dialog does.
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-noninteractive-element-interactions
    <dialog
      ref={ref}
      className={className}
      aria-label={label}
      onClose={(event) => {
        // React lets the event of a dialog within this one come up to it.
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
