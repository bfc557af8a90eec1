import type { SourceUrlUIPart, UIMessage } from 'ai'
import { memo, useEffect, useState, useRef } from 'react'

import { isRecord } from '../../protocol/guards.ts'
import { readSteps } from '../reading/steps.ts'
import { StepList } from './step-list.tsx'
import { useAdkLabels, useAdkSettings } from '../provider.tsx'
import { OutlinedButton } from './buttons.tsx'

interface TextViewProps {
  readonly text: string
  /** Whether more text follows. */
  readonly streaming: boolean
}

/** Shows text of the assistant with the application's `renderText`, or as plain text. */
export function TextView({ text, streaming }: TextViewProps) {
  const { renderText } = useAdkSettings()
  if (renderText) return <>{renderText(text, { streaming })}</>
  return (
    <p className="adk-text" dir="auto">
      {text}
    </p>
  )
}

/** Shows the model's reasoning in a collapsed section. */
export function Reasoning({ text, streaming }: TextViewProps) {
  const { message } = useAdkLabels()
  if (text === '') return null
  return (
    <details className="adk-reasoning">
      <summary>{streaming ? message.thinking : message.reasoning}</summary>
      <TextView text={text} streaming={streaming} />
    </details>
  )
}

/** Lists the web sources of a grounded reply. */
export function Sources({ parts }: Pick<UIMessage, 'parts'>) {
  const { message } = useAdkLabels()
  const sources = parts.filter((part) => part.type === 'source-url').filter(isWebUrl)
  if (sources.length === 0) return null
  return (
    <div className="adk-sources">
      <h3>{message.sources}</h3>
      <ol>
        {sources.map(({ sourceId, url, title }) => (
          <li key={sourceId}>
            <a href={url} target="_blank" rel="noopener noreferrer">
              {title ?? url}
            </a>
          </li>
        ))}
      </ol>
    </div>
  )
}

/** The URL comes from the model. A `javascript:` link must never reach the page. */
function isWebUrl({ url }: SourceUrlUIPart): boolean {
  return /^https?:\/\//i.test(url)
}

interface DataViewProps {
  readonly part: UIMessage['parts'][number]
}

/** Shows the progress of steps, code that the model ran, or what a reply decided. Shows nothing for other data parts. */
export function DataView({ part }: DataViewProps) {
  if (part.type === 'data-decision') return <DecisionView part={part} />
  if (part.type !== 'data-steps') return <CodeExecutionView part={part} />
  const progress = 'data' in part ? readSteps(part.data) : undefined
  return progress ? <StepList progress={progress} /> : null
}

/** Says what the message of the person decided. The card of the call shows the outcome. */
function DecisionView({ part }: DataViewProps) {
  const { approval } = useAdkLabels()
  const data = 'data' in part && isRecord(part.data) ? part.data : {}
  if (typeof data['approved'] !== 'boolean') return null
  return <p className="adk-decision">{approval.decidedByReply(data['approved'])}</p>
}

/** Shows code that the model ran, or its result. Shows nothing for other data parts. */
function CodeExecutionView({ part }: DataViewProps) {
  const { message } = useAdkLabels()
  const data = 'data' in part && isRecord(part.data) ? part.data : {}
  const isCode = part.type === 'data-executable-code'
  if (!isCode && part.type !== 'data-code-execution-result') return null
  const text = isCode ? data['code'] : data['output']
  if (typeof text !== 'string') return null
  const language = isCode && typeof data['language'] === 'string' ? data['language'] : ''
  return (
    <CodeBlock
      code={text}
      language={language.toLowerCase()}
      caption={isCode ? message.code : message.codeResult}
    />
  )
}

/**
 * Props of `CodeBlock`.
 *
 * @inline
 */
export interface CodeBlockProps {
  readonly code: string
  /** The language as the model wrote it, for example `ts`. */
  readonly language?: string | undefined
  /** Shown above the code. Default: the language. */
  readonly caption?: string | undefined
  /** Whether no more code follows. Only then `renderCode` is called. Default true. */
  readonly complete?: boolean | undefined
}

/** Shows code that can be copied and scrolled. Colours and diagrams come from the provider's `renderCode`, once the code is complete. */
export const CodeBlock = memo(function CodeBlock(props: CodeBlockProps) {
  const { code, language = '', caption, complete = true } = props
  const { renderCode } = useAdkSettings()
  const { message } = useAdkLabels()
  const label = caption ?? (language === '' ? message.code : language)
  return (
    <figure className="adk-code adk-code-block" aria-label={label}>
      <figcaption>
        <span className="adk-code-language">{label}</span>
        <CopyButton text={code} />
      </figcaption>
      {/* WCAG 2.1.1: a scrollable element must be reachable by keyboard. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex */}
      <div className="adk-code-body" dir="ltr" tabIndex={0}>
        {(complete && renderCode?.(code, language)) || (
          <pre>
            <code>{code}</code>
          </pre>
        )}
      </div>
    </figure>
  )
})

const SHOWN_MS = 2_000

