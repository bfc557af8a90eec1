import { useCallback, useEffect, useState, useMemo, useSyncExternalStore } from 'react'
import { newId } from '../new-id.ts'

/** The open chat. An empty chat is not in the URL. */
export interface ChatLocation {
  readonly id: string
  readonly isNew: boolean
}

/** Keeps the chat id in the URL (`/?chat=…`) for reloads, bookmarks and the back button. */
export function useChatLocation() {
  const [location, setLocation] = useState(readLocation)
  useEffect(() => {
    const follow = () => setLocation(readLocation())
    window.addEventListener('popstate', follow)
    return () => window.removeEventListener('popstate', follow)
  }, [])
  const go = useCallback((url: string) => {
    navigate(url)
    setLocation(readLocation())
  }, [])
  const startNew = useCallback(() => go('/'), [go])
  /** Opens a chat. Also called for the open chat after its first message. */
  const open = useCallback(
    (id: string) => {
      if (id === sessionStorage.getItem(NEW_CHAT)) sessionStorage.removeItem(NEW_CHAT)
      go(chatUrl(id))
    },
    [go],
  )
  return { location, startNew, open }
}

export function chatUrl(id: string): string {
  return `/?chat=${encodeURIComponent(id)}`
}

function readLocation(): ChatLocation {
  const id = new URLSearchParams(window.location.search).get('chat')
  return id && /^[\w.~:-]{1,128}$/.test(id)
    ? { id, isNew: false }
    : { id: findNewChat(), isNew: true }
}

const NEW_CHAT = 'new-chat'

/** Returns the id of the chat of this tab that has no message yet. It survives a reload, and so does its draft. */
function findNewChat(): string {
  const id = sessionStorage.getItem(NEW_CHAT) ?? newId()
  sessionStorage.setItem(NEW_CHAT, id)
  return id
}

/** The filter of the history, as the URL contains it. */
interface Filter {
  readonly state: string
  readonly toolName?: string | undefined
  readonly requester?: string | undefined
}

const VIEW = 'approvals'

/** Keeps the page of approvals and its filter in the URL (`/?view=approvals&state=…`), beside the open chat. */
export function useApprovalsLocation() {
  const search = useSyncExternalStore(subscribe, () => window.location.search)
  const query = useMemo(() => new URLSearchParams(search), [search])
  const filter: Filter = useMemo(
    () => ({
      state: query.get('state') ?? 'decided',
      toolName: query.get('tool') ?? undefined,
      requester: query.get('requester') ?? undefined,
    }),
    [query],
  )
  const setFilter = useCallback((next: Filter) => navigate(approvalsUrl(next)), [])
  /** The approval that a notification leads to. */
  const approvalId = query.get('approval') ?? undefined
  return { isOpen: query.get('view') === VIEW, approvalId, filter, setFilter }
}

export function openApprovals(): void {
  navigate(approvalsUrl())
}

export function closeApprovals(): void {
  navigate(toUrl(readChat()))
}

export function approvalsUrl({ state, toolName, requester }: Partial<Filter> = {}): string {
  return toUrl({
    ...readChat(),
    view: VIEW,
    ...(state !== undefined && state !== 'decided' && { state }),
    ...(toolName !== undefined && { tool: toolName }),
    ...(requester !== undefined && { requester }),
  })
}

/** The chat stays open behind the page. */
function readChat(): Record<string, string> {
  const chat = new URLSearchParams(window.location.search).get('chat')
  return chat === null ? {} : { chat }
}

function toUrl(query: Record<string, string>): string {
  const search = new URLSearchParams(query).toString()
  return search === '' ? '/' : `/?${search}`
}

function subscribe(listener: () => void): () => void {
  window.addEventListener('popstate', listener)
  return () => window.removeEventListener('popstate', listener)
}

/** Changes the URL without loading the page. Everything that reads the URL follows, as after the back button. */
function navigate(url: string): void {
  if (window.location.pathname + window.location.search === url) return
  window.history.pushState(null, '', url)
  window.dispatchEvent(new PopStateEvent('popstate'))
}
