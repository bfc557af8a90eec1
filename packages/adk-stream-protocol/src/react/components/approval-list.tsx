import {
  type KeyboardEvent as ReactKeyboardEvent,
  type ReactNode,
  type RefObject,
  useId,
  useState,
  useEffect,
  useRef,
} from 'react'

import { toLiteral } from '../../shared/literal-text.ts'
import { isHandledElsewhere, useApprovalKeys } from './approval-form.tsx'
import { useAdkLabels } from '../provider.tsx'
import { OutlinedButton } from './buttons.tsx'
import type { ShownPerson } from '../../protocol/server-views.ts'
import { namePerson } from './approval-parts.tsx'
import type { Arguments } from '../reading/call.ts'
import { LiteralText } from './call-details.tsx'

/** An entry of the list. */
interface ListItem {
  readonly id: string
  /** The accessible name of the entry. */
  readonly label: string
  readonly severity: string | undefined
  /** The line of a collapsible entry. It contains no controls. */
  readonly summary: ReactNode
  readonly details: ReactNode
}

interface ApprovalListProps {
  /** The accessible name of the list. */
  readonly label: string
  readonly items: readonly ListItem[]
  /** Whether the details are visible only after the person opens an entry. */
  readonly collapsible: boolean
  /** The entry that is open until the person opens or closes one. */
  readonly defaultOpenId?: string | undefined
  /** Receives the focus when a control of the list disappears. */
  readonly sectionRef: RefObject<HTMLElement | null>
  readonly before: ReactNode
  readonly after: ReactNode
}

/**
 * A list of approvals. `j` and `k` move between the entries while the focus is in the list and not in an input. If the entries are
 * collapsible, the lines are one tab stop, and the arrow keys, Home and End move too.
 */
export function ApprovalList(props: ApprovalListProps) {
  const { label, items, collapsible, sectionRef, before, after } = props
  const [chosen, setChosen] = useState<{ readonly id?: string }>()
  const openId = chosen ? chosen.id : props.defaultOpenId
  const [focusedId, setFocusedId] = useState<string>()
  // The line that the Tab key reaches. An entry that disappears passes this on to the first one.
  const stopId = items.some(({ id }) => id === focusedId) ? focusedId : items[0]?.id
  const onKeyDown = (event: ReactKeyboardEvent<HTMLElement>): void => {
    if (event.defaultPrevented || isHandledElsewhere(event.nativeEvent)) return
    const targets = [...event.currentTarget.querySelectorAll<HTMLElement>(TARGETS)]
    const current = targets.findIndex((target) =>
      target.closest('.adk-inbox-item')?.contains(document.activeElement),
    )
    if (collapsible && event.key === 'Escape' && openId !== undefined) {
      event.stopPropagation()
      setChosen({})
      targets[current]?.focus()
      return
    }
    const next = moveBy(event.key, { current, count: targets.length, collapsible })
    if (next === undefined) return
    event.preventDefault()
    targets[next]?.focus()
  }
  return (
    // The keys move the focus between controls and entries that have their own roles.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions
    <section
      className="adk-inbox"
      aria-label={label}
      tabIndex={-1}
      ref={sectionRef}
      onKeyDown={onKeyDown}
    >
      {before}
      <ul data-collapsible={collapsible}>
        {items.map((item) => (
          <Entry
            key={item.id}
            item={item}
            collapsible={collapsible}
            isOpen={!collapsible || item.id === openId}
            isStop={item.id === stopId}
            onFocus={() => setFocusedId(item.id)}
            onToggle={() => setChosen(item.id === openId ? {} : { id: item.id })}
          />
        ))}
      </ul>
      {after}
    </section>
  )
}

/** What receives the focus: the line of a collapsible entry, or the entry itself. */
const TARGETS = '.adk-inbox-line, .adk-inbox-item[tabindex]'

interface Position {
  readonly current: number
  readonly count: number
  readonly collapsible: boolean
}

