import { type KeyboardEvent, type ReactNode, useId, useRef } from 'react'

interface Tab {
  readonly name: string
  readonly label: string
  readonly content: ReactNode
}

interface TabsProps {
  readonly label: string
  readonly tabs: readonly Tab[]
  /** The name of the selected tab. */
  readonly chosen: string
  readonly choose: (name: string) => void
}

/** Tabs as in the WAI-ARIA pattern: arrow keys switch tabs, and only the selected tab is in the tab order. */
export function Tabs({ label, tabs, chosen, choose }: TabsProps) {
  const id = useId()
  const listRef = useRef<HTMLDivElement>(null)
  const current = tabs.find(({ name }) => name === chosen)
  const onKeyDown = (event: KeyboardEvent) => {
    const step = STEPS[event.key]
    if (step === undefined) return
    event.preventDefault()
    const index = tabs.findIndex(({ name }) => name === chosen)
    const next = tabs.at((index + step) % tabs.length)
    if (!next) return
    choose(next.name)
    listRef.current?.querySelector<HTMLElement>(`[data-tab="${next.name}"]`)?.focus()
  }
  return (
    <>
      <div role="tablist" aria-label={label} className="tabs" ref={listRef}>
        {tabs.map(({ name, label: text }) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`${id}-${name}`}
            data-tab={name}
            aria-selected={name === chosen}
            aria-controls={`${id}-panel`}
            tabIndex={name === chosen ? 0 : -1}
            onClick={() => choose(name)}
            onKeyDown={onKeyDown}
          >
            {text}
          </button>
        ))}
      </div>
      <div
        role="tabpanel"
        id={`${id}-panel`}
        aria-labelledby={`${id}-${chosen}`}
        tabIndex={0}
        className="tab-panel"
      >
        {current?.content}
      </div>
    </>
  )
}

const STEPS: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowLeft: -1 }
