import { useCallback, useMemo, useSyncExternalStore } from 'react'

import { navigate } from '../shell/navigate.ts'

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
  return { isOpen: query.get('view') === VIEW, filter, setFilter }
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
