import { type ReactNode, useEffect, useRef, useState } from 'react'

import type { ShownPreview, Preview } from '../../protocol/preview.ts'
import { useAdkLabels } from '../provider.tsx'
import type { Decision } from '../reading/approval.ts'
import type { Arguments } from '../reading/call.ts'
import { hasMisleadingValue } from '../../shared/misleading-values.ts'
import { type PendingSum, diffLines } from '../reading/preview.ts'
import type { ServerError } from '../reading/problem.ts'
import {
  ArgumentsTable,
  findUnmentioned,
  LiteralText,
  LookAlikeWarning,
  FunctionName,
} from './call-details.tsx'

/** A click so soon after a change, in ms, was meant for what was shown before. */
const SETTLE_MS = 500

/** The preview that the card shows, and where it came from. */
interface Shown {
  readonly given: ShownPreview | undefined
  readonly refusal: ServerError | undefined
  readonly current: ShownPreview | undefined
  readonly seen?: ShownPreview | undefined
}

interface PreviewState {
  readonly preview: ShownPreview | undefined
  /** The preview before the last change, until the person decides. */
  readonly seen: ShownPreview | undefined
  /** Passes on a decision with the preview. Ignores an approval if the preview changed just before. */
  readonly decide: (decision: Decision) => void
}

/** Tracks the preview that the person sees, so that a decision names it and a change is visible. */
export function useShownPreview(
  preview: ShownPreview | undefined,
  refusal: ServerError | undefined,
  onDecide: (decision: Decision) => void,
): PreviewState {
  const [shown, setShown] = useState<Shown>({ given: preview, refusal, current: preview })
  const changedAt = useRef<number>(undefined)
  // The newest of the two: the list is read again after a refusal.
  const isGiven = preview !== undefined && preview.digest !== shown.given?.digest
  const isRefused = refusal?.preview !== undefined && refusal !== shown.refusal
  const refused = isRefused ? refusal.preview : undefined
  const next = isGiven ? preview : refused
  // Adjusts the state while rendering, so that the person never sees a preview without the mark of its change.
  if (next) {
    const { current, seen = current } = shown
    setShown({ given: preview ?? shown.given, refusal, current: next, seen })
  }
  const hasChanged = shown.seen !== undefined && shown.seen.digest !== shown.current?.digest
  const digest = shown.current?.digest
  useEffect(() => {
    // Each change counts, not only the first one.
    if (hasChanged && digest !== undefined) changedAt.current = Date.now()
  }, [digest, hasChanged])
  return {
    preview: shown.current,
    seen: hasChanged ? shown.seen : undefined,
    decide: (decision) => {
      if (!decision.approved || digest === undefined) return onDecide(decision)
      const isFresh = changedAt.current !== undefined && Date.now() - changedAt.current < SETTLE_MS
      // An edited call has a preview of its own.
      if (!isFresh) onDecide({ preview: digest, ...decision })
    },
  }
}

interface PendingDetailsProps {
  readonly toolName: string
  readonly args: Arguments
  /** The headline of the card. Arguments that it contains are not repeated. */
  readonly description: string
  readonly hint: string | undefined
  readonly preview: ShownPreview | undefined
  readonly seen: ShownPreview | undefined
  /** A preview of earlier values, which keeps its place while the server is asked about an edit. */
  readonly outdated?: ShownPreview | undefined
  readonly sum: PendingSum | undefined
  /** Why the server refused the last decision. */
  readonly refusal: ServerError | undefined
  /** Whether the headline is the default one, which says nothing about the arguments. */
  readonly isDescribed: boolean
}

/** Shows what a pending call would do: the preview, the hint, and the arguments, folded where they repeat the headline. */
export function PendingDetails(props: PendingDetailsProps): ReactNode {
  const { toolName, args, description, hint, preview, seen, sum, refusal, isDescribed } = props
  const { approval, tool } = useAdkLabels()
  const unmentioned = isDescribed || preview ? findUnmentioned(args, description) : args
  const isMisleading = hasMisleadingValue(args, [description])
  const isCovered = preview !== undefined && !isMisleading
  const open = isCovered ? {} : unmentioned
  const isRefused = refusal?.code === 'preview-changed'
  const isFolded = Object.keys(open).length < Object.keys(args).length
  return (
    <>
      {preview && <PreviewView preview={preview} seen={seen} />}
      {props.outdated && (
        <div className="adk-outdated" inert>
          <PreviewView preview={props.outdated} />
        </div>
      )}
      <ArgumentsTable args={open} />
      {isMisleading && <p className="adk-look-alike">{approval.deceptive}</p>}
      <Notes hint={hint} sum={sum} />
      {isRefused && (
        <p className="adk-changed" role="alert">
          {approval.previewChanged}
        </p>
      )}
      {/* The marks of the values show a change that the person did not cause. It is announced to screen readers. */}
      <p className="adk-hidden" role="status">
        {seen && !isRefused && approval.previewChanged}
      </p>
      {/* The default headline has the name of the function. */}
      {(isFolded || isDescribed) && (
        <details className="adk-details">
          <summary>{tool.details}</summary>
          <FunctionName name={toolName} />
          {isFolded && <ArgumentsTable args={args} />}
        </details>
      )}
    </>
  )
}

function Notes({ hint, sum }: Pick<PendingDetailsProps, 'hint' | 'sum'>) {
  if ((hint ?? sum) === undefined) return null
  return (
    <div className="adk-notes">
      {hint && <LiteralText in="p" className="adk-hint" text={hint} />}
      {sum && <SumNote sum={sum} />}
    </div>
  )
}

function SumNote({ sum }: { readonly sum: PendingSum }) {
  const { approval } = useAdkLabels()
  const { total, available } = sum
  return (
    <p className="adk-sum" data-exceeded={available !== undefined && total > available}>
      {approval.sum(sum)}
    </p>
  )
}

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
  readonly children: ReactNode
}

function Row({ label, isChanged, children }: RowProps) {
  return (
    <div data-changed={isChanged || undefined}>
      <LiteralText in="dt" text={label} />
      <dd>{children}</dd>
    </div>
  )
}

function Transition({ before, after }: { readonly before: string; readonly after: string }) {
  const { approval } = useAdkLabels()
  return (
    <>
      <LiteralText in="span" className="adk-before" text={before} />{' '}
      <span className="adk-arrow" aria-hidden="true">
        →
      </span>
      <span className="adk-hidden">{approval.becomes}</span>{' '}
      <LiteralText in="strong" text={after} />
    </>
  )
}

/** The value that the person saw before. */
function Was({ text }: { readonly text: string }) {
  const { approval } = useAdkLabels()
  return <LiteralText in="span" className="adk-was" text={approval.was(text)} />
}

function TextDiff({ label, before, after }: NonNullable<Preview['text']>) {
  return (
    <figure className="adk-code adk-diff">
      {label !== undefined && <LiteralText in="figcaption" text={label} />}
      <pre>
        {diffLines(before, after).map(({ type, text }, index) => {
          const line = <LiteralText multiline text={text === '' ? ' ' : text} />
          // The lines keep their order.
          if (type === 'removed') return <del key={index}>{line}</del>
          if (type === 'added') return <ins key={index}>{line}</ins>
          return <span key={index}>{line}</span>
        })}
      </pre>
    </figure>
  )
}

/** The server checks the URL too. A `javascript:` URL must never reach the page. */
function isPictureUrl(url: string): boolean {
  return /^(?:data:image\/|https?:\/\/)/i.test(url)
}