/** Returns the index of the entry that a key moves to, or undefined if the key does not move. */
function moveBy(key: string, { current, count, collapsible }: Position): number | undefined {
  const name = key.length === 1 ? key.toLowerCase() : key
  if (count === 0) return undefined
  // The arrow keys scroll a list whose entries are open.
  if (name === 'j' || (collapsible && name === 'ArrowDown')) return Math.min(current + 1, count - 1)
  if (name === 'k' || (collapsible && name === 'ArrowUp')) return Math.max(current - 1, 0)
  if (!collapsible) return undefined
  if (name === 'Home') return 0
  return name === 'End' ? count - 1 : undefined
}

interface EntryProps {
  readonly item: ListItem
  readonly collapsible: boolean
  readonly isOpen: boolean
  /** Whether the Tab key reaches the line. */
  readonly isStop: boolean
  readonly onFocus: () => void
  readonly onToggle: () => void
}

function Entry({ item, collapsible, isOpen, isStop, onFocus, onToggle }: EntryProps) {
  const { label, severity, summary, details } = item
  const itemRef = useApprovalKeys<HTMLLIElement>()
  const id = useId()
  const [wasOpened, setOpened] = useState(isOpen)
  if (isOpen && !wasOpened) setOpened(true)
  return (
    <li
      ref={itemRef}
      className="adk-inbox-item"
      aria-label={toLiteral(label)}
      data-severity={severity}
      data-open={isOpen}
      // Focusable by `j` and `k`, and not by the Tab key.
      tabIndex={collapsible ? undefined : -1}
    >
      {collapsible && (
        <button
          type="button"
          className="adk-inbox-line"
          aria-expanded={isOpen}
          aria-controls={wasOpened ? id : undefined}
          tabIndex={isStop ? 0 : -1}
          onFocus={onFocus}
          onClick={onToggle}
        >
          {summary}
        </button>
      )}
      {/* Hidden, not removed: its form keeps what the person has typed. */}
      {(isOpen || wasOpened) && (
        <div id={id} className="adk-inbox-details" hidden={!isOpen}>
          {details}
        </div>
      )}
    </li>
  )
}

interface ApprovalLineProps {
  readonly title: string
  readonly description: string
  /** The arguments that the description mentions. */
  readonly values: Arguments
  /** The severity, or the state. */
  readonly mark: ReactNode
  readonly requester: ShownPerson | undefined
  /** When it expires, or when it was decided. */
  readonly time: ReactNode
}

/** The `summary` of a list entry. */
export function ApprovalLine(props: ApprovalLineProps) {
  const { title, description, values, mark, requester, time } = props
  const { inbox } = useAdkLabels()
  return (
    <>
      <LiteralText in="span" className="adk-title" text={title} />
      <LiteralText in="span" className="adk-call-description" text={description} values={values} />
      {mark}
      <span className="adk-line-facts">
        {requester && (
          <>
            <LiteralText text={namePerson(requester, inbox.context)} />
            {' · '}
          </>
        )}
        {time}
      </span>
    </>
  )
}

interface LoadMoreProps {
  readonly hasMore?: boolean | undefined
  readonly onLoadMore?: (() => void) | undefined
  readonly loadingMore?: boolean | undefined
  /** Called when the button disappears while it has the focus. */
  readonly onGone: () => void
}

/** A button that loads the next page. It keeps the focus while loading. */
export function LoadMore({
  hasMore = false,
  onLoadMore,
  loadingMore = false,
  onGone,
}: LoadMoreProps) {
  const { inbox } = useAdkLabels()
  const isClicked = useRef(false)
  const isShown = onLoadMore !== undefined && (hasMore || loadingMore)
  useEffect(() => {
    if (isShown || !isClicked.current) return
    isClicked.current = false
    if (document.activeElement === document.body) onGone()
  })
  if (!isShown) return null
  const loadMore = (): void => {
    if (loadingMore) return
    isClicked.current = true
    onLoadMore()
  }
  return (
    <OutlinedButton
      className="adk-inbox-more"
      // `disabled` would remove the focus.
      aria-disabled={loadingMore}
      onClick={loadMore}
    >
      {loadingMore ? inbox.loadingMore : inbox.loadMore}
    </OutlinedButton>
  )
}