/** Copies a text to the clipboard, and announces the result. */
function CopyButton({ text }: { readonly text: string }) {
  const { content } = useAdkLabels()
  const [result, setResult] = useState<'copied' | 'copyFailed'>()
  useEffect(() => {
    if (!result) return undefined
    const timer = setTimeout(() => setResult(undefined), SHOWN_MS)
    return () => clearTimeout(timer)
  }, [result])
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(text)
      setResult('copied')
    } catch {
      // The browser may refuse: without HTTPS, or by a setting.
      setResult('copyFailed')
    }
  }
  return (
    <>
      <span role="status" className="adk-copied">
        {result && content[result]}
      </span>
      <button type="button" className="adk-link" onClick={() => void copy()}>
        {content.copy}
      </button>
    </>
  )
}

interface FileViewProps {
  readonly url: string
  readonly mediaType: string
  readonly filename?: string | undefined
}

/**
 * Shows an image that can be enlarged, a player for audio, or a download link for any other file. A file of another server is loaded
 * after a click. Shows nothing for a URL that is not `data:`, `blob:` or `http(s):`.
 */
export function FileView({ url, mediaType, filename }: FileViewProps) {
  const { message } = useAdkLabels()
  if (!isSafeFileUrl(url)) return null
  if (mediaType.startsWith('image/')) return <Picture url={url} alt={filename ?? message.image} />
  if (isPlayable(mediaType)) return <AudioPlayer url={url} label={filename ?? message.audio} />
  return (
    <a className="adk-attachment" href={url} download={filename ?? true}>
      {filename ?? `${message.file} (${mediaType})`}
    </a>
  )
}

/** The URL may come from the model. A `javascript:` URL must never reach the page. */
function isSafeFileUrl(url: string): boolean {
  return /^(?:data:|blob:|https?:\/\/)/i.test(url)
}

/** Raw samples (`audio/pcm`, `audio/L16`) have no header that says how to play them. */
function isPlayable(mediaType: string): boolean {
  return /^audio\/(?!pcm|l16)/i.test(mediaType)
}

/** Returns the host of a URL that belongs to another server. */
function readRemoteHost(url: string): string | undefined {
  if (!/^https?:/i.test(url) || !URL.canParse(url)) return undefined
  const { origin, host } = new URL(url)
  return typeof location === 'object' && location.origin === origin ? undefined : host
}

interface PictureProps {
  readonly url: string
  readonly alt: string
}

function Picture({ url, alt }: PictureProps) {
  const { content } = useAdkLabels()
  const host = readRemoteHost(url)
  const [loadedUrl, setLoadedUrl] = useState<string>()
  // Loading a picture reveals to its server that, and when, the conversation is read.
  if (host !== undefined && loadedUrl !== url)
    return (
      <OutlinedButton className="adk-load-picture" onClick={() => setLoadedUrl(url)}>
        {content.loadPicture(host)}
      </OutlinedButton>
    )
  return <EnlargeablePicture url={url} alt={alt} />
}

/** A picture with a dialog that shows it as large as the window. */
function EnlargeablePicture({ url, alt }: PictureProps) {
  const { content } = useAdkLabels()
  const dialogRef = useRef<HTMLDialogElement>(null)
  const buttonRef = useRef<HTMLButtonElement>(null)
  const [isOpen, setIsOpen] = useState(false)
  const open = (): void => {
    setIsOpen(true)
    dialogRef.current?.showModal()
  }
  const close = (): void => dialogRef.current?.close()
  return (
    <>
      <button
        ref={buttonRef}
        type="button"
        className="adk-picture-button"
        aria-haspopup="dialog"
        title={content.enlarge}
        onClick={open}
      >
        <img className="adk-picture" src={url} alt={alt} />
      </button>
      {/* A click outside the picture does the same as the Escape key. */}
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions */}
      <dialog
        ref={dialogRef}
        className="adk-lightbox"
        aria-label={alt}
        onClick={(event) => event.target === event.currentTarget && close()}
        onKeyDown={(event) => {
          // Escape does nothing else, such as interrupting the voice of the model.
          event.stopPropagation()
          if (event.key === 'Escape') close()
        }}
        onClose={() => {
          setIsOpen(false)
          buttonRef.current?.focus()
        }}
      >
        {isOpen && (
          <>
            <img src={url} alt={alt} />
            <p className="adk-lightbox-actions">
              <a className="adk-button adk-outlined" href={url} download={alt}>
                {content.download}
              </a>
              <OutlinedButton onClick={close}>{content.close}</OutlinedButton>
            </p>
          </>
        )}
      </dialog>
    </>
  )
}

interface AudioPlayerProps {
  readonly url: string
  readonly label: string
}

function AudioPlayer({ url, label }: AudioPlayerProps) {
  return (
    // What the model says is in the conversation as text.
    // oxlint-disable-next-line jsx-a11y/media-has-caption
    <audio
      className="adk-audio"
      controls
      // Nothing is requested from another server before the person plays it.
      preload={readRemoteHost(url) === undefined ? 'metadata' : 'none'}
      src={url}
      aria-label={label}
    />
  )
}
