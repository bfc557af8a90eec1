import { lazy, memo, Suspense } from 'react'

import type { MarkdownProps } from './markdown-renderer.tsx'

// Half of the page's code. It is fetched beside the first paint, not before it.
const loading = import('./markdown-renderer.tsx')
const Renderer = lazy(async () => ({ default: (await loading).MarkdownRenderer }))

/** Markdown as it arrives; plain text for the moment until the renderer is there. */
export const Markdown = memo(function Markdown(props: MarkdownProps) {
  return (
    <Suspense fallback={<p className="markdown">{props.text}</p>}>
      <Renderer {...props} />
    </Suspense>
  )
})
