import type { LucideIcon } from 'lucide-react'
import type { ComponentProps } from 'react'

interface IconButtonProps extends Omit<ComponentProps<'button'>, 'type' | 'title' | 'children'> {
  readonly icon: LucideIcon
  readonly label: string
}

/** A button that shows only an icon. The label is its accessible name and its tooltip. */
export function IconButton({
  icon: Icon,
  label,
  className = 'icon-button',
  ...attributes
}: IconButtonProps) {
  return (
    <button type="button" className={className} aria-label={label} title={label} {...attributes}>
      <Icon aria-hidden="true" />
    </button>
  )
}
