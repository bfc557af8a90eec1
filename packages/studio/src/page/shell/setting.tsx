import type { ReactNode } from 'react'

/** A named setting. */
export function Setting({
  name,
  children,
}: {
  readonly name: string
  readonly children: ReactNode
}) {
  return (
    <div className="setting">
      {/* Screen readers read the label of the group below. */}
      <span aria-hidden="true">{name}</span>
      {children}
    </div>
  )
}
