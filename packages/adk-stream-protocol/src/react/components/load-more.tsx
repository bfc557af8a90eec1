import { useEffect, useRef } from 'react'

import { useAdkLabels } from '../provider.tsx'

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
    <button
      type="button"
      className="adk-button adk-outlined adk-inbox-more"
      // `disabled` would remove the focus.
      aria-disabled={loadingMore}
      onClick={loadMore}
    >
      {loadingMore ? inbox.loadingMore : inbox.loadMore}
    </button>
  )
}
