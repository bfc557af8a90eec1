import { Ellipsis, Pencil, Trash2 } from 'lucide-react'
import { useId, useRef } from 'react'

import { useLabels } from '../i18n/language.tsx'

interface ChatMenuProps {
  readonly title: string
  readonly onRename: () => void
  readonly onDelete: () => void
}

/** The menu of a chat. */
export function ChatMenu({ title, onRename, onDelete }: ChatMenuProps) {
  const { chats } = useLabels().shell
  const id = useId()
  const buttonRef = useRef<HTMLButtonElement>(null)
  const menuRef = useRef<HTMLDivElement>(null)
  const choose = (act: () => void) => () => {
    menuRef.current?.hidePopover()
    act()
  }
  return (
    <>
      <button
        ref={buttonRef}
        type="button"
        className="icon-button chat-options"
        aria-label={chats.options(title)}
        popoverTarget={id}
      >
        <Ellipsis aria-hidden="true" />
      </button>
      <div
        ref={menuRef}
        id={id}
        className="popover menu"
        popover="auto"
        onBeforeToggle={() => place(menuRef.current, buttonRef.current)}
      >
        <button type="button" className="menu-item" onClick={choose(onRename)}>
          <Pencil aria-hidden="true" />
          {chats.rename}
        </button>
        <button type="button" className="menu-item danger" onClick={choose(onDelete)}>
          <Trash2 aria-hidden="true" />
          {chats.delete}
        </button>
      </div>
    </>
  )
}

// The menu has no size before it is shown.
const MENU_HEIGHT_PX = 100
const MENU_WIDTH_PX = 180

/** Places the menu below its button, or above it at the end of the page, and inside the screen. */
function place(menu: HTMLElement | null, button: HTMLElement | null): void {
  if (!menu || !button) return
  const { top, bottom, left } = button.getBoundingClientRect()
  const below = bottom + MENU_HEIGHT_PX < window.innerHeight
  menu.style.left = `${Math.min(left, window.innerWidth - MENU_WIDTH_PX)}px`
  menu.style.top = `${below ? bottom + 4 : top - MENU_HEIGHT_PX}px`
}
