import { useEffect, useId, useRef, useState } from 'react'

import { type SharedLink, useAdkLabels, useAdkSettings } from '../provider.tsx'
import { Time } from './approval-parts.tsx'
import { OutlinedButton } from './buttons.tsx'

type Sharing =
  | { readonly state: 'closed' | 'loading' | 'failed' }
  | { readonly state: 'shown'; readonly link: SharedLink; readonly isCopied: boolean }

/** A button that creates a link for another person, and shows it as text and as a QR code. */
export function ShareApproval({ approvalId }: { readonly approvalId: string }) {
  const { share } = useAdkLabels()
  const { shareApproval: create } = useAdkSettings()
  const [sharing, setSharing] = useState<Sharing>({ state: 'closed' })
  const id = useId()
  const inputRef = useRef<HTMLInputElement>(null)
  const isShown = sharing.state === 'shown'
  useEffect(() => {
    const input = inputRef.current
    if (!isShown || !input) return
    input.focus()
    // The selection scrolls to its end. The beginning says where the link leads.
    input.scrollLeft = 0
  }, [isShown])
  if (!create) return null
  const show = async (): Promise<void> => {
    setSharing({ state: 'loading' })
    try {
      setSharing({ state: 'shown', link: await create(approvalId), isCopied: false })
    } catch {
      setSharing({ state: 'failed' })
    }
  }
  const copy = async (link: SharedLink): Promise<void> => {
    await navigator.clipboard.writeText(link.url)
    setSharing({ state: 'shown', link, isCopied: true })
  }
  return (
    <div className="adk-share">
      {sharing.state !== 'shown' && (
        <OutlinedButton
          aria-disabled={sharing.state === 'loading'}
          onClick={() => void (sharing.state !== 'loading' && show())}
        >
          {share.open}
        </OutlinedButton>
      )}
      {sharing.state === 'shown' && (
        <div className="adk-share-link" role="group" aria-labelledby={id}>
          <p id={id}>{share.explanation}</p>
          {isForThisMachine(sharing.link.url) ? (
            <p className="adk-hint">{share.thisMachineOnly}</p>
          ) : (
            <QrCode text={sharing.link.url} label={share.qrCode} />
          )}
          <p className="adk-share-url">
            <input
              ref={inputRef}
              className="adk-field"
              readOnly
              aria-label={share.link}
              value={sharing.link.url}
              onFocus={(event) => event.target.select()}
            />
            <OutlinedButton
              onClick={() => void copy(sharing.link).catch(() => inputRef.current?.select())}
            >
              {sharing.isCopied ? share.copied : share.copy}
            </OutlinedButton>
          </p>
          <p className="adk-hint">
            {share.validUntil} <Time at={sharing.link.expiresAt} />
          </p>
        </div>
      )}
      <p className="adk-failure" role="alert">
        {sharing.state === 'failed' && share.failed}
      </p>
    </div>
  )
}

/** A phone that scans such a link would look for the page on itself. */
function isForThisMachine(url: string): boolean {
  return URL.canParse(url) && /^(?:localhost|127\..*|\[::1\])$/.test(new URL(url).hostname)
}

interface QrCodeProps {
  readonly text: string
  /** The text alternative. It says where the same content is as text. */
  readonly label: string
}

/** Draws a QR code as SVG. The encoder is loaded when the first code is shown. */
function QrCode({ text, label }: QrCodeProps) {
  const [path, setPath] = useState<{ readonly size: number; readonly d: string }>()
  useEffect(() => {
    let isCurrent = true
    const draw = async (): Promise<void> => {
      const { encodeQR } = await import('qr')
      const rows = encodeQR(text, 'raw', { border: 4 })
      if (isCurrent) setPath({ size: rows.length, d: toPath(rows) })
    }
    // Without the encoder, the link is still there as text.
    void draw().catch(() => undefined)
    return () => {
      isCurrent = false
    }
  }, [text])
  if (!path) return null
  return (
    <svg
      className="adk-qr"
      role="img"
      aria-label={label}
      viewBox={`0 0 ${path.size} ${path.size}`}
      shapeRendering="crispEdges"
    >
      {/* Black on white in every theme: many cameras do not read inverted codes. */}
      <rect width={path.size} height={path.size} fill="#fff" />
      <path d={path.d} fill="#000" />
    </svg>
  )
}

function toPath(rows: readonly (readonly boolean[])[]): string {
  return rows
    .flatMap((row, y) => row.map((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : '')))
    .join('')
}
