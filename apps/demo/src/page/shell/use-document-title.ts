import { useEffect } from 'react'

/** What the tab of the browser says. */
export function useDocumentTitle(title: string): void {
  useEffect(() => {
    document.title = title
  }, [title])
}
