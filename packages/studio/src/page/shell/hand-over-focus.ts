/**
 * Returns a `ref` for an element that disappears while it can have the focus. The focus moves to what appears in its place, because the
 * browser would move it to the body. Call it outside of components: React needs the same function at each render.
 */
export function handOverFocus(selector: string) {
  return (element: HTMLElement | null): (() => void) | undefined => {
    if (!element) return undefined
    return () => {
      if (!element.contains(document.activeElement)) return
      // After React has inserted the other element.
      queueMicrotask(() => document.querySelector<HTMLElement>(selector)?.focus())
    }
  }
}
