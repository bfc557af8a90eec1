import type { ComponentProps, ReactNode } from 'react'
import { type Components, type ExtraProps, Streamdown } from 'streamdown'

export interface MarkdownProps {
  readonly text: string
  readonly streaming: boolean
}

/** Renders Markdown. Completes unfinished emphasis, links and tables while the text is streamed. */
export function MarkdownRenderer({ text, streaming }: MarkdownProps) {
  return (
    <Streamdown
      className="markdown"
      components={COMPONENTS}
      controls={false}
      linkSafety={{ enabled: false }}
      mode={streaming ? 'streaming' : 'static'}
    >
      {text}
    </Streamdown>
  )
}

type ElementProps<Name extends keyof React.JSX.IntrinsicElements> = ComponentProps<Name> &
  ExtraProps

// Plain elements, because those of Streamdown expect Tailwind. Headings continue below the heading of the message.
const COMPONENTS: Components = {
  h1: 'h3',
  h2: 'h4',
  h3: 'h5',
  h4: 'h6',
  h5: 'h6',
  h6: 'h6',
  p: 'p',
  strong: 'strong',
  ul: 'ul',
  ol: 'ol',
  li: 'li',
  hr: 'hr',
  blockquote: 'blockquote',
  thead: 'thead',
  tbody: 'tbody',
  tr: 'tr',
  th: 'th',
  td: 'td',
  code: 'code',
  a: ({ href, children }: ElementProps<'a'>) => (
    <a href={href} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  ),
  pre: ({ children }: ElementProps<'pre'>) => (
    <Wide>
      <pre>{children}</pre>
    </Wide>
  ),
  table: ({ children }: ElementProps<'table'>) => (
    <Wide>
      <table>{children}</table>
    </Wide>
  ),
  img: ({ src, alt }: ElementProps<'img'>) => <Picture src={src} alt={alt} />,
}

/** Scrolls content that is wider than the column. */
function Wide({ children }: { readonly children: ReactNode }) {
  return (
    // WCAG 2.1.1: a scrollable element must be reachable by keyboard.
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex
    <div className="wide" tabIndex={0}>
      {children}
    </div>
  )
}

/** Shows an external picture as a link: loading it would reveal the conversation to its server. */
function Picture({ src, alt }: Pick<ComponentProps<'img'>, 'src' | 'alt'>) {
  if (typeof src !== 'string') return null
  if (src.startsWith('data:image/')) return <img className="picture" src={src} alt={alt ?? ''} />
  return (
    <a href={src} target="_blank" rel="noopener noreferrer">
      {alt || src}
    </a>
  )
}
