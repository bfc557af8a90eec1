import type { Preview } from '../../protocol/preview.ts'
import { useAdkLabels } from '../provider.tsx'
import { diffLines } from '../reading/preview.ts'
import { LiteralText, LookAlikeWarning } from './arguments-table.tsx'

interface PreviewViewProps {
  readonly preview: Preview
  /** The preview that the person saw before it changed. */
  readonly seen?: Preview | undefined
}

/** Shows what a call would do, or what it did. Values that have changed are marked. */
export function PreviewView({ preview, seen }: PreviewViewProps) {
  const { lines = [], changes = [], text, picture } = preview
  if (lines.length + changes.length === 0 && !text && !picture) return null
  return (
    <div className="adk-preview">
      {lines.length + changes.length > 0 && (
        <dl>
          {changes.map(({ label, before, after }) => {
            const old = seen?.changes?.find((change) => change.label === label)
            const isChanged = seen !== undefined && (old?.before !== before || old.after !== after)
            return (
              <Row key={label} label={label} isChanged={isChanged}>
                <Transition before={before} after={after} />
                {isChanged && old && <Was text={`${old.before} → ${old.after}`} />}
              </Row>
            )
          })}
          {lines.map(({ label, value }) => {
            const old = seen?.lines?.find((line) => line.label === label)
            const isChanged = seen !== undefined && old?.value !== value
            return (
              <Row key={label} label={label} isChanged={isChanged}>
                <LiteralText text={value} />
                <LookAlikeWarning text={value} />
                {isChanged && old && <Was text={old.value} />}
              </Row>
            )
          })}
        </dl>
      )}
      {text && <TextDiff {...text} />}
      {picture && isPictureUrl(picture.url) && (
        <img className="adk-picture" src={picture.url} alt={picture.alt} />
      )}
    </div>
  )
}

interface RowProps {
  readonly label: string
  readonly isChanged: boolean
  readonly children: React.ReactNode
}

function Row({ label, isChanged, children }: RowProps) {
  return (
    <div data-changed={isChanged || undefined}>
      <dt>
        <LiteralText text={label} />
      </dt>
      <dd>{children}</dd>
    </div>
  )
}

function Transition({ before, after }: { readonly before: string; readonly after: string }) {
  const { approval } = useAdkLabels()
  return (
    <>
      <span className="adk-before">
        <LiteralText text={before} />
      </span>{' '}
      <span aria-hidden="true">→</span>
      <span className="adk-hidden">{approval.becomes}</span>{' '}
      <strong>
        <LiteralText text={after} />
      </strong>
    </>
  )
}

/** The value that the person saw before. */
function Was({ text }: { readonly text: string }) {
  const { approval } = useAdkLabels()
  return (
    <span className="adk-was">
      <LiteralText text={approval.was(text)} />
    </span>
  )
}

function TextDiff({ label, before, after }: NonNullable<Preview['text']>) {
  return (
    <figure className="adk-code adk-diff">
      {label !== undefined && (
        <figcaption>
          <LiteralText text={label} />
        </figcaption>
      )}
      <pre>
        {diffLines(before, after).map(({ type, text }, index) => {
          const line = <LiteralText text={text === '' ? ' ' : text} />
          // The lines keep their order.
          /* oxlint-disable react/no-array-index-key */
          if (type === 'removed') return <del key={index}>{line}</del>
          if (type === 'added') return <ins key={index}>{line}</ins>
          return <span key={index}>{line}</span>
          /* oxlint-enable react/no-array-index-key */
        })}
      </pre>
    </figure>
  )
}

/** The server checks the URL too. A `javascript:` URL must never reach the page. */
function isPictureUrl(url: string): boolean {
  return /^(?:data:image\/|https?:\/\/)/i.test(url)
}
