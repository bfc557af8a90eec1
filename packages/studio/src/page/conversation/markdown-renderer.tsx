import { CodeBlock } from 'adk-stream-protocol/react'
import type { Links, MarkedToken, Token, Tokens } from 'marked'
import { createContext, memo, type ReactNode, use, useState, useEffect, useRef } from 'react'

import { BlockLexer, decodeReferences, lexInline, isMaths } from './markdown-blocks.ts'

export interface MarkdownProps {
  readonly text: string
  readonly streaming: boolean
}

const LinksContext = createContext<Links>({})
const StreamingContext = createContext(false)

/**
 * Renders Markdown. Text that is added renders only the last block, and in it only the last list item, table row or run of text. HTML is
 * shown as text.
 */
export function MarkdownRenderer({ text, streaming }: MarkdownProps) {
  const [lexer] = useState(() => new BlockLexer())
  const { blocks, links } = lexer.lex(text, { streaming })
  return (
    <div className="markdown">
      <StreamingContext value={streaming}>
        <LinksContext value={links}>
          <Blocks tokens={blocks} />
        </LinksContext>
      </StreamingContext>
    </div>
  )
}

function Blocks({ tokens }: { readonly tokens: readonly Token[] }) {
  // Text is only appended, so the index identifies a block.
  return tokens.map((token, index) => <Block key={index} token={token} />)
}

interface BlockProps {
  readonly token: Token
}

const Block = memo(function Block({ token }: BlockProps) {
  if (isMaths(token)) return <MathsBlock text={token.text} />
  // `Generic` is the type of extensions. There is no other one.
  const block = token as MarkedToken
  // Inline parts are not blocks.
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check
  switch (block.type) {
    case 'paragraph':
      return (
        <p dir="auto">
          <Inline text={block.text} />
        </p>
      )
    case 'heading':
      return <Heading depth={block.depth} text={block.text} />
    case 'list':
      return <List list={block} />
    case 'table':
      return <Table table={block} />
    case 'code':
      return <Code code={block} />
    case 'blockquote':
      return (
        <blockquote dir="auto">
          <Blocks tokens={block.tokens} />
        </blockquote>
      )
    case 'hr':
      return <hr />
    case 'html':
      return isLineBreak(block.raw) ? <br /> : <p>{block.raw}</p>
    case 'text':
      // The text of a list item without blank lines around it.
      return <Inline text={block.text} />
    default:
      return null
  }
}, isSameToken)

function isSameToken(before: BlockProps, after: BlockProps): boolean {
  return before.token.type === after.token.type && before.token.raw === after.token.raw
}

