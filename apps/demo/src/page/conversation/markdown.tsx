import { lazy, memo, Suspense } from 'react'

import type { MarkdownProps } from './markdown-renderer.tsx'

// Half of the page's code. It loads in parallel to the first paint.
const loading = import('./markdown-renderer.tsx')
const Renderer = lazy(async () => ({ default: (await loading).MarkdownRenderer }))

/** Renders Markdown. Shows plain text until the renderer is loaded. */
export const Markdown = memo(function Markdown(props: MarkdownProps) {
  return (
    <Suspense fallback={<p className="markdown">{props.text}</p>}>
      <Renderer {...props} />
    </Suspense>
  )
})