/** Code has colours when it is complete: to colour it with every chunk would take longer and longer. */
function Code({ code }: { readonly code: Tokens.Code }) {
  const isStreaming = use(StreamingContext)
  const [language] = (code.lang ?? '').split(/[\s{,]/, 1)
  if (language === 'math' || language === 'latex') return <MathsBlock text={code.text} />
  return (
    <CodeBlock
      code={code.text}
      language={language?.toLowerCase()}
      complete={!isStreaming || isClosed(code.raw)}
    />
  )
}

/** Returns whether code between fences has its last fence. */
function isClosed(raw: string): boolean {
  const [fence] = /`{3,}|~{3,}/.exec(raw) ?? []
  const lines = raw.trimEnd().split('\n')
  return fence !== undefined && lines.length > 1 && lines.at(-1)?.trim().startsWith(fence) === true
}

function MathsBlock({ text }: { readonly text: string }) {
  return (
    <Wide>
      <Maths text={text} isBlock />
    </Wide>
  )
}

// Headings continue below the heading of the message.
const HEADINGS = ['h3', 'h4', 'h5'] as const

function Heading({ depth, text }: Pick<Tokens.Heading, 'depth' | 'text'>) {
  const Name = HEADINGS[depth - 1] ?? 'h6'
  return (
    <Name dir="auto">
      <Inline text={text} />
    </Name>
  )
}

function List({ list }: { readonly list: Tokens.List }) {
  const items = list.items.map((item, index) => (
    <Item key={index} item={item} isLoose={list.loose} />
  ))
  if (!list.ordered) return <ul>{items}</ul>
  return <ol start={list.start === '' ? 1 : list.start}>{items}</ol>
}

interface ItemProps {
  readonly item: Tokens.ListItem
  readonly isLoose: boolean
}

const Item = memo(
  function Item({ item }: ItemProps) {
    return (
      <li dir="auto">
        {item.task && <input type="checkbox" checked={item.checked === true} disabled readOnly />}
        <Blocks tokens={item.task ? item.tokens.map(withoutMark) : item.tokens} />
      </li>
    )
  },
  (before, after) => before.item.raw === after.item.raw && before.isLoose === after.isLoose,
)

/** Removes `[x] ` from the text of a task. */
function withoutMark(token: Token, index: number): Token {
  if (index > 0 || !('text' in token) || typeof token.text !== 'string') return token
  return { ...token, text: token.text.replace(/^\[[ x]\] +/i, '') }
}

function Table({ table }: { readonly table: Tokens.Table }) {
  return (
    <Wide>
      <table>
        <thead>
          <Row cells={table.header} />
        </thead>
        <tbody>
          {table.rows.map((cells, index) => (
            <Row key={index} cells={cells} />
          ))}
        </tbody>
      </table>
    </Wide>
  )
}

interface RowProps {
  readonly cells: readonly Tokens.TableCell[]
}

const Row = memo(
  function Row({ cells }: RowProps) {
    return (
      <tr>
        {cells.map(({ header, align, text }, index) => {
          const Name = header ? 'th' : 'td'
          return (
            <Name key={index} dir="auto" {...(align && { style: { textAlign: align } })}>
              <Inline text={text} />
            </Name>
          )
        })}
      </tr>
    )
  },
  (before, after) =>
    before.cells.length === after.cells.length &&
    before.cells.every(({ text }, index) => text === after.cells[index]?.text),
)

/** A long paragraph is rendered in runs of so many parts. */
const RUN_LENGTH = 40

function Inline({ text }: { readonly text: string }) {
  const tokens = lexInline(text, use(LinksContext))
  const runs = Array.from({ length: Math.ceil(tokens.length / RUN_LENGTH) }, (_, index) =>
    tokens.slice(index * RUN_LENGTH, (index + 1) * RUN_LENGTH),
  )
  return runs.map((run, index) => (
    <Run key={index} tokens={run} raw={run.map(({ raw }) => raw).join('')} />
  ))
}

interface RunProps {
  readonly tokens: readonly Token[]
  readonly raw: string
}

const Run = memo(
  function Run({ tokens }: RunProps) {
    return tokens.map(renderPart)
  },
  (before, after) => before.raw === after.raw,
)

function renderPart(token: Token, index: number): ReactNode {
  if (isMaths(token)) return <Maths key={index} text={token.text} isBlock={false} />
  const part = token as MarkedToken
  // Blocks are not inline.
  // oxlint-disable-next-line typescript/switch-exhaustiveness-check
  switch (part.type) {
    case 'strong':
      return <strong key={index}>{part.tokens.map(renderPart)}</strong>
    case 'em':
      return <em key={index}>{part.tokens.map(renderPart)}</em>
    case 'del':
      return <del key={index}>{part.tokens.map(renderPart)}</del>
    case 'codespan':
      return <code key={index}>{part.text}</code>
    case 'br':
      return <br key={index} />
    case 'link':
      return (
        <WebLink key={index} href={part.href}>
          {part.tokens.map(renderPart)}
        </WebLink>
      )
    case 'image':
      return <Picture key={index} src={part.href} alt={part.text} />
    case 'html':
      return isLineBreak(part.raw) ? <br key={index} /> : part.raw
    case 'escape':
    case 'text':
      return decodeReferences(part.text)
    default:
      return token.raw
  }
}

/** Models write `<br>` in the cells of tables. */
function isLineBreak(html: string): boolean {
  return /^<br\s*\/?>\s*$/i.test(html)
}

interface WebLinkProps {
  readonly href: string
  readonly children: ReactNode
}

/** The URL comes from the model. Anything that is not of the web is shown as text. */
function WebLink({ href, children }: WebLinkProps) {
  const url = decodeReferences(href)
  if (!/^https?:\/\//i.test(url)) return <>{children}</>
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      {children}
    </a>
  )
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

interface PictureProps {
  readonly src: string
  readonly alt: string
}

/** Shows an external picture as a link: loading it would reveal the conversation to its server. */
function Picture({ src, alt }: PictureProps) {
  if (src.startsWith('data:image/')) return <img className="picture" src={src} alt={alt} />
  return <WebLink href={src}>{alt || src}</WebLink>
}

interface MathsProps {
  /** LaTeX. */
  readonly text: string
  readonly isBlock: boolean
}

/** Longer formulas stay as they were written. */
const MAX_LENGTH = 4_000

/** Shows a formula as MathML. Shows its LaTeX until the converter is loaded, and if the formula is invalid. */
function Maths({ text, isBlock }: MathsProps) {
  const ref = useRef<HTMLSpanElement>(null)
  useEffect(() => {
    let isCurrent = true
    const convert = async (): Promise<void> => {
      const { default: temml } = await import('temml')
      if (!isCurrent || !ref.current) return
      // Not trusted: no links, classes or images. The limits bound what macros of a formula may become.
      const limits = { trust: false, maxExpand: 200, maxSize: [20, 20] as [number, number] }
      const target = document.createElement('span')
      temml.render(text, target, { ...limits, displayMode: isBlock, throwOnError: true })
      ref.current.replaceChildren(...target.childNodes)
    }
    // An invalid formula.
    if (text.length <= MAX_LENGTH) void convert().catch(() => undefined)
    return () => {
      isCurrent = false
    }
  }, [text, isBlock])
  // The key replaces an element whose content React does not know.
  return (
    <span key={text} ref={ref} className={isBlock ? 'maths-block' : 'maths'}>
      {text}
    </span>
  )
}
